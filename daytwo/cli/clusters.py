"""`daytwo clusters`: the definitions that operators write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daytwo.cli import options, output
from daytwo.cli.client import connect
from daytwo.cli.definition_files import file_argument, load
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, Item, since

if TYPE_CHECKING:
    from daytwo.domain.definition import ClusterDefinition

COLUMNS = (
    Column("CLUSTER", lambda c: c["name"]),
    Column("KIND", lambda c: c["kind"]),
    Column("NODES", lambda c: sum(c["nodes"].values())),
    Column("BY STATE", lambda c: [f"{count} {state}" for state, count in sorted(c["nodes"].items())]),
    Column("POLICY", lambda c: c["policy_revision"]),
    Column("CHANGED", lambda c: since(c["updated_at"])),
)


@click.group(cls=Group)
def clusters() -> None:
    """Cluster definitions: check, apply, list."""


@clusters.command("check")
@file_argument
def check(file: Path) -> None:
    """Check a cluster definition without a service: every slip with file, line, field, what was found and allowed."""
    click.echo(f"{file}: {_described(load(file))}")


@clusters.command("apply")
@file_argument
@options.output
def apply(file: Path, form: str) -> None:
    """Declare the cluster in FILE, or change it. Needs root, the service's user, or a lead of the cluster.

    Nodes that are no longer in it keep their history.
    """
    definition = load(file).model_dump(mode="json")
    with connect() as service:
        applied = service.post("/v1/clusters", definition, following=f"daytwo clusters check {file}")
    output.show_list({"items": [applied]}, form, COLUMNS, _name)


@clusters.command("remove")
@click.argument("name")
@options.reason(required=True)
@click.option("--scheduler-gone", is_flag=True, help="Its scheduler is gone for good: marks in it concern nobody.")
def remove(name: str, reason: str, scheduler_gone: bool) -> None:
    """Look after a cluster no more. Needs root, the service's user, or a lead of the cluster.

    Refused while a repair, an incident or an act of it is under way, and while marks of ours are on its nodes. Its
    agents are not heard any more; what was decided and done stays on record.
    """
    body = {"cluster": name, "reason": reason, "scheduler_gone": scheduler_gone}
    with connect() as service:
        gone = service.post("/v1/cluster-removals", body, following=f"daytwo repairs list --cluster {name}")
    click.echo(f"removed: cluster {gone['cluster']}, {gone['nodes']} nodes")


@clusters.command("list")
@options.page
@options.output
def list_clusters(form: str, **wanted: object) -> None:
    """List the declared clusters."""
    with connect() as service:
        page = service.get("/v1/clusters", **wanted)
    output.show_list(page, form, COLUMNS, _name)


def _described(definition: ClusterDefinition) -> str:
    from daytwo.domain.load_definition import expand_nodes

    pools = Counter[str]()
    for group in definition.groups:
        pools[group.pool] += len(expand_nodes(group.nodes))
    counts = ", ".join(f"{count} in pool {pool}" for pool, count in sorted(pools.items()))
    return f"cluster {definition.name} ({definition.kind.value}), {pools.total()} nodes: {counts}"


def _name(cluster: Item) -> str:
    return str(cluster["name"])
