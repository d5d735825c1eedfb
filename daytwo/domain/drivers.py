"""What the drivers of a cluster carry out, as its definition declares them; pure, so that a file can be checked.

`daytwo.adapters` builds the drivers themselves and asks each what it can do; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.seams import ACT_OF, NEEDS_NO_DRIVER
from daytwo.domain.vocabulary import Action, ClusterKind

BY_BMC: Final = frozenset({Action.REBOOT, Action.POWER_CYCLE})
BY_SCHEDULER: Final = {
    ClusterKind.SLURM: frozenset({Action.REBOOT}),
    ClusterKind.SIMULATED: frozenset({Action.REBOOT, Action.POWER_CYCLE}),
}
WOULD: Final = {Action.POWER_CYCLE: "`bmcs`, or a program in `hardware` with power-cycle among its `acts`"}
"""What would carry an action out that a definition has no driver for."""
NO_DRIVER: Final = "no driver of this version"


def able(definition: ClusterDefinition) -> frozenset[Action]:
    """What can be done to a node of this cluster."""
    own = BY_SCHEDULER.get(definition.kind, frozenset())
    bmcs = BY_BMC if definition.bmcs else frozenset()
    program = definition.hardware.acts if definition.hardware else ()
    return NEEDS_NO_DRIVER | own | bmcs | {action for action, kind in ACT_OF.items() if kind.value in program}


def skipped(definition: ClusterDefinition, actions: Iterable[Action]) -> dict[str, str]:
    """Those of `actions` that no driver carries out, so that a ladder goes past them, each with what would."""
    can = able(definition)
    return {action.value: WOULD.get(action, NO_DRIVER) for action in actions if action not in can}
