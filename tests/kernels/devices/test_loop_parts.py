"""How a loop is divided into what is launched together."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.loop_parts import Part, launch_by_graphs, parts_of_loop


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ((5,), [Part(0, 5, 1)]),
        ((4, 4), [Part(0, 4, 2)]),
        ((7, 3, 3, 1), [Part(0, 1, 4), Part(1, 3, 3), Part(3, 7, 1)]),
    ],
)
def test_a_part_ends_where_a_row_has_its_count(counts: tuple[int, ...], parts: list[Part]) -> None:
    assert list(parts_of_loop(counts)) == parts


def test_the_largest_graphs_come_first() -> None:
    launched: list[tuple[int, int]] = []

    def launch(first: int, size: int) -> bool:
        launched.append((first, size))
        return True

    assert launch_by_graphs(39, (16, 2), launch) == 38
    assert launched == [(0, 16), (16, 16), (32, 2), (34, 2), (36, 2)]


def test_a_smaller_graph_serves_while_a_larger_one_is_not_there() -> None:
    assert launch_by_graphs(39, (16, 2, 1), lambda first, size: size == 2 and first < 20) == 20


def test_without_graphs_nothing_is_launched_by_them() -> None:
    assert launch_by_graphs(39, (), lambda *_: True) == 0
