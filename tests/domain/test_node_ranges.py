"""Names and ranges of nodes, as Slurm writes them."""

from __future__ import annotations

import pytest

from daytwo.domain.node_ranges import MAX_NAMES, RangeError, expand_nodes


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("gpu-07", ("gpu-07",)),
        ("gpu-[001-003]", ("gpu-001", "gpu-002", "gpu-003")),
        ("gpu-[8-11]", ("gpu-8", "gpu-9", "gpu-10", "gpu-11")),
        ("gpu-[1,3,5-6]", ("gpu-1", "gpu-3", "gpu-5", "gpu-6")),
        ("gpu-[098-101]", ("gpu-098", "gpu-099", "gpu-100", "gpu-101")),
        ("r[1-2]n[01-02]", ("r1n01", "r1n02", "r2n01", "r2n02")),
        ("n[1-2].rack", ("n1.rack", "n2.rack")),
        ("a,b[1-2],c", ("a", "b1", "b2", "c")),
        ("[1-2]", ("1", "2")),
    ],
)
def test_a_range_stands_for_its_names_in_order(pattern: str, names: tuple[str, ...]) -> None:
    assert expand_nodes([pattern]) == names


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("gpu-[9-2]", "found 9-2"),
        ("gpu-[a-b]", "found 'a-b'"),
        ("gpu-[]", "found ''"),
        ("gpu-[1-]", "found '1-'"),
        ("gpu-[1-2-3]", "found '1-2-3'"),
        ("gpu-[1", "found 'gpu-[1'"),
        ("gpu-1]", "found 'gpu-1]'"),
        ("gpu-[[1]]", "found 'gpu-[[1]]'"),
        ("", "found an empty name"),
        ("a,,b", "found an empty name"),
        ("a b", "found 'a b'"),
        ("-a", "found '-a'"),
        ("gpu/1", "found 'gpu/1'"),
        ("gpü", "found 'gpü'"),
        ("a" * 254, "found 'aaa"),
        ("gpu-[1-999999999]", "found 1-999999999"),
        ("n[1-200][1-200]", "found 40000 names"),
        ("gpu-[" + "1-5000," * 4 + "1]", "found 20001 names"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_can(pattern: str, found: str) -> None:
    with pytest.raises(RangeError, match="allowed: ") as error:
        expand_nodes([pattern])
    assert found in str(error.value)


def test_as_many_names_as_allowed_are_read() -> None:
    assert len(expand_nodes([f"n[1-{MAX_NAMES}]"])) == MAX_NAMES


def test_the_limit_is_for_all_patterns_together() -> None:
    with pytest.raises(RangeError, match="found 20001 names"):
        expand_nodes([f"n[1-{MAX_NAMES}]", "one-more"])
