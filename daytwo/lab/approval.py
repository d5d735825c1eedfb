"""Who may approve in a lab: whoever runs it, and for most acts anybody in the Temporal UI. Nothing real is at stake."""

from __future__ import annotations

import os
import pwd
from typing import Final

from daytwo.domain.policy import Approval, Person
from daytwo.domain.vocabulary import Action

UNVERIFIED_MAY: Final = (
    Action.RUN_DIAGNOSTIC,
    Action.VERIFY,
    Action.RESTART_SERVICE,
    Action.RESET_GPU,
    Action.REBOOT,
    Action.POWER_CYCLE,
    Action.TELL_OWNER,
    Action.INSPECT,
)
"""What a node survives. Elsewhere the default allows much less to an identity that is only claimed."""


def lab_approval() -> Approval:
    """The approval rules that a lab's cluster is declared with; the user of this process is its lead."""
    name = pwd.getpwuid(os.geteuid()).pw_name
    person = Person(name=name, roles=("lead",), identities=(f"cli:{name}",))
    return Approval(people=(person,), unverified_may=UNVERIFIED_MAY)
