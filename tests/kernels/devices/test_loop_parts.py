"""How a loop is divided into what is launched together."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.loop_parts import Part, graphs_of_part, parts_of_loop


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


@pytest.mark.parametrize(
    ("iterations", "sizes", "spans"),
    [
        (39, (16, 2), [range(16), range(16, 32), range(32, 34), range(34, 36), range(36, 38), range(38, 39)]),
        (16, (16, 2, 1), [range(16)]),
        (3, (2, 1), [range(2), range(2, 3)]),
        (3, (), [range(3)]),
        (0, (16,), []),
    ],
)
def test_the_largest_graphs_come_first_and_what_no_graph_holds_comes_last(
    iterations: int, sizes: tuple[int, ...], spans: list[range]
) -> None:
    assert list(graphs_of_part(iterations, sizes)) == spans
