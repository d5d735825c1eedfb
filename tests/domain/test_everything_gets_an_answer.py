"""Triage and the state of a node are total: no input leaves them without an answer, or the answer without a reason."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from daytwo.domain.ladders import rung_of
from daytwo.domain.node_states import BEFORE_THE_BOOT, FROM_THE_BOOT_ON, NodeLook, node_state
from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.situation import DomainTrouble, OpenRepair, PastRepair, Situation
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose, Withhold
from daytwo.domain.vocabulary import Action, FaultClass, Finding, FindingStatus, Mode, NodeRole, NodeState, State
from daytwo.faults.catalogue import catalogue
from tests.builders import NOW, a_situation, node_facts

FAULTS = st.sampled_from([*(fault.id for fault in catalogue().all()), "xid-4711", "not-in-the-catalogue", ""])
ENTITIES = st.sampled_from(["GPU-1", "GPU-2", "pci:0000:18:00", "node"])
MOMENTS = st.integers(-3600, 40 * 86400).map(lambda seconds: NOW - timedelta(seconds=seconds))
DETAILS = st.dictionaries(
    st.sampled_from(["recovery_action", "caused_by", "xid"]),
    st.one_of(st.integers(-1, 200), st.text(max_size=4), st.booleans(), st.none()),
)
WORDS = st.lists(st.sampled_from(["IDLE", "DRAIN", "MAINT", "REBOOT_ISSUED", "POWERED_DOWN", "?"]), max_size=3)


def findings() -> st.SearchStrategy[Finding]:
    return st.builds(
        Finding,
        id=st.integers(1, 99),
        cluster=st.just("east"),
        node=st.just("gpu-07"),
        fault=FAULTS,
        entity=ENTITIES,
        status=st.sampled_from(FindingStatus),
        count=st.just(1),
        first_seen=MOMENTS,
        last_seen=MOMENTS,
        cleared_at=st.none(),
        detail=DETAILS,
    )


def scheduler_facts() -> st.SearchStrategy[NodeFacts | None]:
    built = st.builds(
        node_facts,
        drained_by=st.sampled_from(["nobody", "ours", "scheduler", "person"]),
        ownership=st.sampled_from(Ownership),
        rebooting=st.booleans(),
        responding=st.booleans(),
    )
    return st.none() | st.builds(lambda facts, words: facts.model_copy(update={"states": tuple(words)}), built, WORDS)


PAST = st.builds(
    PastRepair,
    repair_id=st.just("r-1"),
    fault=st.none() | FAULTS,
    action=st.none() | st.sampled_from(Action),
    rung=st.integers(0, 9),
    outcome=st.sampled_from(State),
    acted=st.booleans(),
    opened_at=MOMENTS,
    closed_at=MOMENTS,
    snooze_until=st.none() | MOMENTS,
    faults=st.tuples(FAULTS),
)
OPEN = st.builds(
    OpenRepair,
    repair_id=st.just("r-2"),
    state=st.sampled_from(State),
    revision=st.just(1),
    rung=st.integers(0, 9),
    action=st.none() | st.sampled_from(Action),
    contained=st.booleans(),
    disturbed=st.booleans(),
)
TROUBLE = st.builds(
    DomainTrouble,
    domain=st.sampled_from(["rack-1", "rack-2", "pool/h200"]),
    fault_class=st.sampled_from(FaultClass),
    nodes=st.integers(0, 200),
    first_at=st.none() | MOMENTS,
    last_at=st.none() | MOMENTS,
)
RULES = st.builds(
    FaultRule,
    mode=st.none() | st.sampled_from(Mode),
    action=st.none() | st.sampled_from(Action),
    debounce_seconds=st.none() | st.integers(0, 600),
    contain=st.none() | st.booleans(),
)
POLICIES = st.builds(
    Policy,
    default=RULES,
    classes=st.dictionaries(st.sampled_from(FaultClass), RULES, max_size=2),
    faults=st.dictionaries(FAULTS, RULES, max_size=2),
    contain_unasked=st.booleans(),
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    return a_situation(
        *draw(st.lists(findings(), max_size=4)),
        role=draw(st.sampled_from(NodeRole)),
        facts=draw(scheduler_facts()),
        history=tuple(draw(st.lists(PAST, max_size=3))),
        open_repair=draw(st.none() | OPEN),
        trouble=tuple(draw(st.lists(TROUBLE, max_size=2))),
        pool_nodes=draw(st.integers(0, 1000)),
        pool_contained=draw(st.integers(0, 30)),
    )


@settings(max_examples=150, deadline=None)
@given(situations(), POLICIES)
def test_triage_answers_everything_and_keeps_its_promises(situation: Situation, policy: Policy) -> None:
    verdict = triage(situation, policy, catalogue(), NOW)
    assert verdict.why
    if isinstance(verdict, Propose | Withhold) and verdict.contain:
        assert policy.contain_unasked
        assert situation.role is NodeRole.WORKER
        assert situation.facts is not None
    if isinstance(verdict, Propose):
        assert verdict.advice.mode in (Mode.RECOMMEND, Mode.AUTO)
        assert verdict.advice.rung >= rung_of(verdict.advice.action)
        assert verdict.advice.findings


LOOKS = st.builds(
    NodeLook,
    repair_state=st.none() | st.sampled_from([*(state.value for state in State), "opening", "?"]),
    repair_id=st.none() | st.just("r-1"),
    firing=st.lists(FAULTS, max_size=2).map(tuple),
    facts=scheduler_facts(),
    last_heard_at=st.none() | MOMENTS,
    silent_after_seconds=st.integers(0, 600),
    now=st.just(NOW),
    expects_agent=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(LOOKS)
def test_every_node_has_a_state_and_a_reason(look: NodeLook) -> None:
    state, why = node_state(look)
    assert why
    assert (state is NodeState.HEALTHY) <= (not look.firing and look.facts is not None and look.facts.responding)


def test_every_state_of_an_open_repair_is_mapped() -> None:
    ends = {State.SUCCEEDED, State.REMOVED, State.DISMISSED, State.AUTO_RESOLVED, State.HANDED_OVER}
    mapped = BEFORE_THE_BOOT | FROM_THE_BOOT_ON | {State.NEEDS_HELP, State.HELD}
    assert mapped - {"opening"} == set(State) - ends
