"""`daytwo nodes`: the machines, and the tokens of their agents."""

from __future__ import annotations

import click

from daytwo.cli import options, output
from daytwo.cli.client import Service, connect
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, Item, ago, cell, clean, moment, since, span, until

COLUMNS = (
    Column("NODE", lambda n: f"{n['cluster']}/{n['name']}"),
    Column("STATE", lambda n: n["state"], state=True),
    Column("SINCE", lambda n: since(n["state_since"])),
    Column("HEARD", lambda n: since(n["last_heard_at"])),
    Column("FIRING", lambda n: n["firing"]),
    Column("REPAIR", lambda n: n["repair"]),
    Column("WHY", lambda n: "; ".join([n["state_why"], *(said for said in pauses(n) if not _is_told(n, said))])),
)


@click.group(cls=Group)
def nodes() -> None:
    """The nodes: their state, and tokens for their agents."""


@nodes.command("list")
@options.states("Only nodes in this state: healthy, booting, unhealthy, pending, paused, unknown.")
@options.cluster
@options.page
@options.output
def list_nodes(form: str, **wanted: object) -> None:
    """List nodes by cluster and name."""
    with connect() as service:
        page = service.get("/v1/nodes", **wanted)
    output.show_list(page, form, COLUMNS, full_name)


@nodes.command("show")
@click.argument("node")
@options.output
def show_node(node: str, form: str) -> None:
    """Show one node, named `node` or `cluster/node`."""
    with connect() as service:
        found = service.get(f"/v1/nodes/{node}")
    output.show_one(found, form, as_text, full_name(found))


@nodes.command("repair")
@click.argument("node")
@click.option("--action", metavar="ACTION", required=True, help="What should be done: reboot, verify, inspect, …")
@options.reason(required=True)
@options.output
def repair(node: str, action: str, reason: str, form: str) -> None:
    """Ask for a repair of a node that nobody found faulty. It is proposed, and needs approval like any other."""
    with connect() as service:
        opened = service.post("/v1/repairs", {"node": node, "action": action, "reason": reason})
    output.show_one(opened, form, lambda found: f"{found['id']}  {action} of {full_name_of(found)}", opened["id"])
    output.note(f"Next: daytwo repairs show {opened['id']}")


def full_name_of(repair: Item) -> str:
    """`cluster/node` of a repair."""
    return f"{cell(repair['cluster'])}/{cell(repair['node'])}"


@nodes.command("hold")
@click.argument("node")
@options.reason(required=True)
@options.output
def hold(node: str, reason: str, form: str) -> None:
    """Open no repair on a node, and hold the one that is open. What has begun to act goes on."""
    _hold("/v1/node-holds", "is held", node, reason, form=form)


@nodes.command("release")
@click.argument("node")
@options.reason(required=True)
@options.output
def release(node: str, reason: str, form: str) -> None:
    """End the hold of a node, and of the repair that it held. It is looked at again."""
    _hold("/v1/node-releases", "is released", node, reason, form=form)


@nodes.command("quiesce")
@click.argument("node")
@click.option(
    "--for",
    "seconds",
    type=options.Duration("1h"),
    required=True,
    help="How long, such as 10m, at most 1h; 0s ends it.",
)
@options.reason(required=True)
@options.output
def quiesce(node: str, seconds: int, reason: str, form: str) -> None:
    """Let a node's agent hold no GPU, so that a reset or another driver can have them. It ends by itself.

    The agent hears of it with its next pulse, within a minute. Who else holds a GPU is told.
    """
    with connect() as service:
        asked = service.post("/v1/node-quiets", {"node": node, "seconds": seconds, "reason": reason})
        found = _answered(service, asked)
    output.show_one(found, form, lambda answer: _quiet_text(answer, seconds), full_name_of(found))


def _answered(service: Service, asked: Item) -> Item:
    """Wait for the agent; the request lapses by itself."""
    import time

    while asked["state"] in ("open", "offered", "accepted"):
        time.sleep(0.5)
        asked = service.get(f"/v1/node-quiets/{asked['id']}")
    return asked


def _quiet_text(found: Item, seconds: int) -> str:
    if found["state"] != "done" or found["error"]:
        return f"{full_name_of(found)}: not let go: {cell(found['error'] or found['state'])}"
    others = ", ".join(cell(each) for each in found["holders"])
    what = f"its agent holds no GPU for {output.lasting(seconds)}" if seconds else "its agent takes its GPUs again"
    return f"{full_name_of(found)}: {what}" + (f"; others hold a GPU: {others}" if others else "")


def _hold(path: str, done: str, node: str, reason: str, *, form: str) -> None:
    with connect() as service:
        found = service.post(path, {"node": node, "reason": reason})
    output.show_one(found, form, lambda held: f"{full_name_of(held)} {done}", f"{found['cluster']}/{found['node']}")
    if found["decision"]:
        output.note(f"So is its open repair: daytwo repairs list --node {full_name_of(found)}")


@nodes.command("token")
@click.argument("node")
@click.option("--revoke", is_flag=True, help="Issue none: make every token of the node worthless at once.")
@options.output
def token(node: str, revoke: bool, form: str) -> None:
    """Issue a token for a node's agent. It is shown once; older ones stop working when the node uses this one.

    \b
      daytwo nodes token gpu-07 > token && scp token gpu-07:/etc/daytwo/token
    """
    with connect() as service:
        done = service.post("/v1/revocations" if revoke else "/v1/tokens", {"node": node})
    as_text = _revoked if revoke else lambda issued: str(issued["token"])
    output.show_one(done, form, as_text, f"{done['cluster']}/{done['node']}")


def _revoked(done: Item) -> str:
    return f"{done['revoked']} tokens of {cell(done['cluster'])}/{cell(done['node'])} are worthless now"


def full_name(node: Item) -> str:
    """`cluster/node`, which every command accepts."""
    return f"{node['cluster']}/{node['name']}"


def as_text(node: Item) -> str:
    """A node for people: what it is, what is wrong with it, what happened to it."""
    lines = [
        f"{cell(full_name(node))}  {_state(node)}  {cell(node['state_why'])}",
        f"  role {cell(node['role'])}, pool {cell(node['pool'])}, domains {cell(node['domains'])}",
        f"  agent {cell(node['agent_version'])}, boot {cell(node['boot_id'])}, {_heard(node)}",
        f"  kernel log from {cell(node['kernel_log'])}",
        f"  GPUs expected {cell(node['expected_gpus'])}",
        f"  scheduler says {_facts(node)}",
        *(f"  {clean(text)}" for text in pauses(node)),
    ]
    if node["repair"]:
        lines.append(f"  repair {node['repair']}: daytwo repairs show {node['repair']}")
    lines += [f"  check {cell(name)}: {cell(state)}" for name, state in node["checks"].items()]
    lines += ["", "findings:", *(_finding(each) for each in node["findings"])] if node["findings"] else []
    lines += ["", "history:", *(_transition(each) for each in node["transitions"])] if node["transitions"] else []
    lines += ["", "repairs:", *(_repair(each) for each in node["repairs"])] if node["repairs"] else []
    return "\n".join(lines)


def pauses(node: Item) -> list[str]:
    """What people have asked for on a node, each as a sentence: held, snoozed, its agent quiet."""
    said = []
    if node.get("held_by"):
        at = f" since {moment(node['held_at'])}" if node["held_at"] else ""
        said.append(f"held by {node['held_by']}{at}: {node['held_reason']}")
    for each in node.get("snoozes", ()):
        faults = "" if set(each["faults"]) >= set(node["firing"]) else f"{', '.join(each['faults'])} "
        said.append(f"{faults}snoozed {until(each['until'])}{_by(each)}")
    if quiet := node.get("quiet"):
        said.append(f"its agent holds no GPU {until(quiet['until'])}{_by(quiet)}")
    return said


def _is_told(node: Item, pause: str) -> bool:
    """True for a hold that the node's state is about already."""
    return pause.startswith("held by ") and str(node["state_why"]).startswith("held by ")


def _by(asked: Item) -> str:
    who = f" by {asked['actor']}" if asked["actor"] else ""
    return f"{who}: {asked['reason']}" if asked["reason"] else who


def _heard(node: Item) -> str:
    if not node["last_heard_at"]:
        return "never heard"
    limit = node.get("silent_after_seconds")  # a service of 0.1 does not say
    return f"heard {ago(node['last_heard_at'])}" + (f" (silent after {output.lasting(limit)})" if limit else "")


def _state(node: Item) -> str:
    return f"{output.with_glyph(node['state'])} for {span(node['state_since'])}"


def _facts(node: Item) -> str:
    facts = node["facts"]
    if not facts:
        return "nothing that could be read"
    states, reason = cell(facts.get("states")), cell(facts.get("reason"))
    if node["state"] == "healthy" and facts.get("ownership") in ("ours", "half-done"):
        return f"{states}, reason {reason}; so {ago(node['facts_at'])}, not read since daytwo's marks came off"
    return f"{states}, reason {reason}; so since {moment(node['facts_at'])} ({span(node['facts_at'])})"


def _finding(each: Item) -> str:
    ends = f", cleared by {cell(each['cleared_by'])} {ago(each['cleared_at'])}" if each["cleared_at"] else ""
    what = f"{output.with_glyph(each['status'])} {cell(each['fault'])} on {cell(each['entity'])}"
    return f"  {what}, {each['count']}×, last {ago(each['last_seen'])}{ends}"


def _transition(each: Item) -> str:
    return f"  {moment(each['at'])}  {cell(each['from_state'])} → {cell(each['to_state'])}  {cell(each['why'])}"


def _repair(each: Item) -> str:
    return f"  {each['id']}  {output.with_glyph(each['state'])}  {cell(each['action'])} for {cell(each['fault'])}"
