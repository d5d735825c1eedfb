"""Which GPUs differ from the median of their rack under load: one of them asks, three nodes are the site's. Pure.

`daytwo.controller.racks` calls it for each domain that a definition declares. Heat, power and caps are mostly the
site's (operations, rule 22): a GPU that differs from its neighbours is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

OUTLIER: Final = "rack-outlier"
HOTTER_BY: Final = 10
"""°C over the median of the rack at which a GPU is asked about (judgement)."""
COOLED_TO: Final = 5
"""°C over the median at which one that was asked about is like the others again: less than `HOTTER_BY`, no flapping."""
LIMIT_SHARE: Final = 0.95
"""Of the rack's median power limit; what is lower was capped (judgement: limits are set, and do not drift)."""
FEWEST_NODES: Final = 4
"""So many nodes must be under load, itself counted: the median of fewer says nothing of the rack."""
SITES_OWN: Final = 3
"""Nodes of a rack that differ at once are facilities' business (operations, rule 22)."""

Place = tuple[str, str]
"""A node, and the UUID of one of its GPUs."""


class Loaded(NamedTuple):
    """One GPU after ten minutes under load. `cap` is the power limit that the site has declared for it, in W."""

    node: str
    gpu: str
    model: str
    temperature: int
    held_down: bool | None = None
    power_limit: int | None = None
    cap: int | None = None

    @property
    def place(self) -> Place:
        """Where it is."""
        return self.node, self.gpu


class Compared(NamedTuple):
    """What was compared: of each GPU why it differs, or "" where it does not. `sites` nodes differ, too many to ask."""

    told: Mapping[Place, str]
    sites: tuple[str, ...] = ()


def compare(rack: Sequence[Loaded], firing: frozenset[Place]) -> Compared:
    """Compare the loaded GPUs of one rack with its median. What cannot be compared is not in the answer.

    `firing` are those already asked about. Where the site is the cause, nobody is asked about any of them.
    """
    told: dict[Place, str] = {}
    for gpus in _by_model(rack).values():
        if (usual := _usual(gpus)) is not None:
            told.update({gpu.place: _differs(gpu, usual, gpu.place in firing) for gpu in gpus})
    nodes = tuple(sorted({node for (node, _), why in told.items() if why}))
    return Compared(dict.fromkeys(told, ""), nodes) if len(nodes) >= SITES_OWN else Compared(told)


class _Usual(NamedTuple):
    """What is usual in a rack: medians over its nodes, of which each counts once, whatever it says of how many GPUs."""

    temperature: float
    held_down: float
    power_limit: float | None


def _by_model(rack: Iterable[Loaded]) -> dict[str, list[Loaded]]:
    models: dict[str, list[Loaded]] = {}
    for gpu in rack:
        models.setdefault(gpu.model, []).append(gpu)
    return models


def _usual(gpus: Iterable[Loaded]) -> _Usual | None:
    nodes: dict[str, list[Loaded]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu.node, []).append(gpu)
    if len(nodes) < FEWEST_NODES:
        return None
    limits = [[gpu.power_limit for gpu in own if gpu.power_limit] for own in nodes.values()]
    return _Usual(
        median(median(gpu.temperature for gpu in own) for own in nodes.values()),
        median(median(bool(gpu.held_down) for gpu in own) for own in nodes.values()),
        median(median(own) for own in limits if own) if any(limits) else None,
    )


def _differs(gpu: Loaded, usual: _Usual, is_firing: bool) -> str:
    return "; ".join(filter(None, (_is_hot(gpu, usual, is_firing), _is_held_down(gpu, usual), _is_capped(gpu, usual))))


def _is_hot(gpu: Loaded, usual: _Usual, is_firing: bool) -> str:
    over = gpu.temperature - usual.temperature
    if over < (COOLED_TO if is_firing else HOTTER_BY):
        return ""
    return f"{gpu.temperature} °C under load, {over:g} over the median of its rack ({usual.temperature:g} °C)"


def _is_held_down(gpu: Loaded, usual: _Usual) -> str:
    if not gpu.held_down or usual.held_down > 0:
        return ""
    return "its clocks are held down by the hardware, and those of most of its rack are not"


def _is_capped(gpu: Loaded, usual: _Usual) -> str:
    if gpu.power_limit is None or usual.power_limit is None or gpu.power_limit == gpu.cap:
        return ""
    if gpu.power_limit >= LIMIT_SHARE * usual.power_limit:
        return ""
    return f"capped to {gpu.power_limit} W where its rack has {usual.power_limit:g} W and no such cap is declared"
