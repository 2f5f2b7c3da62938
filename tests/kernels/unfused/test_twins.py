"""A twin computes a call over host memory, in the bits of the op."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import has_same_bits, host_array, twin_of
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import signature_of
from tests import strategies
from tests.kernels.op_by_op import by_twin
from tests.tolerances import assert_same_bytes

_PRIMITIVE = [op for op in catalogue.OPS if op.category is not Category.COMPOSITE]


@pytest.mark.parametrize("op", _PRIMITIVE, ids=lambda op: op.name)
@settings(max_examples=15)
@given(data=st.data())
def test_a_twin_writes_what_the_op_gives(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    operands = [np.array(operand, order="C") for operand in work.operands()]
    call = OneOpCall(op, work.program.signatures[0].operands, work.program.ops[0].attributes)
    result = np.empty(call.result().shape, dtypes.to_numpy(call.result().dtype))
    twin_of(call)([operand.ctypes.data for operand in operands], result.ctypes.data, work.starts)
    assert_same_bytes(result, by_twin(signature_of(*call), operands, work.starts))


def test_a_host_array_shares_its_memory() -> None:
    memory = np.zeros(6, np.float32)
    host_array(memory.ctypes.data, Spec(dtypes.float32, (2, 3)))[1, 2] = 7
    assert memory.tolist() == [0, 0, 0, 0, 0, 7]


@pytest.mark.parametrize(("name", "same"), [("add", True), ("reshape", True), ("concat", True), ("exp", False)])
def test_twins_of_exact_ops_and_of_moves_have_the_bits_of_kernels(name: str, same: bool) -> None:
    assert has_same_bits(OneOpCall(BY_NAME[name], (), ())) is same
