"""`daytwo status`: the installation in one answer."""

from __future__ import annotations

import click

from daytwo.cli import exit_codes, options, output
from daytwo.cli.client import connect
from daytwo.cli.output import Item, cell, since

STATES = {"ok": "ok", "away": "AWAY", "unknown": "UNKNOWN", "never-seen": "never seen", "starting": "starting"}
MOST_DOMAINS = 5


@click.command()
@click.option("--exit-status", is_flag=True, help="Exit with 8 when something is not healthy, and nothing is away.")
@options.output
@click.pass_context
def status(context: click.Context, exit_status: bool, form: str) -> None:
    """Is the plane well? What is away and since when, nodes and repairs, who waits for whom, what is frozen.

    Answers within a second whatever hangs. Exits with 10 when a part is away.
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
        f"{output.with_glyph('healthy' if found['healthy'] else 'unhealthy')}",
        *(f"  {'part:' if not n else '':<10} {_part(part)}" for n, part in enumerate(found.get("parts", ()))),
    ]
    if "store" in found.get("away", ()):
        return "\n".join(
            [*lines, "  Nothing else is known until the store answers. What is under way waits for it too."]
        )
    return "\n".join([*lines, *_loops(found), *_fleet(found), *_going_on(found)])


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
        f"  agents:    {cell(found.get('silent_agents'))} silent",
        f"  repairs:   {_counts(found['repairs'])}",
        f"  firing:    {found['firing']} findings",
        f"  decisions: {found['decisions_pending']} not delivered yet",
        f"  acts:      {_counts(acts['by_state'])}{oldest}",
    ]


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
