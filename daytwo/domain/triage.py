"""What to do about one node, from what is known of it now. Pure and total: no clock, no I/O, an answer for everything.

The reconciler calls it for each node that is due, the activity `assess` before and after each wait of a repair.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from daytwo.domain.advising import proposed
from daytwo.domain.cases import Case, cases_of, ids_of, rules_of
from daytwo.domain.circumstances import Circumstances
from daytwo.domain.policy import Policy
from daytwo.domain.situation import Situation
from daytwo.domain.verdicts import Quiet, Verdict, Watch
from daytwo.domain.vocabulary import FindingStatus
from daytwo.domain.withholding import remaining, withheld
from daytwo.faults.catalogue import Catalogue


def triage(situation: Situation, policy: Policy, catalogue: Catalogue, now: datetime) -> Verdict:
    """Judge one node. Never raises; the verdict names every rule that fired."""
    firing = [finding for finding in situation.findings if finding.status is FindingStatus.FIRING]
    cases = cases_of(firing, policy, catalogue)
    wanting = [case for case in cases if case.asks]
    if not cases:
        return Quiet(why=_why_quiet(situation, len(firing)))
    if not wanting:
        return Watch(why=f"recorded only: {', '.join(ids_of(cases))}", rules=rules_of(cases, "mode"))
    ripe = [case for case in wanting if _ripe_at(case, now) <= now]
    if not ripe:
        return Watch(
            why=f"not for long enough: {', '.join(ids_of(wanting))}",
            rules=rules_of(wanting, "debounce_seconds"),
            look_again_at=min(_ripe_at(case, now) for case in wanting),
        )
    here = Circumstances(situation, policy, now, catalogue)
    return withheld(here, ripe) or proposed(here, remaining(here, ripe), cases)


def asking(situation: Situation, policy: Policy, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the faults that fire and that this policy asks somebody about, now or after their debounce."""
    firing = [finding for finding in situation.findings if finding.status is FindingStatus.FIRING]
    return ids_of(case for case in cases_of(firing, policy, catalogue) if case.asks)


def _ripe_at(case: Case, now: datetime) -> datetime:
    # A clock that was put back has seen it in what is now the future.
    return min(case.finding.first_seen, now) + timedelta(seconds=case.rule.debounce_seconds)


def _why_quiet(situation: Situation, firing: int) -> str:
    if firing:
        return "what fires is switched off by the policy, or asks nothing"
    if situation.open_repair is not None:
        return f"nothing fires any more that {situation.open_repair.repair_id} is about"
    return "nothing fires"
