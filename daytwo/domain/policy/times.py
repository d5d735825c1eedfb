"""The small waits, when people are told again, and how long things are kept."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from daytwo.domain.policy.units import Limit, Seconds
from daytwo.domain.vocabulary import Frozen


class Timing(Frozen):
    """The small waits around a proposal and an act."""

    settle_seconds: Seconds = Field(
        default=1.5,
        description="A proposal is announced after this much quiet: one fault prints several Xids within a "
        "second, and Xid 154 follows at +0.4 s. Source: operations 3 (announce).",
    )
    settle_at_most_seconds: Seconds = Field(
        default=5, description="It is announced at the latest after this. Source: operations 3 (announce)."
    )
    auto_resolve_seconds: Seconds = Field(
        default=300,
        description="A proposal ends by itself when its faults, all of which clear by reading, were clear for "
        "this long. 5 min. Source: operations 3 (auto-resolve).",
    )
    boot_seconds: Limit = Field(
        default=2400,
        description="How long a boot may take before a person is asked. 40 min: HGX boots slowly. Source: "
        "operations 3.",
    )
    silent_after_seconds: Limit = Field(
        default=180,
        description="Silence of an agent that makes its node unknown: three missed pulses. Source: operations, rule 9.",
    )
    snooze_seconds: Seconds = Field(
        default=8 * 3600,
        description="How long a dismissed fault does not ask again where whoever dismissed it did not say. 8 h, a "
        "shift: without it the node would be proposed and contained anew at once. Source: operations, rule 7, "
        "judgement.",
    )
    driver_settle_seconds: Seconds = Field(
        default=600,
        description="A fault of a GPU or of software that began this soon before or after the driver was changed waits "
        "for so long, and is then tested and not repaired. 10 min: an upgrade unloads the driver, loads another and "
        "boots. Source: operations, rule 16, judgement.",
    )
    noted_seconds: Seconds = Field(
        default=24 * 3600,
        description="After a person was told (`inspect`, `tell-owner`) and took note, the same fault does not "
        "ask again for this long. 24 h, the reminder of a degraded fault. Source: operations 3 "
        "(unanswered).",
    )


class Reminders(Frozen):
    """When people are told again of what nobody has answered. A repair that is held, or approved, reminds nobody."""

    critical_seconds: Limit = Field(
        default=300, description="A critical proposal, for the first time. 5 min. Source: operations 3 (unanswered)."
    )
    next_group_seconds: Limit = Field(
        default=600,
        description="When the next of `approval.groups` is told as well, counted from the proposal. 10 min: the first "
        "may be asleep. Source: operations 3 (unanswered).",
    )
    critical_again_seconds: Limit = Field(
        default=3600, description="All again, each time after this. 60 min. Source: operations 3 (unanswered)."
    )
    degraded_seconds: Limit = Field(
        default=24 * 3600,
        description="A node that still works. 24 h: once in a working day. Source: operations 3 (unanswered).",
    )
    cosmetic_seconds: Limit = Field(
        default=7 * 24 * 3600, description="What may wait, never urgent. 7 d. Source: operations 3 (unanswered)."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.next_group_seconds <= self.critical_seconds:
            raise ValueError("next_group_seconds: the next group is told later than the first reminder")
        return self


class Retention(Frozen):
    """How long is kept what nobody is asked about any more. Repairs, decisions, acts and the audit stay for ever."""

    observations_days: float = Field(
        default=90,
        ge=31,
        allow_inf_nan=False,
        description="Observations that no open repair, firing finding or running boot needs, and changes of nodes' "
        "states. 90 d: three times the 28 days in which incidents of a part are counted. At least 31: an agent may "
        "send what is 30 days old. Source: judgement.",
    )
    requests_days: float = Field(
        default=30,
        ge=1,
        allow_inf_nan=False,
        description="Questions to agents, with their answers. 30 d: what they proved stands in the tests of the "
        "repair. Source: judgement.",
    )
