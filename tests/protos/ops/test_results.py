"""Where several arrays lie in the one result that holds them."""

from __future__ import annotations

from fusewire_protos.ops.results import Part, Results


def test_arrays_lie_one_behind_the_other_along_the_last_axis() -> None:
    results = Results((5,), ((2, 3), (), (4,)))
    assert results.packed == (5, 11)
    assert [*results.parts()] == [Part(0, 6, (5, 2, 3)), Part(6, 1, (5,)), Part(7, 4, (5, 4))]


def test_arrays_without_elements_take_no_place() -> None:
    results = Results((), ((0, 3), (2,)))
    assert results.packed == (2,)
    assert [part.start for part in results.parts()] == [0, 0]
