"""Programs for other sizes have one structure, other ops another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, build
from fusewire_server.programs.structure import difference, inputs_of, structure_of
from tests.server.parts import op


def _net(batch: int, width: int, *, last: str = "tanh", live: tuple[int, ...] = (2,)) -> Program:
    inputs = [Spec(dtypes.float32, (batch, width)), Spec(dtypes.float32, (width, width))]
    return build(inputs, [], [op("matmul", 0, 1), op("add", 2, 0), op(last, 3)], live)


@given(st.integers(1, 300), st.integers(1, 300))
def test_sizes_do_not_matter(batch: int, width: int) -> None:
    assert structure_of(_net(batch, width)) == structure_of(_net(2, 3))


def test_sizes_that_make_signatures_equal_do_not_matter() -> None:
    vector, square = Spec(dtypes.float32, (4,)), Spec(dtypes.float32, (4, 4))
    ops = [op("add", 0, 0), op("exp", 1), op("add", 1, 1)]
    equal = build([vector, vector], [], ops, (2,))
    other = build([vector, square], [], ops, (2,))
    assert len(equal.distinct) < len(other.distinct)
    assert structure_of(equal) == structure_of(other)


def test_other_ops_and_other_operands_are_another_structure() -> None:
    one = structure_of(_net(2, 3))
    assert structure_of(_net(2, 3, last="exp")) != one
    inputs = [Spec(dtypes.float32, (3, 3)), Spec(dtypes.float32, (3, 3))]
    assert structure_of(build(inputs, [], [op("matmul", 1, 0), op("add", 2, 0), op("tanh", 3)], (2,))) != one


def test_the_difference_is_said() -> None:
    one, other, kept = _net(2, 3), _net(5, 3), _net(2, 3, live=(0, 2))

    def say(other: Program) -> str:
        return difference(inputs_of(one), len(one.live), inputs_of(other), len(other.live))

    assert say(other) == "input 0 is float32[5,3] in place of float32[2,3]"
    assert say(kept) == "2 results are kept in place of 1"
    assert say(one).startswith("an attribute such as a length")
