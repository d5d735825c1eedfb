"""What a site allows: the policy of one cluster, with the defaults of fleet practice and the reason for each.

Times are seconds and named so. Every field says its default's reason and its source: `operations` is the review by
on-call practice, `design` what the engine needs, `judgement` neither. `python -m daytwo.domain.policy` prints the JSON
schema, and docs/policy.md is made from it. `ClusterDefinition` holds one policy per cluster; the CLI checks a file.
"""

from __future__ import annotations

from daytwo.domain.policy.approval import Approval, Person
from daytwo.domain.policy.bounds import Attempts, Breaker, Budget, Flapping, Rivals
from daytwo.domain.policy.rules import EffectiveRule, FaultRule, Origin
from daytwo.domain.policy.steps import Drain, Evidence, Verify
from daytwo.domain.policy.times import Reminders, Retention, Timing
from daytwo.domain.policy.whole import Policy, schema

__all__ = [
    "Approval",
    "Attempts",
    "Breaker",
    "Budget",
    "Drain",
    "EffectiveRule",
    "Evidence",
    "FaultRule",
    "Flapping",
    "Origin",
    "Person",
    "Policy",
    "Reminders",
    "Retention",
    "Rivals",
    "Timing",
    "Verify",
    "schema",
]
