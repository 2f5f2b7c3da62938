"""Which runs give back their memory: the largest, if they suffice."""

from __future__ import annotations

import pytest

from fusewire_server.scheduling.giving_way import giving_way


@pytest.mark.parametrize(
    ("lacking_bytes", "above_bytes", "expected"),
    [
        (0, 0, []),
        (1, 0, ["great"]),
        (101, 0, ["great", "middle"]),
        (161, 0, []),
        (101, 10, ["great", "middle"]),
        (101, 50, []),
        (100, 50, ["great"]),
        (1, 100, []),
    ],
)
def test_the_greatest_runs_give_way_if_they_suffice_and_are_greater_than_who_asks(
    lacking_bytes: int, above_bytes: int, expected: list[str]
) -> None:
    reserved_bytes = {"small": 10, "great": 100, "middle": 50}
    assert giving_way(reserved_bytes, lacking_bytes, above_bytes=above_bytes) == expected
