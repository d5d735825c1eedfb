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
FEWEST_NODES: Final = 3
"""So many other nodes must be under load: the median of fewer says nothing of the rack."""
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
    """Compare the loaded GPUs of one rack with those of its other nodes. What cannot be compared is not in the answer.

    `firing` are those already asked about. Where the site is the cause, nobody is asked about any of them.
    """
    told = {each.place: _differs(each, others, each.place in firing) for each, others in _pairs(rack)}
    nodes = tuple(sorted({node for (node, _), why in told.items() if why}))
    if len(nodes) < SITES_OWN:
        return Compared(told)
    return Compared(dict.fromkeys(told, ""), nodes)


def _pairs(rack: Sequence[Loaded]) -> Iterable[tuple[Loaded, list[Loaded]]]:
    """Each GPU with those of the same model in enough other nodes."""
    for each in rack:
        others = [other for other in rack if other.node != each.node and other.model == each.model]
        if len({other.node for other in others}) >= FEWEST_NODES:
            yield each, others


def _differs(each: Loaded, others: Sequence[Loaded], is_firing: bool) -> str:
    reasons = (_is_hot(each, others, is_firing), _is_held_down(each, others), _is_capped(each, others))
    return "; ".join(filter(None, reasons))


def _is_hot(each: Loaded, others: Sequence[Loaded], is_firing: bool) -> str:
    middle = median(other.temperature for other in others)
    over = each.temperature - middle
    if over < (COOLED_TO if is_firing else HOTTER_BY):
        return ""
    return f"{each.temperature} °C under load, {over:g} over the median of its rack ({middle:g} °C)"


def _is_held_down(each: Loaded, others: Sequence[Loaded]) -> str:
    known = [other.held_down for other in others if other.held_down is not None]
    if not each.held_down or not known or sum(known) * 2 >= len(known):
        return ""
    return (
        f"its clocks are held down by the hardware, those of {len(known) - sum(known)} of {len(known)} others are not"
    )


def _is_capped(each: Loaded, others: Sequence[Loaded]) -> str:
    limits = [other.power_limit for other in others if other.power_limit]
    if each.power_limit is None or each.power_limit == each.cap or not limits:
        return ""
    middle = median(limits)
    if each.power_limit >= LIMIT_SHARE * middle:
        return ""
    return f"capped to {each.power_limit} W where its rack has {middle:g} W and no such cap is declared"
