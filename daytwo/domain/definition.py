"""A cluster definition: what a cluster is, which nodes it has, and its policy. `load_definition` reads it from YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from daytwo.domain.node_ranges import expand_nodes
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import ClusterKind, Frozen, NodeRole

SERVED: Final = (ClusterKind.SLURM, ClusterKind.SIMULATED)
"""The kinds that this version can look after."""

NODES_TWICE: Final = "a node in two groups"

_REFERENCE: Final = re.compile(r"file:/.+|env:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _a_reference(value: object) -> object:
    if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
        # Not quoted: it may be the secret itself.
        raise ValueError("found something that is no reference, allowed: file:/path or env:NAME")
    return value


Reference = Annotated[str, BeforeValidator(_a_reference)]
"""Where a secret is; never the secret."""


class NodeGroup(Frozen):
    """Nodes that share a pool, a role and an expectation."""

    nodes: tuple[str, ...] = Field(
        description="Names or ranges such as `gpu-[001-016]`, as Slurm writes them; at most 20,000 names.",
    )
    pool: str = Field(default="default", min_length=1, description="Nodes of one pool can replace each other.")
    role: NodeRole = Field(
        default=NodeRole.WORKER,
        description="What the machines are for. Only workers are ever acted on automatically or contained unasked.",
    )
    gpus: int | None = Field(
        default=None,
        ge=0,
        description="How many GPUs each node should have. Absent: what its agent saw first, so one that "
        "was lost before goes unnoticed.",
    )
    domains: tuple[str, ...] = Field(
        default=(),
        description="What the nodes share a fate with: rack, power feed, leaf, NVLink domain. Many to many.",
    )
    power_cap_watts: int | None = Field(
        default=None,
        ge=1,
        description="The power limit to which the site has capped each of their GPUs. What is declared is expected; "
        "any other that is lower than in the rest of the rack is asked about.",
    )
    survives_reboot: dict[str, bool] = Field(
        default_factory=dict,
        description="By path: true if what lies there survives a boot. A path that is not named is told as unknown.",
    )

    @field_validator("nodes")
    @classmethod
    def _names_can_be_read(cls, nodes: tuple[str, ...]) -> tuple[str, ...]:
        if not nodes:
            raise ValueError("found an empty group, allowed: at least one node")
        expand_nodes(nodes)
        return nodes


class SlurmAccess(Frozen):
    """How to reach a Slurm; absent means as in the environment."""

    bin: str | None = Field(default=None, description="The folder of Slurm's programs.")
    conf: str | None = Field(default=None, description="The file slurm.conf.")
    one_machine: bool = Field(
        default=False,
        description="All its nodes are slurmds of one machine (a lab): a reboot does not change the boot id there.",
    )


class BmcAccess(Frozen):
    """How to reach the BMCs of some nodes by Redfish. The password is only referred to, and read when it is used."""

    nodes: tuple[str, ...] = Field(description="Names or ranges, as in a group.")
    address: str = Field(
        pattern=r"^https://[A-Za-z0-9._\-\[\]:{}]+/?$",
        description="`https://` and a host, where `{node}` stands for the node's name: `https://{node}-bmc.example`. "
        "Which machine answers there is read from the machine.",
    )
    ca: str | None = Field(
        default=None,
        pattern="^/",
        description="Absolute path of the certificates that vouch for these BMCs. Absent: those of the system.",
    )
    verify: bool = Field(default=True, description="False: whoever answers at the address is sent the password.")
    user: str = Field(min_length=1, description="The account on the BMCs; it needs the right to reset.")
    password: Reference = Field(description="Where its password is: `file:/path` or `env:NAME`. Never the password.")
    lit_is_located: bool = Field(
        default=True,
        description="An indicator that is `Lit` says that somebody looks for the machine. False for BMCs that know no "
        "`LocationIndicatorActive` and keep it lit in ordinary service.",
    )

    @field_validator("nodes")
    @classmethod
    def _names_can_be_read(cls, nodes: tuple[str, ...]) -> tuple[str, ...]:
        expand_nodes(nodes)
        return nodes


class CommandHardware(Frozen):
    """A program of the operators that acts on machines: docs/hardware-command.md has its questions and answers."""

    driver: Literal["command"] = Field(description="`command`: an operator's program.")
    program: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=1,
        description="The program, by its absolute path, and its first arguments. It is run without a shell.",
    )
    acts: tuple[Literal["reboot", "power-cycle"], ...] = Field(
        default=("power-cycle",), min_length=1, description="What it can do."
    )
    question_seconds: float = Field(
        default=10.0, gt=0, le=10.0, description="How long it may take to answer a question. At most 10 s."
    )
    act_seconds: float = Field(
        default=20.0,
        gt=0,
        le=20.0,
        description="How long it may take to give the order for an act; then it is killed with all that it started. "
        "At most 20 s. Whether the act came true is asked afterwards.",
    )
    settle_seconds: float = Field(
        default=30.0,
        ge=1,
        le=600.0,
        description="How long after that the machine may still be obeying: only then an act counts as not done.",
    )
    check_identity: bool = Field(
        default=True,
        description="Whether it must say which machine it would act on, so that it is compared with what the node's "
        "agent said. False: a wrong machine is the program's own mistake.",
    )
    secrets: dict[str, Reference] = Field(
        default_factory=dict,
        description="What it is given under `secrets`, each as a reference: `file:/path` or `env:NAME`.",
    )

    @field_validator("program")
    @classmethod
    def _is_absolute(cls, program: tuple[str, ...]) -> tuple[str, ...]:
        if not program[0].startswith("/"):
            raise ValueError(f"found {program[0]!r}, allowed: a program by its absolute path")
        return program

    @field_validator("secrets")
    @classmethod
    def _have_names(cls, secrets: dict[str, str]) -> dict[str, str]:
        for name in secrets:
            if not _NAME.fullmatch(name):
                raise ValueError(f"found the name {name!r}, allowed: letters, digits and _")
        return secrets


class ClusterDefinition(Frozen):
    """One cluster as its operators declare it."""

    name: str = Field(
        pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="Lower-case letters, digits and '-', at most 40: it stands in ids and marks.",
    )
    kind: ClusterKind = Field(description="Which scheduler gives out its work: slurm, or simulated for the lab.")
    groups: tuple[NodeGroup, ...] = Field(description="Its nodes; each is in one group.")
    slurm: SlurmAccess = Field(default=SlurmAccess(), description="How to reach its Slurm.")
    simulated_socket: str | None = Field(default=None, description="Where the lab of a simulated cluster listens.")
    bmcs: tuple[BmcAccess, ...] = Field(
        default=(), description="Its BMCs, for power cycles; a node that is in two is reached by the first."
    )
    hardware: CommandHardware | None = Field(
        default=None, description="A program of your own that acts on its machines, where it has no `bmcs`."
    )
    reboot_by: Literal["scheduler", "bmc", "command"] = Field(
        default="scheduler",
        description="Who reboots: the scheduler (Slurm's RebootProgram), the BMC, by a graceful restart, or the "
        "program of `hardware`.",
    )
    policy: Policy = Field(default=Policy(), description="What this site allows.")

    @field_validator("kind", mode="before")
    @classmethod
    def _is_served(cls, kind: object) -> object:
        if kind not in SERVED:
            raise ValueError(f"found {str(kind)!r}, allowed: {' or '.join(SERVED)}, which this version serves")
        return kind

    @model_validator(mode="after")
    def _one_way_to_power(self) -> Self:
        # Unresolved acts name their driver by its number, so no second one may come before the first.
        if self.bmcs and self.hardware:
            raise ValueError("hardware: found it beside bmcs, allowed: one of the two")
        if self.reboot_by == "command" and (self.hardware is None or "reboot" not in self.hardware.acts):
            raise ValueError(
                "reboot_by: found 'command', allowed: scheduler or bmc, or `hardware` with `reboot` among its acts"
            )
        return self

    @model_validator(mode="after")
    def _each_node_once(self) -> Self:
        for name, first, second in twice(expand_nodes(group.nodes) for group in self.groups):
            raise ValueError(f"groups: found {NODES_TWICE}, allowed: {name} in group {first} or in group {second}")
        return self


def twice(groups: Iterable[Iterable[str]]) -> list[tuple[str, int, int]]:
    """Return each name that stands more than once, with the numbers of its first and of its next group."""
    seen: dict[str, int] = {}
    again: dict[str, tuple[str, int, int]] = {}
    for number, names in enumerate(groups):
        for name in names:
            if name in seen:
                again.setdefault(name, (name, seen[name], number))
            seen.setdefault(name, number)
    return list(again.values())
