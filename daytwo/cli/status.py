"""`daytwo status`: the installation in one answer."""

from __future__ import annotations

import click

from daytwo.cli import exit_codes, options, output
from daytwo.cli.client import connect
from daytwo.cli.output import Item, cell, since

STATES = {"ok": "ok", "away": "AWAY", "unknown": "UNKNOWN", "never-seen": "never seen", "starting": "starting"}
MOST_DOMAINS = 5
ASKS = ("proposed", "needs-help")
"""Repairs that wait for somebody's answer. One that is held waits because somebody wanted that."""


@click.command()
@click.option("--exit-status", is_flag=True, help="Exit with 8 when something is not healthy, and nothing is away.")
@options.output
@click.pass_context
def status(context: click.Context, exit_status: bool, form: str) -> None:
    """Is the plane well, and is the fleet? What is away, nodes and repairs, who waits for whom, what is frozen.

    The first line is about daytwo itself, the second about the nodes. Answers within a second whatever hangs. Exits
    with 10 when a part is away.
    """
    with connect() as service:
        found = service.get("/v1/status")
    output.show_one(found, form, as_text, "healthy" if found["healthy"] else "unhealthy")
    context.exit(exit_code(found, exit_status=exit_status))


def exit_code(found: Item, *, exit_status: bool) -> int:
    """What the command says to scripts."""
    if found.get("away"):
        return exit_codes.AWAY
    return exit_codes.UNHEALTHY if exit_status and not found["healthy"] else exit_codes.OK


def as_text(found: Item) -> str:
    """The status for people: the plane, then the fleet, then what goes on."""
    lines = [
        _plane(found),
        *([] if "store" in found.get("away", ()) else [_nodes(found)]),
        *(f"  {'part:' if not n else '':<10} {_part(part)}" for n, part in enumerate(found.get("parts", ()))),
    ]
    if "store" in found.get("away", ()):
        return "\n".join(
            [*lines, "  Nothing else is known until the store answers. What is under way waits for it too."]
        )
    return "\n".join([*lines, *_loops(found), *_fleet(found), *_going_on(found)])


def _plane(found: Item) -> str:
    """Whether daytwo itself is well, in a line."""
    away = found.get("away", ())
    starting, unknown = _in_state(found, "starting"), _in_state(found, "unknown")
    stopped = [loop["name"] for loop in found["loops"] if not loop["alive"]]
    for state, what in (
        ("unhealthy", away and f"{', '.join(map(cell, away))} away"),
        ("unknown", starting and f"{', '.join(map(cell, starting))} starting"),
        ("unhealthy", stopped and f"nobody runs {', '.join(map(cell, stopped))}"),
        ("unhealthy", not found["loops"] and "no controller has ever run"),
        ("unknown", unknown and f"nothing is known of {', '.join(map(cell, unknown))}"),
    ):
        if what:
            return output.with_glyph(state, f"plane: {what}")
    return output.with_glyph("healthy", "plane: well")


def _in_state(found: Item, state: str) -> list[str]:
    return [part["part"] for part in found.get("parts", ()) if part["state"] == state]


def _nodes(found: Item) -> str:
    """Whether the nodes are well, and whether anybody is asked, in a line."""
    total = sum(found["nodes"].values())
    bad = {state: count for state, count in found["nodes"].items() if state != "healthy"}
    asks = sum(found["repairs"].get(state, 0) for state in ASKS)
    what = f"{sum(bad.values())} of {total} nodes not healthy ({_counts(bad)})" if bad else f"all {total} nodes healthy"
    asked = f"{asks} asks you" if asks == 1 else f"{asks} ask you" if asks else "nobody is asked"
    frozen = ", acts are frozen" if found["freezes"] else ""
    if not total:
        return output.with_glyph("unknown", f"fleet: no node is declared{frozen}")
    return output.with_glyph("unhealthy" if bad or frozen else "healthy", f"fleet: {what}, {asked}{frozen}")


def _part(part: Item) -> str:
    line = f"{cell(part['part']):<24} {STATES.get(part['state'], cell(part['state']))}"
    if part["state"] in ("ok", "never-seen"):
        return line
    times = f" since {output.moment(part['since'])} ({since(part['since'])})" if part.get("since") else ""
    tried = f", last tried {since(part['tried_at'])} ago" if part["state"] == "unknown" and part.get("tried_at") else ""
    return f"{line}{times}{tried}: {cell(part['why'])}"


def _loops(found: Item) -> list[str]:
    loops = [f"  loop:      {cell(loop['name'])} {_alive(loop)}" for loop in found["loops"]]
    return loops or ["  loop:      none has ever run: is the controller up?"]


def _alive(loop: Item) -> str:
    step = f", last step {since(loop['stepped_at'])} ago" if loop.get("stepped_at") else ""
    if loop["alive"]:
        return f"runs on {cell(loop['holder'])}{step}"
    return f"STOPPED, its lease ran until {output.moment(loop['expires_at'])}{step}"


def _fleet(found: Item) -> list[str]:
    acts = found.get("acts") or {"by_state": {}, "oldest_at": None}
    oldest = f", the oldest for {since(acts['oldest_at'])}" if acts["oldest_at"] else ""
    return [
        f"  nodes:     {_counts(found['nodes'])}",
        f"  agents:    {cell(found.get('silent_agents'))} silent{_silent_after(found)}",
        f"  repairs:   {_counts(found['repairs'])}",
        f"  firing:    {found['firing']} findings",
        f"  decisions: {found['decisions_pending']} not delivered yet",
        f"  acts:      {_counts(acts['by_state'])}{oldest}",
    ]


def _silent_after(found: Item) -> str:
    """When silence counts; a node that was heard less long ago is not silent yet."""
    limits = [output.lasting(each) for each in found.get("silent_after_seconds", ())]
    return f" (unheard for {' or '.join(limits)}, as the policy says)" if limits else ""


def _going_on(found: Item) -> list[str]:
    lines = [f"  frozen:    {cell(f['scope'])} by {cell(f['actor'])}: {cell(f['reason'])}" for f in found["freezes"]]
    lines += [f"  incident:  {_incident(each)}" for each in found.get("incidents", ())]
    lines += [f"  needs you: {_waiting(each)}" for each in found.get("waiting_for_people", ())]
    return lines + [f"  waits:     {_waiting(each)}" for each in found.get("waiting", ())]


def _incident(incident: Item) -> str:
    largest = sorted(incident["domains"].items(), key=lambda item: (-item[1], item[0]))
    where = ", ".join(f"{cell(domain)} ({nodes})" for domain, nodes in largest[:MOST_DOMAINS])
    head = f"{cell(incident['id'])} {cell(incident['cluster'])}: {incident['nodes']} nodes with"
    return f"{head} {cell(incident['fault_class'])} faults since {output.moment(incident['first_at'])}, {where}"


def _waiting(repair: Item) -> str:
    node = f"{cell(repair['cluster'])}/{cell(repair['node'])}"
    return f"{cell(repair['id'])} {node} {cell(repair['state'])} for {since(repair['since'])}: {cell(repair['why'])}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"
