"""Each op by its kernel and by its twin: every dtype that it computes in, sizes about every border, special values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.ops.reference import twin
from fusewire_protos.errors import CaseError
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, ProgramOp, build
from tests.attributes import sample_attributes
from tests.contract.harness import Job, Runner
from tests.contract.rows import random_row
from tests.effort import of_a_hundred
from tests.roundings import allowance
from tests.strategies import OF_SMALL_MATRICES, PLANNED, Work, legal_dtypes, programs_of
from tests.tolerances import assert_close

_PROGRAMS_AN_EXAMPLE = 8
# None, one, an odd number, several vectors and a rest; for reductions two chunks of the order of summation and a rest.
_SIZES = (0, 1, 3, 1000)
_REDUCED_SIZES = (0, 1, 33, 33_001)
_SPECIAL_SHARES = (0.0, 0.125)
_ELEMENTWISE = [op for op in catalogue.OPS if op.category is Category.POINTWISE]
_REDUCING = [op for op in catalogue.OPS if op.category in {Category.REDUCTION, Category.COMPOSITE}]


def _name(op: Op) -> str:
    return op.name


@pytest.mark.parametrize("op", _ELEMENTWISE, ids=_name)
def test_an_op_of_elements_is_its_twin_in_every_dtype_and_size(runner: Runner, op: Op) -> None:
    _assert_like_twins(runner, _rows_of_every_dtype(op, _SIZES))


@pytest.mark.parametrize("op", _REDUCING, ids=_name)
def test_a_reduction_is_its_twin_in_every_dtype_and_length(runner: Runner, op: Op) -> None:
    _assert_like_twins(runner, _rows_of_every_dtype(op, _REDUCED_SIZES))


@pytest.mark.parametrize("op", [op for op in PLANNED if op not in OF_SMALL_MATRICES], ids=_name)
@of_a_hundred(2)
@given(data=st.data())
def test_an_op_in_any_form_is_its_twin(runner: Runner, op: Op, data: st.DataObject) -> None:
    works = st.lists(programs_of(op), min_size=_PROGRAMS_AN_EXAMPLE, max_size=_PROGRAMS_AN_EXAMPLE)
    _assert_like_twins(runner, data.draw(works))


def _assert_like_twins(runner: Runner, works: Sequence[Work]) -> None:
    """The one op of each program, by its plan and by its twin. Compiles all plans together."""
    runner.prepare(Job(work.program, is_fused=True) for work in works)
    for work in works:
        _assert_like_twin(runner, work)


def _assert_like_twin(runner: Runner, work: Work) -> None:
    program = work.program
    (single,) = program.ops
    operands = work.operands()
    expected = np.asarray(twin(single.op)(np, operands, single.attributes, work.starts))
    dtype = program.result_spec(0).dtype
    limit = allowance(single.op, operands, single.attributes, dtype)
    assert_close(runner.run(work)[0], expected, single.op, dtype, limit)


def _rows_of_every_dtype(op: Op, sizes: Iterable[int]) -> list[Work]:
    """The op over vectors of every size and of all dtypes that it computes in: its operands need no casts."""
    programs = [program for size in sizes for program in _programs_of_size(op, size)]
    return [random_row(program, 0, special_share=share) for program, share in product(programs, _SPECIAL_SHARES)]


def _programs_of_size(op: Op, size: int) -> Iterator[Program]:
    for chosen, attributes in product(legal_dtypes(op, op.least_operands), _attributes_of(op)):
        if op.dtype_rule(chosen, attributes).operands == chosen:
            yield from _single(op, chosen, attributes, size)


def _single(op: Op, chosen: Sequence[DType], attributes: Attributes, size: int) -> Iterator[Program]:
    """The program of the op alone; nothing where it has no value, as the greatest of nothing."""
    takes_setting = op.category is Category.COMPOSITE
    inputs = [Spec(dtype, (size,)) for dtype in (chosen[:1] if takes_setting else chosen)]
    scalars = chosen[1:] if takes_setting else ()
    try:
        yield build(inputs, scalars, [ProgramOp(op, tuple(range(len(chosen))), attributes)], [0])
    except CaseError:
        return


def _attributes_of(op: Op) -> list[Attributes]:
    """All of one axis for what reduces, every dtype for what converts."""
    if op.name == "astype":
        return [(dtype.code,) for dtype in dtypes.ALL]
    return [sample_attributes(op)]
