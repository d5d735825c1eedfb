"""The BMC of the Redfish tests, and its certificate."""

from __future__ import annotations

from tests.redfish.conftest import certificate

__all__ = ["certificate"]
