"""More rows of bindings for a program: the same structure over other data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Category
from fusewire_protos.programs.program import Program
from tests.starts import starts_between
from tests.strategies import Scalar, Work, random_array

_SPECIAL_SHARE = 0.05
_PLACE = 3


def random_row(program: Program, seed: int, *, special_share: float = _SPECIAL_SHARE) -> Work:
    """Bindings that fit the program."""
    random = np.random.default_rng(seed)
    inputs = tuple(random_array(random, spec, special_share=special_share, is_moderate=True) for spec in program.inputs)
    settings = _settings(program)
    scalars = tuple(
        0.5 if number in settings else _scalar(random, dtype)
        for number, dtype in enumerate(program.scalars, len(program.inputs))
    )
    return Work(program, inputs, scalars, tuple(_starts(random, program)))


def random_rows(work: Work, count: int) -> list[Work]:
    """`work` itself among others of its program."""
    others = [random_row(work.program, seed) for seed in range(1, count)]
    return [*others[:_PLACE], work, *others[_PLACE:]]


def _settings(program: Program) -> set[int]:
    """Operands that set a composite op, such as an epsilon: a sane value asks about bits, not about infinities."""
    composites = (op for op in program.ops if op.op.category is Category.COMPOSITE)
    return {operand for op in composites for operand in op.operands[1:]}


def _scalar(random: np.random.Generator, dtype: DType) -> Scalar:
    if dtype.is_boolean:
        return bool(random.integers(2))
    if dtype.is_floating:
        return float(np.float16(random.normal()))
    return int(random.integers(-5 if dtype.is_signed else 0, 6))


def _starts(random: np.random.Generator, program: Program) -> Iterator[int]:
    """Starts at which each part lies inside the array that it is a part of."""
    for op in program.ops:
        for least, most in starts_between(program, op):
            yield int(random.integers(least, most + 1))
