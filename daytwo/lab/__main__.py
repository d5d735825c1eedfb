"""Runs `daytwo.lab.main`."""

from __future__ import annotations

from daytwo.lab.main import main

main()
