"""How much work a kernel that reduces does again."""

from __future__ import annotations

import pytest

from fusewire_kernels.fusion.recomputation import recomputed_weight
from fusewire_kernels.graph.construction import build_graph
from fusewire_kernels.ops.bodies import weight
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer

TANH = weight("tanh", dtypes.float32)
ELEMENTS = 12


def _recomputed(program: Program, stored: set[str]) -> int:
    """Of one kernel of all that has no input's place, of which the bodies in `stored` are stored."""
    values = build_graph(program, for_gpu=False).values
    members = [number for number, value in enumerate(values) if value.operands]
    return recomputed_weight(values, members, ELEMENTS, lambda number: values[number].body in stored)


def test_nothing_is_computed_again_without_reductions() -> None:
    writer = Writer()
    assert _recomputed(writer.program(writer.exp(writer.tanh(writer.input(4, 3)))), {"tanh", "exp"}) == 0


@pytest.mark.parametrize(("stored", "times"), [(set(), 0), ({"tanh"}, 1)])
def test_what_is_reduced_and_stored_is_computed_twice(stored: set[str], times: int) -> None:
    writer = Writer()
    program = writer.program(writer.sum(writer.tanh(writer.input(4, 3)), axes=(1,), keepdims=True))
    assert _recomputed(program, stored) == times * TANH


def test_reductions_that_wait_for_no_other_share_a_walk() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(4, 3))
    reduced = [reduce(y, axes=(1,), keepdims=True) for reduce in (writer.sum, writer.max, writer.prod)]
    assert _recomputed(writer.program(*reduced), set()) == 0


def test_each_reduction_that_waits_for_another_is_a_walk_of_its_own() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(4, 3))
    for _ in range(3):
        y = writer.subtract(y, writer.sum(y, axes=(1,), keepdims=True))
    subtract = weight("subtract", dtypes.float32)
    # Walks: tanh; tanh and one; tanh and two; tanh and three, to store.
    assert _recomputed(writer.program(y), {"subtract"}) == 3 * TANH + (0 + 1 + 2 + 3 - 3) * subtract


def test_what_lies_between_the_walks_is_computed_once() -> None:
    writer = Writer()
    x = writer.input(4, 3)
    scale = writer.tanh(writer.sum(x, axes=(1,), keepdims=True))
    scaled = writer.multiply(x, scale)
    total = writer.sum(scaled, axes=(1,), keepdims=True)
    assert _recomputed(writer.program(total), set()) == 0
