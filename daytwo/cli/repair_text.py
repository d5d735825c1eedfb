"""A repair as text for people. The proposal itself comes from the service in the words that everybody is told."""

from __future__ import annotations

from daytwo.cli.output import Item, cell, clean, moment, since, with_glyph

LONGEST_LINE = 2000


def as_text(repair: Item) -> str:
    """The proposal first, because somebody may have to decide; then what happened so far."""
    parts = [_head(repair)]
    if repair["message"]:
        parts.append(_proposal(repair))
    parts += [
        _section("stamps", [f"{name}: {moment(at)}" for name, at in repair["stamps"].items()]),
        _section("timeline", [event_line(event) for event in repair["timeline"]]),
        _section("decisions", [_decision(each) for each in repair["decisions"]]),
        _section("acts", [_intent(each) for each in repair["intents"]]),
        _section("tests", [line for run in repair["checks"] for line in _check_run(run)]),
    ]
    return "\n\n".join(part for part in parts if part)


def event_line(event: Item) -> str:
    """One line of the timeline."""
    moved = "" if event["from_state"] == event["to_state"] else f" → {event['to_state']}"
    text = f": {clean(event['text'])}" if event["text"] else ""
    return f"{moment(event['at'])}  {event['event']}{moved}  by {clean(event['actor'])}{text}"


def block(text: str) -> str:
    """Several lines, cleaned, with their indentation kept."""
    lines = text.splitlines()
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + clean(line, limit=LONGEST_LINE) for line in lines)


def _proposal(repair: Item) -> str:
    shown = block(repair["message"])
    # Its last line says how to approve it: only while that can be done does it stand without a caution.
    return shown if repair["state"] == "proposed" else f"the last proposal was:\n{shown}"


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
