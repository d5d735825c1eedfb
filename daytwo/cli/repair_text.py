"""A repair as text for people. The proposal itself comes from the service in the words that everybody is told."""

from __future__ import annotations

import shlex

from daytwo.cli.output import Item, block, cell, clean, moment, span, until, with_glyph
from daytwo.domain.repair_states import EVENT_OF, after
from daytwo.domain.vocabulary import NOT_KNOWN, DecisionKind, State

VERBS = {DecisionKind.RETURN_AFTER_TESTS: "return"}
"""Where the command is not the decision's own word."""
STAMPS = ("detected", "recommended", "approved", "drained", "acted", "verified", "returned")
"""In the order in which a repair passes them."""
FOR_PEOPLE = {
    State.PROPOSED: "for an answer",
    State.NEEDS_HELP: "for somebody to decide",
    State.HELD: "for its release",
}
APPROVING = ("approved", "retried")
"""Events by which something is to be done; a proposal that comes after them is another question."""
BEFORE_WAITING = (State.QUARANTINING, State.HELD)
"""Where what an approval waits for is yet to come; a proposal says it itself."""
NEXT: dict[str, str] = {
    "opening": "its workflow begins, and looks at the node.",
    State.PROPOSED: "nothing is done until somebody answers; people are reminded.",
    State.APPROVED: "the rules are checked as they are now; then new work is kept off the node.",
    State.QUARANTINING: "once new work is kept off, it waits for the approved moment.",
    State.WAITING: "once nothing is in its way the node is drained; it is looked at every 20 s.",
    State.DRAINING: "the act, once no job runs. Nothing is forced: where that takes too long, a person is asked.",
    State.ACTING: "tests, once the act is proven; where it cannot be, a person is asked.",
    State.VERIFYING: "the node returns if it passes its tests; if not, the next action is proposed.",
    State.REJOINING: "it ends once the node takes work and its agent is heard.",
    State.NEEDS_HELP: "nothing is done until somebody decides; new work stays off the node.",
    State.HELD: "nothing moves until it is released; then the node is looked at again.",
}
"""By state: what happens then."""
WORDS = {
    "cleared": "no longer seen",
    "authorised": "found allowed by the rules",
    "not-authorised": "found not allowed by the rules",
    "noted": "taken note of",
    "expired": "the approval is too old",
    "moment-came": "the approved moment has come",
    "stakes-grew": "it would interrupt more than was approved",
    "still-faulty": "tested, and still faulty",
    "rejoined": "returned to work",
    "stuck": "cannot go on",
    "retried": "to be tried again",
    "test-asked": "to be tested",
    "removal-decided": "taken out for good",
}
"""Events that need more than their own word."""


def as_text(repair: Item) -> str:
    """The proposal first, because somebody may have to decide; then what happened so far."""
    parts = [_head(repair)]
    if repair["message"]:
        parts.append(_proposal(repair))
    parts += [
        _section("answers", _answers(repair)),
        _section("stamps", [f"{name}: {moment(at)}" for name, at in _in_order(repair["stamps"])]),
        _section("timeline", [event_line(event) for event in repair["timeline"]]),
        _section("decisions", [_decision(each) for each in repair["decisions"]]),
        _section("acts", [_intent(each) for each in repair["intents"]]),
        _section("tests", [line for run in repair["checks"] for line in _check_run(run)]),
        _section("evidence", [line for each in repair["evidence"] for line in _evidence(each)]),
    ]
    return "\n\n".join(part for part in parts if part)


def event_line(event: Item) -> str:
    """One line of the timeline."""
    what = _happened(event)
    moved = "" if event["to_state"] in (event["from_state"], what.replace(" ", "-")) else f" → {event['to_state']}"
    said = clean(event["text"])
    if said.startswith(what):
        what, said = said, ""
    return f"{moment(event['at'])}  {what}{moved}  by {clean(event['actor'])}{f': {said}' if said else ''}"


def _happened(event: Item) -> str:
    """The event in a word or two of a person."""
    if event["event"] == "revised":
        revision = event["data"].get("revision", 0)
        return f"revised to revision {revision}" if revision > 1 else "proposed"
    name = str(event["event"])
    return WORDS.get(name, name.replace("-", " "))


def _in_order(stamps: Item) -> list[tuple[str, str]]:
    return sorted(stamps.items(), key=lambda each: STAMPS.index(each[0]) if each[0] in STAMPS else len(STAMPS))


def _proposal(repair: Item) -> str:
    shown = block(repair["message"])
    if repair["state"] == State.PROPOSED:
        return shown
    # Its last line says how to approve it, which is not what is asked for any more.
    return f"the last proposal was:\n{shown.rpartition(chr(10))[0]}"


def _answers(repair: Item) -> list[str]:
    """The commands that answer it as it stands, by the table of its states."""
    if repair["state"] not in {state.value for state in State}:
        return []
    state = State(repair["state"])
    kinds = [kind for kind, event in EVENT_OF.items() if after(state, event, held_from=State.PROPOSED)]
    return [_answer(repair, kind) for kind in kinds if kind is not DecisionKind.DISMISS] + (
        _dismissing(repair) if DecisionKind.DISMISS in kinds else []
    )


def _answer(repair: Item, kind: DecisionKind, option: str = "") -> str:
    asked = f"{shlex.quote(repair['id'])} --revision {repair['revision']}{option}"
    return f'daytwo repairs {VERBS.get(kind, kind.value)} {asked} --reason "..."'


def _dismissing(repair: Item) -> list[str]:
    """How to have nothing done: what is left of that once something was."""
    if repair["interrupted"]:
        only_tests = _answer(repair, DecisionKind.APPROVE, " --action verify")
        return [f"{only_tests}   # only test it"] if repair["state"] == State.PROPOSED else []
    dismiss = _answer(repair, DecisionKind.DISMISS)
    done = "   # something was done to the node: you are asked how it is to return"
    return [dismiss + (done if repair["disturbed"] else "")]


def _head(repair: Item) -> str:
    lines = [
        f"{repair['id']}  {cell(repair['cluster'])}/{cell(repair['node'])}  {with_glyph(repair['state'])}, "
        f"revision {repair['revision']}, for {span(repair['state_since'])}, since {moment(repair['state_since'])}"
    ]
    if repair["attention"]:
        lines.append(f"NEEDS HELP: {clean(repair['attention'])}")
    if approved := _approved(repair):
        lines.append(f"Approved: {approved}")
    if repair["outcome"]:
        lines.append(f"Ended: {clean(repair['outcome'])}")
    return "\n".join([*lines, *(_what_next(repair) if repair["open"] else _quiet(repair))])


def _approved(repair: Item) -> str:
    """What was approved to be done, and what had been proposed where that is something else."""
    approved = False
    for event in repair["timeline"]:
        approved = event["to_state"] != State.PROPOSED and (approved or event["event"] in APPROVING)
    if not approved:
        return ""
    proposed = (repair["proposal"] or {}).get("action")
    other = f", where {cell(proposed)} was proposed" if proposed != repair["action"] else ""
    return f"{cell(repair['action'])}{other}"


def _what_next(repair: Item) -> list[str]:
    """What an open repair waits for, and what happens then."""
    waits = clean(repair["waiting_for"]).removeprefix("waits ") or FOR_PEOPLE.get(repair["state"], "")
    then = "; ".join(map(clean, repair["would_wait_for"])) if repair["state"] in BEFORE_WAITING else ""
    following = NEXT.get(repair["state"], "")
    return [
        *([f"Waits: {waits}"] if waits else []),
        *([f"Then waits: {then}"] if then else []),
        *([f"Next: {following}"] if following else []),
    ]


def _quiet(repair: Item) -> list[str]:
    """How long a dismissal keeps its faults quiet."""
    return [f"Nobody is asked about it {until(repair['snooze_until'])}."] if repair["snooze_until"] else []


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)]) if lines else ""


def _decision(each: Item) -> str:
    who = clean(each["actor"]) + ("" if each["verified"] else " (claimed, unverified)")
    why = f": {clean(each['reason'])}" if each["reason"] else ""
    status = with_glyph(each["status"]) + _said(each["status_reason"])
    what = " ".join(filter(None, (each["kind"], each["action"], "" if each["moment"] == "now" else each["moment"])))
    return f"{moment(each['at'])}  {status}  {what} revision {each['revision']} by {who}{why}"


def _intent(each: Item) -> str:
    said = _said(each["proof"] or each["error"])
    state = "unknown here" if each["proof_type"] == NOT_KNOWN else each["state"]
    return f"{moment(each['created_at'])}  {each['kind']} {cell(each['target'])}: {state}{said}"


def _said(text: str) -> str:
    return f" ({clean(text)})" if text else ""


def _check_run(run: Item) -> list[str]:
    verdict = {True: "passed", False: "FAILED", None: "not finished"}[run["passed"]]
    results = [f"  {cell(each['name'])}: {each['result']}  {clean(each['text'])}".rstrip() for each in run["results"]]
    return [f"{moment(run['started_at'])}  {run['kind']}: {verdict}  {clean(run['summary'])}".rstrip(), *results]


def _evidence(kept: Item) -> list[str]:
    """What was collected before an act, and what could not be."""
    if not kept["size"]:
        return [f"{moment(kept['at'])}  none: {clean(kept['error'])}"]
    missing = [f"    {clean(part['name'])}: {clean(part['error'])}" for part in kept["parts"] if part["error"]]
    names = ", ".join(clean(part["name"]) for part in kept["parts"] if not part["error"])
    until = f"kept until {moment(kept['expires_at'])}"
    head = f"{moment(kept['at'])}  {kept['size']} bytes, sha256 {kept['sha256'][:16]}…, {until}"
    return [f"{head}: {names}", *missing]
