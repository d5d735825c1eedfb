"""A cluster definition: what a cluster is, which nodes it has, and its policy."""

from __future__ import annotations

from pydantic import Field

from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import ClusterKind, Frozen, NodeRole


class NodeGroup(Frozen):
    """Nodes that share a pool, a role and an expectation. `nodes` are names or ranges such as `gpu-[001-016]`."""

    nodes: tuple[str, ...]
    pool: str = "default"
    role: NodeRole = NodeRole.WORKER
    gpus: int | None = Field(default=None, ge=0)
    domains: tuple[str, ...] = ()
    survives_reboot: dict[str, bool] = Field(default_factory=dict)


class SlurmAccess(Frozen):
    """How to reach a Slurm: the folder of its programs and its configuration; absent means as in the environment."""

    bin: str | None = None
    conf: str | None = None


class ClusterDefinition(Frozen):
    """One cluster as its operators declare it. `simulated_socket` is where the lab of a simulated cluster listens."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
    kind: ClusterKind
    groups: tuple[NodeGroup, ...]
    slurm: SlurmAccess = SlurmAccess()
    simulated_socket: str | None = None
    policy: Policy = Policy()
