"""A length of time in a sentence: its two largest units, and nothing that is none."""

from __future__ import annotations

import pytest

from daytwo.cli.options import in_seconds
from daytwo.cli.output import lasting


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (-1, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (101, "1m 41s"),
        (3_600, "1h"),
        (3_659, "1h"),
        (11_100, "3h 5m"),
        (86_400, "1d"),
        (187_000, "2d 3h"),
    ],
)
def test_a_length_of_time_is_told_in_two_units(seconds: float, said: str) -> None:
    assert lasting(seconds) == said


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), ("0s", 0)),
        *(("", None), ("90", None), ("1w", None), ("h", None), ("1h 30m", None), ("-1h", None), ("1.5h", None)),
    ],
)
def test_a_length_of_time_is_read_as_it_is_typed(text: str, seconds: int | None) -> None:
    assert in_seconds(text) == seconds
