"""How much memory runs op by op take beside their inputs: bounded from above, and close to what NumPy takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME, Attributes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.device.intermediate_bytes import intermediate_bytes, most_intermediate_bytes
from tests.kernels.op_by_op import run_op_by_op

SIDE = 256
SQUARE = Spec(dtypes.float32, (SIDE, SIDE))
SIZE_BYTES = SQUARE.size_bytes
SLACK_BYTES = SIZE_BYTES // 4  # NumPy's buffers, Python's objects


def op(name: str, *operands: int, attributes: Attributes = ()) -> ProgramOp:
    return ProgramOp(BY_NAME[name], operands, attributes)


def full(scalar: int) -> ProgramOp:
    return op("full", scalar, attributes=((SIDE, SIDE), dtypes.float32.code))


def chain(count: int) -> Program:
    return build([SQUARE], [], [op("negative", index) for index in range(count)], (count - 1,))


def all_at_once(count: int) -> Program:
    """Squares that are all made before the first is used."""
    ops = [full(0) for _ in range(count)]
    ops += [op("add", count + index if index else 1, 2 + index) for index in range(count - 1)]
    return build([], [dtypes.float32], ops, (len(ops) - 1,))


def transposed(*names: str) -> Program:
    """The sum of a square and itself, transposed, on which ops then go on."""
    ops = [op("add", 0, 0), op("transpose", 1, attributes=((1, 0),))]
    ops += [op(name, 2 + index) for index, name in enumerate(names)]
    return build([SQUARE], [], ops, (len(ops) - 1,))


@pytest.mark.parametrize(
    ("program", "squares"),
    [
        (chain(1), 1),
        (chain(10), 2),
        (all_at_once(5), 6),
        (transposed(), 2),
        (transposed("negative"), 3),
        (build([SQUARE], [], [op("broadcast_to", 0, attributes=((4, SIDE, SIDE),))], (0,)), 4),
    ],
    ids=["one", "chain", "all at once", "a view", "an op on a view", "a broadcast input"],
)
def test_values_count_until_their_last_use_and_views_for_what_they_show(program: Program, squares: int) -> None:
    assert intermediate_bytes(program) == squares * SIZE_BYTES


def test_a_composite_op_takes_what_its_parts_do() -> None:
    program = build([SQUARE], [], [op("softmax", 0, attributes=((1,),))], (0,))
    sums_bytes = SIDE * 4
    assert intermediate_bytes(program) == 2 * SIZE_BYTES + sums_bytes


PROGRAMS = [
    chain(10),
    all_at_once(5),
    transposed(),
    transposed("negative", "abs"),
    build([SQUARE], [], [op("transpose", 0, attributes=((1, 0),)), op("add", 0, 1), op("negative", 0)], (1, 2)),
]
PROGRAM_NAMES = ["chain", "all at once", "a view", "ops on a view", "two results"]


@pytest.mark.parametrize("program", PROGRAMS, ids=PROGRAM_NAMES)
def test_the_quick_count_is_never_below_the_close_one(program: Program) -> None:
    assert most_intermediate_bytes(program) >= intermediate_bytes(program)


def test_the_quick_count_knows_what_composite_ops_take() -> None:
    wide = Spec(dtypes.float16, (SIDE, SIDE))
    program = build([wide], [], [op("softmax", 0, attributes=((1,),))], (0,))
    assert most_intermediate_bytes(program) >= intermediate_bytes(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=PROGRAM_NAMES)
def test_a_run_takes_no_more(program: Program) -> None:
    inputs = [np.ones((SIDE, SIDE), np.float32) for _ in program.inputs]
    run_op_by_op(program, np, inputs, [1.0] * len(program.scalars), (), None)  # imports and caches
    tracemalloc.start()
    run_op_by_op(program, np, inputs, [1.0] * len(program.scalars), (), None)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes <= intermediate_bytes(program) + SLACK_BYTES
