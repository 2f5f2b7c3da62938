"""What a program carries from one iteration to the next: its bytes, its origins, and what is no loop."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import MOST_LAG, Origin, Program, ProgramOp, build

VECTOR = Spec(dtypes.float32, (4,))
MATRIX = Spec(dtypes.float32, (4, 4))


def op(name: str, *operands: int) -> ProgramOp:
    return ProgramOp(catalogue.BY_NAME[name], operands, ())


def body(carried: Any = ((0, 4),), live: Any = (0, 1)) -> Program:
    """Operands 0 to 2 are two vectors and a scalar; 3 and 4 are the results of two ops."""
    return build([VECTOR, VECTOR], [dtypes.float32], [op("multiply", 0, 2), op("add", 3, 1)], live, carried)


def again(program: Program) -> Program:
    return decode(encode(program), ProgramLimits())


@pytest.mark.parametrize("carried", [(), ((0, 4),), ((0, 4), (1, 3)), ((0, 1), (1, 4)), ((1, 0),)])
def test_what_is_carried_comes_back_from_the_bytes(carried: tuple[tuple[int, int], ...]) -> None:
    program = again(body(carried))
    assert program.carried == carried
    assert encode(program) == encode(body(carried))


def test_a_program_that_carries_nothing_has_the_bytes_that_it_always_had() -> None:
    assert len(msgpack.unpackb(encode(body(())))) == 7


@pytest.mark.parametrize(
    ("carried", "origins"),
    [
        (((0, 4),), {0: Origin((0,), 4)}),
        (((0, 1), (1, 4)), {0: Origin((0, 1), 4), 1: Origin((1,), 4)}),
        (((1, 0),), {1: Origin((1,), 0)}),
    ],
)
def test_a_value_of_several_iterations_before_passes_through_several_inputs(
    carried: tuple[tuple[int, int], ...], origins: dict[int, Origin]
) -> None:
    assert again(body(carried)).origins == origins


REFUSED = [
    (((0, 2),), "bad_operand", "cannot be carried"),  # a scalar
    (((0, 5),), "bad_operand", "cannot be carried"),  # no operand
    (((2, 4),), "bad_operand", "cannot be carried"),  # no input
    (((1, 4), (0, 4)), "bad_operand", "ascending"),
    (((0, 4), (0, 3)), "bad_operand", "ascending"),
    (((0, 1), (1, 0)), "bad_operand", "iterations before"),
    (((0, 0),), "bad_operand", "iterations before"),
]


@pytest.mark.parametrize(("carried", "case", "text"), REFUSED)
def test_what_cannot_be_carried_is_refused(carried: Any, case: str, text: str) -> None:
    with pytest.raises(CaseError, match=text) as caught:
        body(carried)
    assert caught.value.case.name == case
    with pytest.raises(CaseError, match=text):
        decode(_with_carried([number for pair in carried for number in pair]), ProgramLimits())


def test_a_result_that_is_not_live_is_not_carried() -> None:
    with pytest.raises(CaseError, match="but not live"):
        body(live=(0,))


def test_a_value_of_another_spec_is_not_carried() -> None:
    with pytest.raises(CaseError, match="bad_shape"):
        build([MATRIX, VECTOR], [], [op("add", 0, 1), op("negative", 1)], (1,), ((0, 3),))


def test_a_value_passes_through_few_inputs() -> None:
    inputs = [VECTOR] * (MOST_LAG + 1)
    ops = [op("negative", 0)]
    first_result = len(inputs)
    chain = [(number, number + 1) for number in range(MOST_LAG)]
    assert build(inputs[:-1], [], ops, (0,), [*chain[:-1], (MOST_LAG - 1, first_result - 1)]).origins
    with pytest.raises(CaseError, match=f"more than {MOST_LAG} iterations"):
        build(inputs, [], ops, (0,), [*chain, (MOST_LAG, first_result)])


@pytest.mark.parametrize("carried", [[0], [0, 4, 1], [200, 4]])
def test_malformed_pairs_are_refused(carried: list[int]) -> None:
    with pytest.raises(CaseError):
        decode(_with_carried(carried), ProgramLimits())


def test_an_empty_list_of_what_is_carried_is_not_canonical() -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        decode(_with_carried([]), ProgramLimits())


def _with_carried(numbers: list[int]) -> bytes:
    raw: bytes = msgpack.packb([*msgpack.unpackb(encode(body(()))), bytes(numbers)])
    return raw
