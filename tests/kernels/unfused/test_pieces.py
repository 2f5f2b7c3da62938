"""Pieces of a call give its rows, over parts of its operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.pieces import pieces_of
from fusewire_kernels.unfused.twins import twin_of
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import signature_of
from tests import strategies
from tests.kernels.op_by_op import by_twin
from tests.tolerances import assert_same_bytes

_PRIMITIVE = [op for op in catalogue.OPS if op.category is not Category.COMPOSITE]
_F32 = dtypes.float32


def _call(name: str, *shapes: tuple[int, ...], attributes: tuple[Any, ...] = ()) -> OneOpCall:
    return OneOpCall(BY_NAME[name], tuple([Spec(_F32, shape) for shape in shapes]), attributes)


@pytest.mark.parametrize("op", _PRIMITIVE, ids=lambda op: op.name)
@settings(max_examples=20)
@given(data=st.data())
def test_pieces_give_the_bits_of_the_whole(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    operands = [np.array(operand, order="C") for operand in work.operands()]
    call = OneOpCall(op, work.program.signatures[0].operands, work.program.ops[0].attributes)
    result = np.empty(call.result().shape, dtypes.to_numpy(call.result().dtype))
    for piece in pieces_of(call, data.draw(st.integers(1, 4))):
        places = zip(operands, piece.operand_offsets, strict=True)
        addresses = [operand.ctypes.data + offset for operand, offset in places]
        twin_of(piece.call)(addresses, result.ctypes.data + piece.result_offset, work.starts)
    assert_same_bytes(result, by_twin(signature_of(*call), operands, work.starts))


def test_a_product_is_divided_along_the_rows_of_its_first_operand() -> None:
    first, second = pieces_of(_call("matmul", (65, 65), (65, 65)), 2)
    assert [spec.shape for spec in first.call.operands] == [(32, 65), (65, 65)]
    assert [spec.shape for spec in second.call.operands] == [(33, 65), (65, 65)]
    assert (second.operand_offsets, second.result_offset) == ((32 * 65 * 4, 0), 32 * 65 * 4)


def test_an_operand_that_broadcasts_is_taken_whole() -> None:
    _, second = pieces_of(_call("add", (4, 3), (1, 3)), 2)
    assert [spec.shape for spec in second.call.operands] == [(2, 3), (1, 3)]
    assert second.operand_offsets == (24, 0)


@pytest.mark.parametrize(
    "call",
    [
        _call("det", (4, 3, 2, 2)),
        _call("slogdet", (4, 2, 2)),
        _call("svd", (4, 3, 2), attributes=(True,)),
        _call("solve", (4, 2, 2), (4, 2, 3)),
        _call("fft", (4, 3), (4, 3), attributes=(False,)),
        _call("irfft", (4, 2, 3), (4, 2, 3), attributes=(True,)),
    ],
    ids=lambda call: call.op.name,
)
def test_a_batch_of_matrices_or_lines_is_divided(call: OneOpCall) -> None:
    first, second = pieces_of(call, 2)
    assert first.call.operands == second.call.operands
    assert [spec.shape for spec in first.call.operands] == [(2, *spec.shape[1:]) for spec in call.operands]
    assert second.operand_offsets == tuple([spec.size_bytes // 2 for spec in call.operands])
    assert second.result_offset == call.result().size_bytes // 2


@pytest.mark.parametrize(
    "call",
    [
        _call("add", (), ()),
        _call("inv", (100, 100)),
        _call("rfft", (100,)),
        _call("add", (1, 100), (1, 100)),
        _call("sum", (100, 100), attributes=((0,), False)),
        _call("transpose", (100, 100), attributes=((1, 0),)),
        _call("matmul", (100,), (100, 100)),
        _call("matmul", (63, 100), (100, 100)),
        _call("add", (3, 100), (3, 100)),
    ],
    ids=lambda call: f"{call.op.name} of {call.operands[0].shape}",
)
def test_what_cannot_be_divided_by_rows_is_one_piece(call: OneOpCall) -> None:
    assert [piece.call for piece in pieces_of(call, 4)] == [call]


def test_no_piece_is_a_single_row() -> None:
    pieces = pieces_of(_call("add", (7, 2), (7, 2)), 100)
    assert [piece.call.operands[0].shape[0] for piece in pieces] == [2, 2, 3]
