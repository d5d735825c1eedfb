"""A repair as text for people. The proposal itself comes from the service in the words that everybody is told."""

from __future__ import annotations

import shlex

from daytwo.cli.output import Item, block, cell, clean, moment, since, with_glyph
from daytwo.domain.repair_states import EVENT_OF, after
from daytwo.domain.vocabulary import DecisionKind, State

VERBS = {DecisionKind.RETURN_AFTER_TESTS: "return"}
"""Where the command is not the decision's own word."""
STAMPS = ("detected", "recommended", "approved", "drained", "acted", "verified", "returned")
"""In the order in which a repair passes them."""
WORDS = {
    "cleared": "no longer seen",
    "authorised": "found allowed by the rules",
    "not-authorised": "found not allowed by the rules",
    "noted": "taken note of",
    "expired": "the approval is too old",
    "quarantined": "new work is kept off",
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
    moved = "" if event["from_state"] == event["to_state"] else f" → {event['to_state']}"
    what = _happened(event)
    text = f": {clean(event['text'])}" if event["text"] not in ("", what) else ""
    return f"{moment(event['at'])}  {what}{moved}  by {clean(event['actor'])}{text}"


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
    asked = f"{shlex.quote(repair['id'])} --revision {repair['revision']}"
    return [f'daytwo repairs {VERBS.get(kind, kind.value)} {asked} --reason "..."' for kind in kinds]


def _head(repair: Item) -> str:
    lines = [
        f"{repair['id']}  {cell(repair['cluster'])}/{cell(repair['node'])}  {with_glyph(repair['state'])}, "
        f"revision {repair['revision']}, for {since(repair['state_since'])}"
    ]
    if repair["attention"]:
        lines.append(f"NEEDS HELP: {clean(repair['attention'])}")
    if repair["waiting_for"]:
        lines.append(f"Waits: {clean(repair['waiting_for'])}")
    if repair["outcome"]:
        lines.append(f"Ended: {clean(repair['outcome'])}")
    return "\n".join(lines)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)]) if lines else ""


def _decision(each: Item) -> str:
    who = clean(each["actor"]) + ("" if each["verified"] else " (claimed, unverified)")
    why = f": {clean(each['reason'])}" if each["reason"] else ""
    status = with_glyph(each["status"]) + _said(each["status_reason"])
    return f"{moment(each['at'])}  {status}  {each['kind']} revision {each['revision']} by {who}{why}"


def _intent(each: Item) -> str:
    said = _said(each["proof"] or each["error"])
    return f"{moment(each['created_at'])}  {each['kind']} {cell(each['target'])}: {each['state']}{said}"


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
