"""When people are told again of a proposal that nobody has answered, and who is. Pure; `announce` asks."""

from __future__ import annotations

from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Severity


def seconds_until_next(policy: Policy, severity: Severity, told: int) -> float:
    """How long to wait after people were told; `told` counts the reminders so far, 0 for the first time."""
    again = policy.reminders
    if severity is Severity.DEGRADED:
        return again.degraded_seconds
    if severity is Severity.COSMETIC:
        return again.cosmetic_seconds
    steps = (again.critical_seconds, again.next_group_seconds - again.critical_seconds)
    return steps[told] if told < len(steps) else again.critical_again_seconds


def groups_told(policy: Policy, severity: Severity, reminder: int) -> tuple[str, ...]:
    """Who is told: the first group; of a critical one the next group at the second reminder, and then all."""
    groups = policy.approval.groups
    if severity is not Severity.CRITICAL or reminder < 2:
        return groups[:1]
    return (groups[1:2] or groups) if reminder == 2 else groups
