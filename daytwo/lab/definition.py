"""The cluster definition of a simulated fleet: the defaults of the policy, with its waits in the lab's own time.

`daytwo up --lab` and the tests declare this cluster; `python -m daytwo.lab.definition` prints it for a person.
"""

from __future__ import annotations

import sys
from typing import Final

import yaml

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.policy import Attempts, Drain, Policy, Timing, Verify
from daytwo.domain.vocabulary import ClusterKind

CLUSTER: Final = "sim"
NODES_PER_RACK: Final = 4


def node_names(count: int) -> tuple[str, ...]:
    """Return `node-01`, `node-02`, …; the same width for all."""
    width = max(2, len(str(count)))
    return tuple(f"node-{number:0{width}d}" for number in range(1, count + 1))


def lab_definition(
    socket: str, *, nodes: int = 16, gpus: int = 8, speed: float = 60.0, pulse_seconds: float = 60.0
) -> ClusterDefinition:
    """Return the definition of the lab that listens on `socket` and runs `speed` times as fast as the clock.

    `pulse_seconds` is the gateway's: a node is silent after three of its pulses.
    """
    return ClusterDefinition(
        name=CLUSTER,
        kind=ClusterKind.SIMULATED,
        simulated_socket=socket,
        groups=_racks(node_names(nodes), gpus),
        policy=lab_policy(speed, pulse_seconds=pulse_seconds),
    )


def lab_policy(speed: float, *, pulse_seconds: float = 60.0) -> Policy:
    """Return the default policy with what waits for machines and tests divided by `speed`.

    People and agents live in real time, so whatever waits for them stays. Attempts are counted per real day, which is
    `speed` days of the fleet.
    """
    usual = Policy()
    return usual.model_copy(
        update={
            "attempts": Attempts(
                per_day=max(20, usual.attempts.per_day), per_week=max(100, usual.attempts.per_week), incidents=100
            ),
            "budget": usual.budget.model_copy(
                update={
                    "interruptions_per_hour": max(3, int(usual.budget.interruptions_per_hour * speed)),
                    "interruption_apart_seconds": usual.budget.interruption_apart_seconds / speed,
                }
            ),
            "drain": Drain(timeout_seconds=max(60.0, usual.drain.timeout_seconds / speed)),
            "verify": Verify(
                timeout_seconds=max(60.0, usual.verify.timeout_seconds / speed),
                quiet_seconds=max(1.0, usual.verify.quiet_seconds / speed),
                answer_seconds=max(15.0, usual.verify.answer_seconds / speed),
            ),
            "timing": Timing(
                auto_resolve_seconds=max(1.0, usual.timing.auto_resolve_seconds / speed),
                boot_seconds=max(10.0, usual.timing.boot_seconds / speed),
                silent_after_seconds=3 * pulse_seconds,
            ),
        }
    )


def as_yaml(definition: ClusterDefinition) -> str:
    """Return a definition as the file that a person would write."""
    body = definition.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True)


def _racks(names: tuple[str, ...], gpus: int) -> tuple[NodeGroup, ...]:
    racks = [names[start : start + NODES_PER_RACK] for start in range(0, len(names), NODES_PER_RACK)]
    return tuple(
        NodeGroup(nodes=rack, pool="h100", gpus=gpus, domains=(f"rack-{number}",))
        for number, rack in enumerate(racks, start=1)
    )


if __name__ == "__main__":
    sys.stdout.write(as_yaml(lab_definition(sys.argv[1] if len(sys.argv) > 1 else "/run/daytwo/lab.sock")))
