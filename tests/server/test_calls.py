"""Which one-op plans tier 0 needs: each once, and of what the array library does only those that linking would use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fusewire_kernels.link import MOST_BYTES, MOST_DISTINCT
from fusewire_protos import catalogue, dtypes
from fusewire_protos.program import Program
from fusewire_protos.program_codec import ProgramLimits, decode
from fusewire_protos.shapes import Spec
from fusewire_server.calls import Calls, OneOpCall, calls_of
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


def _calls(subject: Program, *, is_library_exact: bool = True, links: bool = True) -> Calls:
    """Looked into to the end."""
    calls = Calls(subject, is_library_exact=is_library_exact, links=links)
    while calls.look_on():
        pass
    return calls


def _names(calls: Sequence[OneOpCall]) -> list[str]:
    return [call.op.name for call in calls]


def test_where_programs_are_linked_the_calls_that_the_library_computes_are_welcome() -> None:
    writer = Writer()
    x, y = writer.input(2, 3), writer.scalar()
    moved = writer.transpose(writer.multiply(x, y), permutation=(1, 0))
    calls = _calls(writer.program(writer.sum(writer.exp(moved), axes=(0,), keepdims=False)))
    transpose = OneOpCall(catalogue.BY_NAME["transpose"], (Spec(_F32, (2, 3)),), ((1, 0),))
    assert calls.welcome == [_call("multiply", Spec(_F32, (2, 3)), Spec(_F32, ())), transpose]
    assert _names(calls.found) == ["exp", "sum"]


def test_where_the_library_is_not_exact_only_what_it_moves_is_welcome() -> None:
    writer = Writer()
    x = writer.reshape(writer.add(writer.input(4), writer.input(4)), shape=(2, 2))
    calls = _calls(writer.program(x), is_library_exact=False)
    assert (_names(calls.found), _names(calls.welcome)) == (["add"], ["reshape"])


def test_welcome_calls_too_are_named_once() -> None:
    writer = Writer()
    x = writer.input(3)
    for _ in range(5):
        x = writer.exp(writer.negative(x))
    calls = _calls(writer.program(x))
    assert (_names(calls.found), _names(calls.welcome)) == (["exp"], ["negative"])


def test_where_nothing_is_linked_no_call_is_welcome() -> None:
    writer = Writer()
    subject = writer.program(writer.exp(writer.negative(writer.input(3))))
    calls = _calls(subject, links=False)
    assert (_names(calls.found), calls.welcome) == (["exp"], [])


def _composite(writer: Writer) -> Any:
    return writer.softmax(writer.input(2, 3), axes=(1,))


def _slice(writer: Writer) -> Any:
    return writer.slice(writer.input(5), (0,), (3,))


def _concat(writer: Writer) -> Any:
    x = writer.input(3)
    return writer.concat(x, x, axis=0)


def _too_large(writer: Writer) -> Any:
    return writer.abs(writer.input(MOST_BYTES // 8 + 1))


def _too_many(writer: Writer) -> Any:
    inputs = [writer.input(dim) for dim in range(1, MOST_DISTINCT + 1)]
    return [writer.abs(each) for each in inputs][-1]


@pytest.mark.parametrize("write", [_composite, _slice, _concat, _too_large, _too_many])
def test_no_call_is_welcome_of_a_program_that_would_not_be_linked(write: Callable[[Writer], Any]) -> None:
    writer = Writer()
    result = write(writer)
    calls = _calls(writer.program(writer.exp(writer.negative(result))))
    assert ("exp" in _names(calls.found), calls.welcome) == (True, [])
