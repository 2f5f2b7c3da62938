"""Which one-op plans tier 0 needs: each once, and none of what the array library does."""

from __future__ import annotations

from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_server.programs.one_op_calls import OneOpCall, calls_of
from tests.kernels.programs import Writer

_F32 = dtypes.float32


def _call(name: str, *operands: Spec) -> OneOpCall:
    return OneOpCall(catalogue.BY_NAME[name], operands, ())


def test_repeated_ops_on_operands_of_equal_specs_are_one_call() -> None:
    writer = Writer()
    x, w = writer.input(2, 3), writer.input(3, 3)
    for _ in range(5):
        x = writer.tanh(writer.matmul(x, w))
    square, row = Spec(_F32, (3, 3)), Spec(_F32, (2, 3))
    wanted = {_call("matmul", row, square), _call("tanh", row)}
    assert calls_of(writer.program(x), is_library_exact=True) == wanted


def test_an_exact_op_is_called_where_the_library_is_not_exact() -> None:
    writer = Writer()
    subject = writer.program(writer.add(writer.input(3), writer.input(3)))
    assert calls_of(subject, is_library_exact=True) == set()
    assert calls_of(subject, is_library_exact=False) == {_call("add", Spec(_F32, (3,)), Spec(_F32, (3,)))}


def test_floats_of_another_dtype_are_converted_before_a_library_that_is_not_exact_moves_them() -> None:
    writer = Writer()
    x, y, n = writer.input(3), writer.input(3, dtype=dtypes.float64), writer.input(3, dtype=dtypes.int32)
    subject = writer.program(writer.concat(x, y, n, axis=0))
    astype = OneOpCall(catalogue.BY_NAME["astype"], (Spec(_F32, (3,)),), (dtypes.float64.code,))
    assert calls_of(subject, is_library_exact=False) == {astype}
    assert calls_of(subject, is_library_exact=True) == set()


def test_views_and_moves_are_always_left_to_the_library() -> None:
    writer = Writer()
    x = writer.transpose(writer.input(2, 3), permutation=(1, 0))
    subject = writer.program(writer.concat(x, x, axis=0))
    assert calls_of(subject, is_library_exact=False) == set()


def test_a_composite_op_brings_the_calls_of_its_expansion() -> None:
    writer = Writer()
    subject = writer.program(writer.softmax(writer.input(2, 3), axes=(1,)))
    assert {call.op.name for call in calls_of(subject, is_library_exact=True)} == {"max", "exp", "sum"}


def test_the_program_of_a_call_has_its_result() -> None:
    call = _call("matmul", Spec(_F32, (2, 3)), Spec(_F32, (3, 5)))
    assert decode(call.raw(), ProgramLimits()).result_spec(0) == call.result() == Spec(_F32, (2, 5))
