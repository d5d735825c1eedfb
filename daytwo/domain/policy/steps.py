"""How the steps of a repair are taken: what is kept before an act, how work leaves, how a node is tested."""

from __future__ import annotations

from pydantic import Field

from daytwo.domain.policy.units import Limit, Seconds
from daytwo.domain.vocabulary import Frozen


class Evidence(Frozen):
    """What is collected from a node before an act that would lose it: kernel log, nvidia-smi, last readings."""

    wait_seconds: Seconds = Field(
        default=30,
        le=600,
        description="How long an act waits for the agent to begin, and as long again for it to end. Without an answer "
        "the act goes on and the record says so. 0: nothing is collected. Source: design 4 (salvage), judgement.",
    )
    keep_days: int = Field(
        default=90,
        ge=1,
        le=3650,
        description="How long it is kept. 90 days: returns of boards take weeks. Source: judgement.",
    )


class Drain(Frozen):
    """How work is taken off a node. Never by force: a timeout asks."""

    timeout_seconds: Limit = Field(
        default=1800,
        description="How long work may take to leave before a person is asked. 30 min. Source: operations 3.",
    )
    requeue_opt_in: str = Field(
        default="daytwo-requeue",
        min_length=1,
        description="A job whose comment holds this word may be requeued. Slurm's own flag is on by default "
        "and reruns the script from the top. Source: operations, rule 11.",
    )


class Verify(Frozen):
    """How long tests may take, and how long the kernel log must be quiet before a node returns."""

    timeout_seconds: Limit = Field(
        default=1800,
        description="How long the tests may take before a person is asked. 30 min. Source: design 4, judgement.",
    )
    quiet_seconds: Seconds = Field(
        default=600,
        description="How long no new Xid may come after the act. 10 min. Source: operations 3 (verify, always).",
    )
    answer_seconds: Limit = Field(
        default=120,
        description="How long the agent has to take up a question before a person is asked. Two pulses: an agent "
        "that misses both cannot be reached. Source: design 8.",
    )
