"""Work in steps: how many steps there are, and that the result is that of the whole."""

from __future__ import annotations

import pytest

from fusewire_protos.in_steps import InSteps, finished, mapped


def steps_of(steps: InSteps[list[int]]) -> int:
    return 1 + sum(1 for _ in steps)


def test_all_items_are_mapped_in_order() -> None:
    assert finished(mapped(abs, [-1, 2, -3, 4, -5], 2)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("items", "steps"), [(0, 1), (1, 1), (2, 1), (3, 2), (5, 3)])
def test_few_items_are_one_step(items: int, steps: int) -> None:
    assert steps_of(mapped(abs, range(items), 2)) == steps


def test_an_error_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        finished(mapped(lambda item: 1 // item, [1, 0], 1))
