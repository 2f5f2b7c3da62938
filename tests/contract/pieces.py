"""A program cut into pieces, which are programs: what one leaves for the others travels as an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_protos.programs.program import Program, ProgramOp, build
from tests.strategies import Work

Array = npt.NDArray[Any]
RunWork = Callable[[Work], Sequence[Array]]


class Piece(NamedTuple):
    """Some ops of a program in a row. `inputs`, `scalars` and `results` are operand numbers of the whole."""

    program: Program
    inputs: tuple[int, ...]
    scalars: tuple[int, ...]
    first_start: int
    results: tuple[int, ...]


def pieces_of(whole: Program, most_ops: int) -> list[Piece]:
    """The program cut every `most_ops` ops; pieces of which nothing is needed are left out."""
    count = len(whole.ops)
    first_starts = [0, *accumulate(op.op.starts(op.attributes) for op in whole.ops)]
    borders = [*range(0, count, most_ops), count]
    pieces = [_piece(whole, begin, end, first_starts[begin]) for begin, end in pairwise(borders)]
    return [piece for piece in pieces if piece.results]


def run_in_pieces(work: Work, pieces: Sequence[Piece], run: RunWork) -> list[Array]:
    """The live results of the whole, each piece having been run by `run`."""
    whole = work.program
    known: dict[int, Array] = dict(enumerate(work.inputs))
    for piece in pieces:
        inputs = tuple(known[number] for number in piece.inputs)
        scalars = tuple(work.scalars[number - len(whole.inputs)] for number in piece.scalars)
        starts = work.starts[piece.first_start : piece.first_start + piece.program.starts]
        known.update(zip(piece.results, run(Work(piece.program, inputs, scalars, starts)), strict=True))
    return [np.asarray(known[whole.first_result + index]) for index in whole.live]


def _piece(whole: Program, begin: int, end: int, first_start: int) -> Piece:
    ops = whole.ops[begin:end]
    own = range(whole.first_result + begin, whole.first_result + end)
    used = sorted({operand for op in ops for operand in op.operands if operand not in own})
    is_scalar = range(len(whole.inputs), whole.first_result)
    inputs = tuple(number for number in used if number not in is_scalar)
    scalars = tuple(number for number in used if number in is_scalar)
    results = tuple(sorted(_needed_after(whole, end) & set(own)))
    number_of = {number: place for place, number in enumerate((*inputs, *scalars, *own))}
    program = build(
        [whole.specs[number] for number in inputs],
        [whole.specs[number].dtype for number in scalars],
        [ProgramOp(op.op, tuple(number_of[operand] for operand in op.operands), op.attributes) for op in ops],
        [number - own.start for number in results],
    )
    return Piece(program, inputs, scalars, first_start, results)


def _needed_after(whole: Program, end: int) -> set[int]:
    """Operand numbers that ops from `end` on, or whoever reads the program's results, need."""
    used = {operand for op in whole.ops[end:] for operand in op.operands}
    return used | {whole.first_result + index for index in whole.live}
