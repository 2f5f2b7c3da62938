"""The listed calls have the kernels of all steps, and those are not too many to be compiled ahead."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels import build
from fusewire_kernels.build import design
from fusewire_kernels.unfused.all_calls import all_calls
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.steps import steps_of
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Shape, Spec
from fusewire_protos.programs.program import Program
from tests import strategies

_F32 = dtypes.float32
_MOST_KERNELS = 4100


@cache
def _listed(*, for_gpu: bool) -> frozenset[str]:
    with patch.object(build, "after_pass", None):  # so many plans would be checked against the rules for minutes
        return frozenset(key for call in all_calls() for key in _kernels_of(call, for_gpu=for_gpu))


def _kernels_of(call: OneOpCall, *, for_gpu: bool) -> list[str]:
    return [*design(call.program(), for_gpu=for_gpu).kernels]


def _is_listed(call: OneOpCall) -> bool:
    return all(_listed(for_gpu=each).issuperset(_kernels_of(call, for_gpu=each)) for each in (False, True))


def _unlisted(program: Program) -> list[OneOpCall]:
    """The steps of a program for which some kernel is not listed."""
    calls = {step.call for signature in program.distinct for step in steps_of(signature).steps}
    return [call for call in calls if not _is_listed(call)]


def test_there_are_few_enough_to_be_compiled_ahead() -> None:
    assert len(_listed(for_gpu=False)) <= _MOST_KERNELS


@pytest.mark.parametrize("op", strategies.PLANNED, ids=lambda op: op.name)
@settings(max_examples=30)
@given(data=st.data())
def test_the_steps_of_every_op_have_listed_kernels(op: Op, data: st.DataObject) -> None:
    assert _unlisted(data.draw(strategies.programs_of(op)).program) == []


@settings(max_examples=100)
@given(work=strategies.programs())
def test_the_steps_of_every_program_have_listed_kernels(work: strategies.Work) -> None:
    assert _unlisted(work.program) == []


@pytest.mark.parametrize(
    ("name", "shapes", "attributes"),
    [
        ("transpose", [(2, 3, 2, 3, 2, 3, 2, 3)], ((7, 6, 5, 4, 3, 2, 1, 0),)),
        ("slice", [(5,) * 8], (tuple(range(8)), (2,) * 8, (-2,) * 8, ())),
        ("slice", [(9, 9)], ((0, 1), (4, 1), (-2, 1), (1,))),
        ("assign_slice", [(9, 9), (9, 9)], ((0, 1), (9, 9), (-1, -1), ())),
        ("assign_slice", [(5,) * 8, (2, 1)], (tuple(range(8)), (2,) * 8, (-2,) * 8, ())),
        ("sum", [(3, 4, 5, 6, 3, 2)], ((0, 2, 4), True)),
        ("sum", [(5, 3 << 16)], ((1,), False)),
        ("sum", [((1 << 16) + 1,)], ((0,), False)),
        ("max", [(3 << 16, 5)], ((0,), False)),
        ("mean", [(1 << 10, 1 << 10)], ((0, 1), False)),
        ("argmax", [(5, (3 << 16) + 77)], ((1,), False)),
        ("argmin", [(5, 3 << 16)], ((1,), False)),
        ("matmul", [(1 << 20,), (1 << 20,)], ()),
        ("matmul", [(5, 1, 7, 8), (1, 3, 8, 4)], ()),
        ("matmul", [(5, 7, 8), (8, 4)], ()),
        ("matmul", [(5, 1, 5, 1, 5, 2, 3), (1, 5, 1, 5, 1, 3, 2)], ()),
        ("add", [(2, 1, 2, 1, 2, 1, 2, 1), (2,) * 8], ()),
        ("concat", [(3, 5)] * 40, (1,)),
        ("take", [(3, 5, 7), (2, 2)], (1,)),
        ("take_along_axis", [(3, 5, 7), (3, 2, 7)], (1,)),
        ("take_along_axis", [(1, 5, 1), (1, 1, 1)], (1,)),
        ("take_along_axis", [(4, 1), (4, 3)], (1,)),
    ],
)
def test_steps_that_are_drawn_seldom_have_listed_kernels(
    name: str, shapes: list[tuple[int, ...]], attributes: Attributes
) -> None:
    given_dtypes = [_F32, dtypes.int64] if name.startswith("take") else [_F32] * len(shapes)
    op = catalogue.BY_NAME[name]
    call = OneOpCall(op, tuple(map(Spec, given_dtypes, shapes)), attributes)
    assert _unlisted(call.program()) == []


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("shapes", [((0,), (0,)), ((0,), (0, 2)), ((5, 1, 7, 0), (1, 3, 0, 4))])
def test_products_of_no_elements_have_listed_kernels(dtype: DType, shapes: tuple[Shape, Shape]) -> None:
    call = OneOpCall(BY_NAME["matmul"], (Spec(dtype, shapes[0]), Spec(dtypes.uint8, shapes[1])), ())
    assert _unlisted(call.program()) == []
