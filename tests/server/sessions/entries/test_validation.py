"""Bindings that fit and bindings that do not, and what a failed operand takes with it."""

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Scalar, Segment
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.sessions.entries import validation as validate
from tests.server.parts import VECTOR, op


def scalars_program(*scalar_dtypes: DType) -> Program:
    return build([VECTOR], scalar_dtypes, [op("negative", 0)], (0,))


def slices(count: int) -> Program:
    """`count` slices of length 2 along an axis of 4."""
    region = ((0,), (2,), (1,), ())
    return build([VECTOR], [], [ProgramOp(catalogue.BY_NAME["slice"], (0,), region)] * count, (0,))


def windows() -> Program:
    """A view of two elements that are two apart, the second ahead of the first, in an array of 4."""
    return build([VECTOR], [], [ProgramOp(catalogue.BY_NAME["strided"], (0,), ((2,), (-2,)))], (0,))


@pytest.mark.parametrize("start", [2, 3])
def test_a_strided_view_that_lies_inside_its_array_passes(start: int) -> None:
    assert validate.starts_of(windows(), (start,)) == (start,)


@pytest.mark.parametrize("starts", [(1,), (4,), (-1,), (2**63 - 1,), (-(2**63),), (), (2, 2)])
def test_a_strided_view_that_exceeds_its_array_is_refused(starts: tuple[int, ...]) -> None:
    with pytest.raises(CaseError, match="bad_binding"):
        validate.starts_of(windows(), starts)


def test_scalars_are_their_period_repeated() -> None:
    program = scalars_program(*[dtypes.float32, dtypes.int32] * 3)
    assert validate.scalars_of(program, (0.5, 1)) == (0.5, 1, 0.5, 1, 0.5, 1)


@pytest.mark.parametrize("period", [(), (1.0,) * 2, (1.0,) * 4, (1.0,) * 6])
def test_scalars_that_do_not_repeat_to_the_number_of_slots_are_refused(period: tuple[Scalar, ...]) -> None:
    with pytest.raises(CaseError, match="bad_binding"):
        validate.scalars_of(scalars_program(*[dtypes.float32] * 3), period)


def test_a_program_without_scalars_takes_none() -> None:
    assert validate.scalars_of(scalars_program(), ()) == ()
    with pytest.raises(CaseError, match="bad_binding"):
        validate.scalars_of(scalars_program(), (1,))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (dtypes.float32, float("nan")),
        (dtypes.float16, 10**18),
        (dtypes.float64, 2**64 - 1),
        (dtypes.uint8, 255),
        (dtypes.int32, -(2**31)),
        (dtypes.int64, 2**63 - 1),
        (dtypes.bool_, True),
        (dtypes.bool_, 0),
    ],
)
def test_a_scalar_that_its_slot_holds_passes(dtype: DType, value: Scalar) -> None:
    assert validate.scalars_of(scalars_program(dtype), (value,)) == (value,)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (dtypes.int32, 1.0),
        (dtypes.int32, 2**31),
        (dtypes.int64, 2**63),
        (dtypes.uint8, -1),
        (dtypes.uint8, 256),
        (dtypes.bool_, 2),
        (dtypes.bool_, 0.0),
    ],
)
def test_a_scalar_that_its_slot_does_not_hold_is_refused(dtype: DType, value: Scalar) -> None:
    with pytest.raises(CaseError, match=f"bad_binding.*{dtype.name}"):
        validate.scalars_of(scalars_program(dtype), (value,))


def test_starts_inside_their_axis_pass_and_repeat() -> None:
    assert validate.starts_of(slices(4), (0, 2)) == (0, 2, 0, 2)


@pytest.mark.parametrize("start", [-1, 3, 2**63, -(2**63)])
def test_a_start_that_leaves_its_axis_is_refused(start: int) -> None:
    with pytest.raises(CaseError, match=r"bad_binding.*op 1 slice"):
        validate.starts_of(slices(2), (0, start))


def with_dying(dying: tuple[int, ...]) -> Segment:
    return Segment(1, 100, (10, 11), (), (), dying)


@pytest.mark.parametrize(("dying", "handles"), [((), ()), ((0,), (10,)), ((0, 1), (10, 11))])
def test_ascending_positions_may_die(dying: tuple[int, ...], handles: tuple[int, ...]) -> None:
    assert validate.dying_handles(with_dying(dying)) == handles


@pytest.mark.parametrize("dying", [(2,), (-1,), (0, 0), (1, 0), (2**63,)])
def test_other_dying_positions_are_a_protocol_case(dying: tuple[int, ...]) -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        validate.dying_handles(with_dying(dying))


def test_many_dying_positions_are_told_in_few_words() -> None:
    with pytest.raises(CaseError) as caught:
        validate.dying_handles(with_dying(tuple(range(1 << 16))))
    assert len(caught.value.text) < 200


@pytest.mark.parametrize("data", [b"", bytes([0, 1, 1, 0])])
def test_bytes_of_zero_and_one_are_bools(data: bytes) -> None:
    validate.check_uploaded(dtypes.bool_, data)
    validate.check_uploaded(dtypes.uint8, b"\xff")


def test_other_bytes_are_no_bools() -> None:
    with pytest.raises(CaseError, match="upload_failed"):
        validate.check_uploaded(dtypes.bool_, bytes([0, 1, 2]))
