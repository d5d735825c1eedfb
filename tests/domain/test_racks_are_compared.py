"""A GPU that differs from its rack's median under load is asked about; what its rack shares is the site's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daytwo.domain.rack_median import Compared, Loaded, compare

HERE = ("n0", "GPU-0")


def a_rack(nodes: int = 6, **first: Any) -> list[Loaded]:
    """A rack of nodes with a GPU each at 60 °C and 700 W, of which the first is otherwise."""
    rack = [Loaded(f"n{number}", f"GPU-{number}", "H100", 60, False, 700) for number in range(nodes)]
    return [rack[0]._replace(**first), *rack[1:]]


def told(rack: list[Loaded], *, firing: bool = False) -> str | None:
    return compare(rack, frozenset({HERE} if firing else ())).told.get(HERE)


@pytest.mark.parametrize(("temperature", "asks"), [(69, False), (70, True), (95, True), (30, False)])
def test_a_gpu_hotter_than_its_racks_median_under_load_is_asked_about(temperature: int, asks: bool) -> None:
    assert bool(told(a_rack(temperature=temperature))) is asks


def test_what_is_told_names_the_median() -> None:
    assert told(a_rack(temperature=72)) == "72 °C under load, 12 over the median of its rack (60 °C)"


@pytest.mark.parametrize(("temperature", "asks"), [(65, True), (64, False)])
def test_it_is_like_its_rack_again_only_when_it_has_cooled_well(temperature: int, asks: bool) -> None:
    assert bool(told(a_rack(temperature=temperature), firing=True)) is asks


@pytest.mark.parametrize(("held", "asks", "sites"), [(1, True, 0), (2, True, 0), (3, False, 3), (4, False, 0)])
def test_a_gpu_held_down_alone_is_asked_about_and_not_where_its_rack_is_too(held: int, asks: bool, sites: int) -> None:
    rack = [each._replace(held_down=number < held) for number, each in enumerate(a_rack(7))]
    compared = compare(rack, frozenset())
    assert (bool(compared.told[HERE]), len(compared.sites)) == (asks, sites)


@pytest.mark.parametrize(
    ("limit", "cap", "asks"), [(600, None, True), (600, 600, False), (600, 500, True), (690, None, False)]
)
def test_a_declared_cap_is_expected(limit: int, cap: int | None, asks: bool) -> None:
    assert bool(told(a_rack(power_limit=limit, cap=cap))) is asks


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_too_few_nodes_under_load_decide_nothing(nodes: int) -> None:
    assert told(a_rack(nodes, temperature=95), firing=True) is None


def test_a_node_that_names_many_gpus_counts_once() -> None:
    liars = [Loaded("n9", f"GPU-9-{number}", "H100", 10) for number in range(256)]
    assert told([*a_rack(), *liars]) == ""


def test_another_model_is_compared_with_nothing() -> None:
    assert told(a_rack(temperature=95, model="A100")) is None


def test_the_other_gpus_of_the_node_are_no_rack() -> None:
    rack = [each._replace(node="n0") for each in a_rack(8, temperature=95)]
    assert compare(rack, frozenset()) == Compared({})


@pytest.mark.parametrize(("hot", "sites"), [(2, ()), (3, ("n0", "n1", "n2"))])
def test_three_outliers_of_a_rack_are_the_sites(hot: int, sites: tuple[str, ...]) -> None:
    rack = [each._replace(temperature=90 if number < hot else 60) for number, each in enumerate(a_rack(9))]
    compared = compare(rack, frozenset())
    assert (compared.sites, bool(compared.told[HERE])) == (sites, not sites)


loads = st.builds(
    Loaded,
    node=st.sampled_from([f"n{number}" for number in range(6)]),
    gpu=st.sampled_from(["GPU-0", "GPU-1"]),
    model=st.sampled_from(["H100", "A100", ""]),
    temperature=st.integers(-50, 200),
    held_down=st.none() | st.booleans(),
    power_limit=st.none() | st.integers(0, 10_000),
    cap=st.none() | st.integers(1, 10_000),
)


@given(st.lists(loads, max_size=24), st.booleans())
def test_whatever_is_said_is_compared_and_the_sites_own_asks_nobody(rack: list[Loaded], firing: bool) -> None:
    compared = compare(rack, frozenset(each.place for each in rack) if firing else frozenset())
    assert compared.told.keys() <= {each.place for each in rack}
    assert not (compared.sites and any(compared.told.values()))
