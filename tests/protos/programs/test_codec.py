"""Programs have one encoding, and bytes that are no program are refused in time and space that they pay for."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.errors import CaseError
from fusewire_protos.in_steps import finished
from fusewire_protos.ops import catalogue, dtypes, signatures
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs import codec, reading
from fusewire_protos.programs.limits import MOST_LEAVES, MOST_LIVE, MOST_STARTS, ProgramLimits
from fusewire_protos.programs.parts import arrays_of, pack, parts_of
from fusewire_protos.programs.program import Integers, Program, ProgramOp, build
from fusewire_protos.unpacking import unpack
from tests import golden_files, strategies
from tests.program_bytes import program_bytes

LIMITS = ProgramLimits()
ADD, MULTIPLY, NEGATIVE, SUM, RESHAPE, SLICE, STRIDED, ASTYPE, EYE, CONCAT = (
    catalogue.BY_NAME[name].code
    for name in ("add", "multiply", "negative", "sum", "reshape", "slice", "strided", "astype", "eye", "concat")
)
F32 = dtypes.float32.code
UNKNOWN_DTYPE = max(dtypes.BY_CODE) + 1


def _sample() -> Program:
    """A few ops of several categories: h = tanh(x @ w + b); window = h[start:start+2]; total = sum(window · scale)."""
    ops = [
        ("matmul", (0, 1), ()),
        ("add", (4, 2), ()),
        ("tanh", (5,), ()),
        ("slice", (6,), ((0,), (2,), (1,), ())),
        ("multiply", (7, 3), ()),
        ("sum", (8,), ((0, 1), False)),
        ("astype", (9,), (dtypes.float16.code,)),
        ("eye", (), (3, 4, -1, dtypes.int64.code)),
    ]
    inputs = [Spec(dtypes.float32, (8, 64)), Spec(dtypes.float32, (64, 300)), Spec(dtypes.bfloat16, (300,))]
    listed = [ProgramOp(catalogue.BY_NAME[name], operands, attributes) for name, operands, attributes in ops]
    return build(inputs, [dtypes.float64], listed, [2, 6, 7])


def _parts(known: Program) -> tuple[Any, ...]:
    return known.inputs, known.scalars, known.ops, known.live


def _arrays(known: Program) -> tuple[Integers, ...]:
    return known.signature_numbers, known.operand_numbers, known.operand_ends


def _refusal(raw: bytes, limits: ProgramLimits = LIMITS) -> str:
    with pytest.raises(CaseError) as caught:
        codec.decode(raw, limits)
    assert len(caught.value.text) < 1000
    return caught.value.case.name


def test_the_bytes_of_a_program_never_change_unnoticed() -> None:
    raw = codec.encode(_sample())
    golden_files.check_bytes("protos/program.hex", raw)
    assert codec.digest(raw).hex() == "4c26fb782590fd4bb9f3c711a22ace7f"


@given(strategies.programs(of=catalogue.OPS))
def test_every_program_comes_back_from_its_bytes(work: strategies.Work) -> None:
    raw = codec.encode(work.program)
    again = codec.decode(raw, LIMITS)
    assert (again.inputs, again.scalars, again.ops, again.live) == _parts(work.program)
    assert again.specs == work.program.specs


@given(strategies.programs(of=catalogue.OPS))
def test_what_is_read_quickly_is_what_is_read_op_by_op(work: strategies.Work) -> None:
    raw = codec.encode(work.program)
    quickly = codec.decode(raw, LIMITS)
    carefully = finished(reading.read(parts_of(arrays_of(unpack(raw, longest_array=len(raw))))))
    assert _parts(quickly) == _parts(carefully)
    for one, other in zip(_arrays(quickly), _arrays(carefully), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def _steps(raw: bytes) -> int:
    """In how many steps a program is read."""
    return 1 + sum(1 for _ in codec.decode_in_steps(raw, LIMITS))


def _of_many_signatures(count: int) -> bytes:
    fulls = [ProgramOp(catalogue.BY_NAME["full"], (0,), ((index,), dtypes.float32.code)) for index in range(count)]
    return codec.encode(build((), (dtypes.float32,), fulls, (0,)))


def test_a_program_of_many_signatures_is_read_in_many_steps_and_one_of_few_in_one() -> None:
    assert _steps(_of_many_signatures(4000)) > 100
    assert _steps(_of_many_signatures(16)) == 1


def test_a_program_of_many_signatures_that_is_wrong_is_read_in_many_steps_too() -> None:
    raw = _of_many_signatures(4000)
    disordered = pack(parts_of(arrays_of(unpack(raw, longest_array=len(raw))))._replace(live=[1, 0]))
    steps = codec.decode_in_steps(disordered, LIMITS)
    assert [next(steps) for _ in range(200)] == [None] * 200
    with pytest.raises(CaseError, match="ascending"):
        finished(steps)


@given(strategies.programs(of=catalogue.OPS))
def test_nothing_is_read_op_by_op_if_nothing_is_wrong(work: strategies.Work) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "read", None)
        codec.decode(codec.encode(work.program), LIMITS)


def test_a_program_is_read_while_what_is_known_of_signatures_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = codec.encode(_sample())
    monkeypatch.setattr(signatures, "MOST_REMEMBERED", 2)
    assert codec.encode(codec.decode(raw, LIMITS)) == raw


def test_specs_of_every_operand_are_inferred() -> None:
    sample = codec.decode(codec.encode(_sample()), LIMITS)
    assert sample.first_result == 4
    assert sample.specs[3] == Spec(dtypes.float64, ())
    assert sample.result_spec(3) == Spec(dtypes.float32, (2, 300))
    assert sample.starts == 1
    assert sample.live_bytes == 8 * 300 * 4 + 2 + 12 * 8


ONE_INPUT = [[F32, 2, 3]]
ONE_OP = [[ADD, [0, 0]]]
BAD: dict[str, tuple[str, bytes]] = {
    "unknown op": ("unknown_op", program_bytes(ONE_INPUT, [], [[999, [0, 0]]], [0])),
    "negative op": ("unknown_op", program_bytes(ONE_INPUT, [], [[-1, [0, 0]]], [0])),
    "op of 2^64−1": ("unknown_op", program_bytes(ONE_INPUT, [], [[2**64 - 1, [0, 0]]], [0])),
    "op that is a float": ("undecodable_frame", program_bytes(ONE_INPUT, [], [[1.0, [0, 0]]], [0])),
    "op that is a bool": ("undecodable_frame", program_bytes(ONE_INPUT, [], [[True, [0, 0]]], [0])),
    "too few operands": ("bad_arity", program_bytes(ONE_INPUT, [], [[ADD, [0]]], [0])),
    "too many operands": ("bad_arity", program_bytes(ONE_INPUT, [], [[ADD, [0, 0, 0]]], [0])),
    "no attributes": ("bad_arity", program_bytes(ONE_INPUT, [], [[SUM, [0]]], [0])),
    "an attribute too many": ("bad_arity", program_bytes(ONE_INPUT, [], [[ADD, [0, 0], 1]], [0])),
    "descending axes": ("bad_attribute", program_bytes(ONE_INPUT, [], [[SUM, [0], [1, 0], False]], [0])),
    "axis twice": ("bad_attribute", program_bytes(ONE_INPUT, [], [[SUM, [0], [0, 0], False]], [0])),
    "axis −1": ("bad_attribute", program_bytes(ONE_INPUT, [], [[SUM, [0], [-1], False]], [0])),
    "axis beyond the rank": ("bad_shape", program_bytes(ONE_INPUT, [], [[SUM, [0], [2], False]], [0])),
    "flag that is a number": ("bad_attribute", program_bytes(ONE_INPUT, [], [[SUM, [0], [0], 1]], [0])),
    "dim −1 in an attribute": ("bad_attribute", program_bytes(ONE_INPUT, [], [[RESHAPE, [0], [-1]]], [0])),
    "dim 2^31 in an attribute": ("bad_attribute", program_bytes(ONE_INPUT, [], [[RESHAPE, [0], [2**31]]], [0])),
    "rank 17 in an attribute": ("bad_attribute", program_bytes(ONE_INPUT, [], [[RESHAPE, [0], [1] * 17]], [0])),
    "dims that are bytes": ("bad_attribute", program_bytes(ONE_INPUT, [], [[RESHAPE, [0], b"6"]], [0])),
    "step 0": ("bad_attribute", program_bytes(ONE_INPUT, [], [[SLICE, [0], [0], [1], [0], []]], [0])),
    "step 2^63": ("bad_attribute", program_bytes(ONE_INPUT, [], [[SLICE, [0], [0], [1], [2**63], []]], [0])),
    "region too long": ("bad_shape", program_bytes(ONE_INPUT, [], [[SLICE, [0], [0], [3], [1], []]], [0])),
    "stride of 2^40 + 1": ("bad_attribute", program_bytes(ONE_INPUT, [], [[STRIDED, [0], [1], [2**40 + 1]]], [0])),
    "stride that is a bool": ("bad_attribute", program_bytes(ONE_INPUT, [], [[STRIDED, [0], [1], [True]]], [0])),
    "strides that are too many": ("bad_shape", program_bytes(ONE_INPUT, [], [[STRIDED, [0], [1], [1, 1]]], [0])),
    "view too long": ("bad_shape", program_bytes(ONE_INPUT, [], [[STRIDED, [0], [7], [1]]], [0])),
    "view too large": (
        "bad_shape",
        program_bytes(ONE_INPUT, [], [[STRIDED, [0], [2**31 - 1] * 2, [0, 0]]], [0]),
    ),
    "dtype attribute unknown": ("bad_attribute", program_bytes(ONE_INPUT, [], [[ASTYPE, [0], UNKNOWN_DTYPE]], [0])),
    "diagonal of 2^40": ("bad_attribute", program_bytes([], [], [[EYE, [], 2, 2, 2**40, F32]], [0])),
    "elements do not fit": ("bad_shape", program_bytes(ONE_INPUT, [], [[RESHAPE, [0], [7]]], [0])),
    "shapes do not broadcast": ("bad_shape", program_bytes([[F32, 2], [F32, 3]], [], [[ADD, [0, 1]]], [0])),
    "operand of the future": ("bad_operand", program_bytes(ONE_INPUT, [], [[ADD, [0, 1]]], [0])),
    "dtype unknown": ("bad_dtype", program_bytes([[UNKNOWN_DTYPE, 2]], [], ONE_OP, [0])),
    "scalar dtype unknown": ("bad_dtype", program_bytes(ONE_INPUT, [-1], ONE_OP, [0])),
    "dtype that is a bool": ("undecodable_frame", program_bytes([[True, 2]], [], ONE_OP, [0])),
    "dim −1": ("bad_shape", program_bytes([[F32, -1]], [], ONE_OP, [0])),
    "dim 2^31": ("bad_shape", program_bytes([[F32, 2**31]], [], ONE_OP, [0])),
    "dim 2^63": ("bad_shape", program_bytes([[F32, 2**63]], [], ONE_OP, [0])),
    "dim 2^64−1": ("bad_shape", program_bytes([[F32, 2**64 - 1]], [], ONE_OP, [0])),
    "dim that is a float": ("bad_shape", program_bytes([[F32, 2.0]], [], ONE_OP, [0])),
    "rank 17": ("bad_shape", program_bytes([[F32, *[1] * 17]], [], ONE_OP, [0])),
    "product beyond 64 bits": ("bad_shape", program_bytes([[F32, *[2**31 - 1] * 3]], [], ONE_OP, [0])),
    "array beyond the limit": ("quota_array_bytes", program_bytes([[F32, 2**16, 2**20]], [], ONE_OP, [0])),
    "live results descend": ("bad_operand", program_bytes(ONE_INPUT, [], ONE_OP * 2, [1, 0])),
    "live result twice": ("bad_operand", program_bytes(ONE_INPUT, [], ONE_OP, [0, 0])),
    "live result that is none": ("bad_operand", program_bytes(ONE_INPUT, [], ONE_OP, [1])),
    "no ops": ("quota_program", program_bytes(ONE_INPUT, [], [], [])),
    "too many ops": ("quota_program", program_bytes(ONE_INPUT, [], ONE_OP * 8193, [])),
    "no parts": ("undecodable_frame", msgpack.packb([])),
    "six parts": ("undecodable_frame", msgpack.packb([b"\x00", b"", ONE_INPUT, [[ADD, [0, 0]]], b"\x00", b"\x00\x00"])),
    "a map": ("undecodable_frame", msgpack.packb({1: 2})),
    "a number": ("undecodable_frame", msgpack.packb(4)),
    "parts that are maps": ("undecodable_frame", msgpack.packb([{}] * 7)),
    "text": ("undecodable_frame", program_bytes([["float32", 2]], [], ONE_OP, [0])),
    "nothing": ("undecodable_frame", b""),
    "something after the end": ("undecodable_frame", codec.encode(_sample()) + b"\x00"),
    "an integer longer than needed": (
        "undecodable_frame",
        codec.encode(_sample()).replace(b"\x93" + bytes([F32]) + b"\x08\x40", b"\x93" + bytes([F32]) + b"\xcc\x08\x40"),
    ),
}


# add(a, b), its product with a scalar, the sum of that and b, and what is negative of this.
GOOD: dict[str, Any] = {
    "inputs": b"\x00\x01",
    "scalars": b"\x02",
    "specs": [[F32, 2, 3], [F32, 3], [F32]],
    "signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]],
    "ops": b"\x00\x01\x00\x02",
    "operands": b"\x00\x01\x03\x02\x04\x01\x05",
    "live": b"\x03",
}
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "input of no spec": ("undecodable_frame", {"inputs": b"\x00\x03"}),
    "scalar of no spec": ("undecodable_frame", {"scalars": b"\xff"}),
    "scalar with dims": ("bad_shape", {"scalars": b"\x01"}),
    "inputs that are a list": ("undecodable_frame", {"inputs": [0, 1]}),
    "ops that are a list": ("undecodable_frame", {"ops": [0, 1, 0, 2]}),
    "signature that is an extension": ("undecodable_frame", {"signatures": [msgpack.ExtType(5, b"")]}),
    "specs that are an extension": ("undecodable_frame", {"specs": msgpack.ExtType(5, b"")}),
    "specs that are bytes": ("undecodable_frame", {"specs": b"\x00"}),
    "signatures that are a number": ("undecodable_frame", {"signatures": 3}),
    "spec that is a number": ("undecodable_frame", {"specs": [[F32, 2, 3], [F32, 3], F32]}),
    "spec of nothing": ("undecodable_frame", {"specs": [[F32, 2, 3], [F32, 3], []]}),
    "spec twice": ("undecodable_frame", {"inputs": b"\x00\x01", "specs": [[F32, 2, 3], [F32, 3], [F32], [F32, 3]]}),
    "spec that nothing mentions": ("undecodable_frame", {"specs": [[F32, 2, 3], [F32, 3], [F32], [F32, 4]]}),
    "specs in another order": (
        "undecodable_frame",
        {
            "inputs": b"\x01\x00",
            "specs": [[F32, 3], [F32, 2, 3], [F32]],
            "signatures": [[ADD, [1, 0]], [MULTIPLY, [1, 2]], [NEGATIVE, [1]]],
        },
    ),
    "more specs than operands": ("undecodable_frame", {"specs": [[F32, dim] for dim in range(20)]}),
    "signature of no list": ("undecodable_frame", {"signatures": [ADD, [MULTIPLY, [0, 2]], [NEGATIVE, [0]]]}),
    "signature of a code alone": ("undecodable_frame", {"signatures": [[ADD], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]]}),
    "signature of a nested code": (
        "undecodable_frame",
        {"signatures": [[[ADD], [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]]},
    ),
    "signature whose operands are bytes": (
        "undecodable_frame",
        {"signatures": [[ADD, b"\x00\x01"], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]]},
    ),
    "signature of no spec": ("undecodable_frame", {"signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [3]]]}),
    "signature of spec −1": (
        "undecodable_frame",
        {"signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [-1]]]},
    ),
    "signature of spec 2^64−1": (
        "undecodable_frame",
        {"signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [2**64 - 1]]]},
    ),
    "signature of another spec": ("bad_operand", {"signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [1]]]}),
    "signature of another spec that is as good": (
        "bad_operand",
        {"signatures": [[ADD, [0, 0]], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]]},
    ),
    "signature of fewer operands": (
        "bad_arity",
        {
            "signatures": [[ADD, [0]], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]],
            "operands": b"\x00\x03\x02\x04\x05",
        },
    ),
    "signature twice": (
        "undecodable_frame",
        {
            "signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [ADD, [0, 1]], [NEGATIVE, [0]]],
            "ops": b"\x00\x01\x02\x03",
        },
    ),
    "signature that no op has": (
        "undecodable_frame",
        {"signatures": [[ADD, [0, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [0]], [NEGATIVE, [1]]]},
    ),
    "signatures in another order": (
        "undecodable_frame",
        {"signatures": [[MULTIPLY, [0, 2]], [ADD, [0, 1]], [NEGATIVE, [0]]], "ops": b"\x01\x00\x01\x02"},
    ),
    "more signatures than ops": ("undecodable_frame", {"signatures": [[NEGATIVE, [0]]] * 5}),
    "op of no signature": ("undecodable_frame", {"ops": b"\x00\x01\x00\x03"}),
    "ops of two bytes": ("undecodable_frame", {"ops": b"\x00\x00\x01\x00\x00\x00\x02\x00"}),
    "operands of two bytes": ("undecodable_frame", {"operands": b"".join(bytes([n, 0]) for n in b"\0\1\3\2\4\1\5")}),
    "an operand too few": ("undecodable_frame", {"operands": b"\x00\x01\x03\x02\x04\x01"}),
    "an operand too many": ("undecodable_frame", {"operands": b"\x00\x01\x03\x02\x04\x01\x05\x05"}),
    "no operands": ("undecodable_frame", {"operands": b""}),
    "operand that is the result": ("bad_operand", {"operands": b"\x03\x01\x03\x02\x04\x01\x05"}),
    "operand of a later op": ("bad_operand", {"operands": b"\x00\x01\x05\x02\x04\x01\x05"}),
    "operand that nothing is": ("bad_operand", {"operands": b"\x00\x01\x03\x02\x04\x01\xff"}),
    "operand of another spec": ("bad_operand", {"operands": b"\x00\x01\x03\x02\x04\x01\x01"}),
    "live result that is none": ("bad_operand", {"live": b"\x04"}),
    "live result twice": ("bad_operand", {"live": b"\x03\x03"}),
    "live results descend": ("bad_operand", {"live": b"\x03\x02"}),
    "live result that is a list": ("undecodable_frame", {"live": [3]}),
}


def test_what_wrong_bytes_differ_from_is_right() -> None:
    decoded = codec.decode(msgpack.packb([*GOOD.values()]), LIMITS)
    assert decoded.operands == ((0, 1), (3, 2), (4, 1), (5,))
    assert [signature.op.name for signature in decoded.signatures] == ["add", "multiply", "add", "negative"]
    assert decoded.live == (3,)


@pytest.mark.parametrize(("case", "change"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_part_is_refused_with_its_case(case: str, change: dict[str, Any]) -> None:
    assert _refusal(msgpack.packb([*(GOOD | change).values()])) == case


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (WRONG["signature of another spec"][1], "op 3 negative has operands of other specs than its signature"),
        (WRONG["operand of a later op"][1], "op 1 multiply has operands (5, 2), but only those below 4 exist"),
        (WRONG["op of no signature"][1], "op 3 has signature 3; 3 are listed"),
        (WRONG["input of no spec"][1], "input 1 has spec 3; 3 are listed"),
        (WRONG["an operand too few"][1], "op 3 has 1 operands; 0 are left"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(change: dict[str, Any], text: str) -> None:
    with pytest.raises(CaseError) as refused:
        codec.decode(msgpack.packb([*(GOOD | change).values()]), LIMITS)
    assert refused.value.text == text


@pytest.mark.parametrize(("count", "width_bytes"), [(1, 1), (255, 1), (256, 1), (257, 2), (MOST_LEAVES, 2)])
def test_numbers_are_as_wide_as_the_largest_that_there_may_be(count: int, width_bytes: int) -> None:
    specs = [[F32, dim] for dim in range(count)]
    raw = program_bytes(specs, [], [[NEGATIVE, [0]]], [0])
    inputs, _, _, _, ops, operands, live = unpack(raw, longest_array=len(raw))
    assert inputs == np.arange(count).astype(f"<u{width_bytes}").tobytes()
    assert (ops, len(operands), live) == (b"\0", 1 if count < 256 else 2, b"\0")
    assert codec.decode(raw, LIMITS).inputs[-1].shape == (count - 1,)


@pytest.mark.parametrize("surplus", [1, 2, 3])
def test_an_array_that_is_no_number_of_numbers_is_refused(surplus: int) -> None:
    raw = program_bytes([[F32, dim] for dim in range(70_000)], [], [[NEGATIVE, [0]]], [0])
    parts = [*unpack(raw, longest_array=len(raw))]
    parts[5] += bytes(surplus)
    assert _refusal(msgpack.packb(parts), LIMITS._replace(program_operands=70_000)) == "undecodable_frame"


@pytest.mark.parametrize(("case", "raw"), BAD.values(), ids=BAD.keys())
def test_bad_bytes_are_refused_with_their_case(case: str, raw: bytes) -> None:
    assert _refusal(raw) == case


@pytest.mark.parametrize(
    ("case", "good", "bad"),
    [
        ("bad_attribute", [SUM, [0], [0], True], [SUM, [0], [0], 1]),
        ("bad_attribute", [SUM, [0], [1], False], [SUM, [0], [True], False]),
        ("bad_attribute", [SUM, [0], [1], False], [SUM, [0], [1.0], False]),
        ("undecodable_frame", [ADD, [0, 0]], [float(ADD), [0, 0]]),
    ],
)
def test_what_equals_a_known_op_in_another_type_is_refused(case: str, good: Any, bad: Any) -> None:
    codec.decode(program_bytes(ONE_INPUT, [], [good], [0]), LIMITS)
    assert _refusal(program_bytes(ONE_INPUT, [], [bad], [0])) == case


@pytest.mark.parametrize("number", [False, 0.0])
def test_what_equals_a_spec_number_in_another_type_is_refused(number: Any) -> None:
    change = {"signatures": [[ADD, [number, 1]], [MULTIPLY, [0, 2]], [NEGATIVE, [0]]]}
    assert _refusal(msgpack.packb([*(GOOD | change).values()])) == "undecodable_frame"


def test_ops_of_any_number_of_operands_are_read() -> None:
    decoded = codec.decode(program_bytes(ONE_INPUT, [], [[CONCAT, [0] * 1000, 0]], [0]), LIMITS)
    assert decoded.result_spec(0).shape == (2000, 3)


def test_every_truncation_is_refused() -> None:
    raw = codec.encode(_sample())
    assert {_refusal(raw[:length]) for length in range(len(raw))} == {"undecodable_frame"}


def test_bytes_beyond_the_limit_are_refused_before_they_are_read() -> None:
    assert _refusal(b"\xff" * 1001, ProgramLimits(program_bytes=1000)) == "quota_program"


def test_limits_of_ops_and_arrays_are_the_settings() -> None:
    raw = codec.encode(_sample())
    assert _refusal(raw, ProgramLimits(program_ops=7)) == "quota_program"
    assert _refusal(raw, ProgramLimits(array_bytes=1000)) == "quota_array_bytes"


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ((100,), "op 1 concat(float32[200], float32[200]): float32[400] has 1600 bytes; limits.array_bytes = 1000"),
        ((300,), "input 0: float32[300] has 1200 bytes; limits.array_bytes = 1000"),
    ],
)
def test_what_is_too_large_is_named(dims: tuple[int, ...], text: str) -> None:
    doubled = [ProgramOp(catalogue.BY_NAME["concat"], (number, number), (0,)) for number in range(3)]
    raw = codec.encode(build([Spec(dtypes.float32, dims)], [], doubled, [2]))
    with pytest.raises(CaseError) as caught:
        codec.decode(raw, ProgramLimits(array_bytes=1000))
    assert caught.value.text == text


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=10), st.integers(1, 20), st.integers(0, 20), st.integers(1, 60)
)
def test_a_program_takes_no_more_operands_than_its_limit_nor_inputs_and_scalars(
    arities: list[int], inputs: int, scalars: int, most: int
) -> None:
    ops = [[CONCAT, [0] * arity, 0] for arity in arities]
    raw = program_bytes(ONE_INPUT * inputs, [F32] * scalars, ops, [0])
    limits = ProgramLimits(program_operands=most)
    if max(sum(arities), inputs + scalars) > most:
        assert _refusal(raw, limits) == "quota_program"
    else:
        assert len(codec.decode(raw, limits).ops) == len(ops)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (program_bytes(ONE_INPUT, [], [[CONCAT, [0] * 9, 0]], [0]), "9 operands of ops; limits.program_operands = 8"),
        (program_bytes(ONE_INPUT, [], [[ADD, [0, 0]]] * 5, [0]), "10 operands of ops; limits.program_operands = 8"),
        (
            program_bytes(ONE_INPUT * 6, [F32] * 3, [[ADD, [0, 0]]], [0]),
            "6 inputs and 3 scalars; limits.program_operands = 8",
        ),
    ],
)
def test_too_many_operands_are_told_with_the_setting(raw: bytes, text: str) -> None:
    with pytest.raises(CaseError) as refused:
        codec.decode(raw, ProgramLimits(program_operands=8))
    assert refused.value.text == text


def test_too_many_operands_are_refused_before_any_rule_sees_them() -> None:
    no_op, far_operand = 65535, 200
    raw = program_bytes(ONE_INPUT, [], [[no_op, [far_operand] * 9]], [7])
    assert _refusal(raw, ProgramLimits(program_operands=8)) == "quota_program"


def test_what_is_wrong_with_many_operands_is_told_in_few_words() -> None:
    raw = program_bytes([[F32, 2, 3], [F32, 4, 3, 1]], [], [[CONCAT, [0] * 4000 + [1], 0]], [0])
    assert _refusal(raw) == "bad_shape"


@given(st.binary(max_size=200))
def test_random_bytes_give_a_refusal(raw: bytes) -> None:
    _refusal(raw)


@given(strategies.programs(of=catalogue.OPS), st.data())
def test_a_changed_byte_gives_a_program_or_a_refusal(work: strategies.Work, data: st.DataObject) -> None:
    raw = bytearray(codec.encode(work.program))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = codec.decode(bytes(raw), LIMITS)
    except CaseError:
        return
    assert codec.encode(decoded) == bytes(raw)


# Integers about the limits, other types and nested lists, in the places where a program has its parts.
_NUMBERS = st.one_of(st.integers(-2, 9), st.sampled_from((2**31 - 1, 2**31, 2**63, 2**64 - 1, -(2**63))))
_JUNK = st.recursive(
    st.one_of(_NUMBERS, st.none(), st.booleans(), st.floats(), st.binary(max_size=3), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.integers(0, 3), inner, max_size=2)),
    max_leaves=20,
)
_CODES = st.one_of(st.sampled_from([op.code for op in catalogue.OPS]), _JUNK)
_PLAUSIBLE_SIGNATURE = st.tuples(_CODES, st.one_of(st.lists(st.integers(-1, 3), max_size=3), _JUNK)).flatmap(
    lambda head: st.lists(_JUNK, max_size=4).map(lambda attributes: [*head, *attributes])
)
_PLAUSIBLE_ARRAY = st.one_of(st.lists(st.integers(0, 6), max_size=8).map(bytes), st.binary(max_size=8), _JUNK)
_PLAUSIBLE = {
    "specs": st.lists(st.one_of(st.lists(_NUMBERS, max_size=3), _JUNK), max_size=4),
    "signatures": st.lists(st.one_of(_PLAUSIBLE_SIGNATURE, _JUNK), max_size=4),
} | dict.fromkeys(("inputs", "scalars", "ops", "operands", "live"), _PLAUSIBLE_ARRAY)


@given(st.fixed_dictionaries({}, optional=_PLAUSIBLE))
def test_junk_in_place_of_parts_gives_a_program_or_a_refusal(change: dict[str, Any]) -> None:
    raw = msgpack.packb([*(GOOD | change).values()])
    try:
        decoded = codec.decode(raw, LIMITS)
    except CaseError as error:
        assert len(error.text) < 1000  # noqa: PT017 - either outcome is right
        return
    assert codec.encode(decoded) == raw


@given(st.data())
def test_other_numbers_in_arrays_give_a_program_or_a_refusal(data: st.DataObject) -> None:
    """Most changes to bytes break a list; these leave all as it was but what the arrays say."""
    parts = dict(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(("inputs", "scalars", "ops", "operands", "live")))
        place = data.draw(st.integers(0, len(parts[name]) - 1))
        number = data.draw(st.integers(0, 7))
        parts[name] = parts[name][:place] + bytes([number]) + parts[name][place + 1 :]
    raw = msgpack.packb([*parts.values()])
    try:
        decoded = codec.decode(raw, LIMITS)
    except CaseError:
        return
    assert codec.encode(decoded) == raw


@pytest.mark.parametrize("depth", [3, 100, 1023, 1024, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    assert _refusal(b"\x91" * depth + b"\x00") == "undecodable_frame"


@pytest.mark.parametrize("depth", [100, 500, 1000])
def test_a_dim_that_is_a_deep_nest_is_refused_in_few_words(depth: int) -> None:
    nest = b"\x91" * depth + b"\x00"
    spec = b"\x92" + bytes([F32]) + nest
    parts = [msgpack.packb(part) for part in (b"\0", b"", [[ADD, [0, 0]]], b"\0", b"\0\0", b"\0")]
    raw = b"\x97" + b"".join([*parts[:2], b"\x91" + spec, *parts[2:]])
    assert _refusal(raw) == "bad_shape"


@pytest.mark.parametrize("head", [b"\xdd\xff\xff\xff\xff", b"\xdd\x00\x0f\xff\x00", b"\xc6\xff\xff\xff\xff"])
def test_a_length_without_its_items_takes_no_memory(head: bytes) -> None:
    raw = (head * 500).ljust(LIMITS.program_bytes, b"\xc1")
    tracemalloc.start()
    try:
        assert _refusal(raw) == "undecodable_frame"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 * len(raw)


@pytest.mark.parametrize(
    "raw",
    [
        program_bytes([[F32]] * 300_000, [], ONE_OP, [0]),
        program_bytes([[F32, 2]], [], [[catalogue.BY_NAME["concat"].code, [0] * 500_000, 0]], [0]),
        program_bytes(ONE_INPUT, [F32] * 500_000, ONE_OP, [0]),
        program_bytes(ONE_INPUT, [], ONE_OP * 8192, list(range(8192))),
        program_bytes(ONE_INPUT, [], [[RESHAPE, [0], [dim]] for dim in range(8192)], []),
        program_bytes([[F32, dim] for dim in range(32768)], [], [[CONCAT, [*range(32768)], 0]], []),
        msgpack.packb([*(GOOD | {"signatures": [[ADD, [0] * 1_000_000]]}).values()]),
        msgpack.packb([*(GOOD | {"specs": [[F32]] * 300_000}).values()]),
    ],
    ids=["inputs", "operands", "scalars", "ops", "rules", "specs", "claims", "specs of nothing"],
)
def test_the_largest_programs_are_read_in_bounded_time(raw: bytes) -> None:
    started = time.process_time()
    try:
        codec.decode(raw, LIMITS)
    except CaseError as error:
        assert error.case.name in {"quota_program", "bad_shape", "bad_arity", "undecodable_frame", "oversized_frame"}  # noqa: PT017 - either outcome is right
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (program_bytes([[F32]] * (MOST_LEAVES + 1), [], ONE_OP, [0]), "4097 inputs and 0 scalars; the most is 4096"),
        (
            program_bytes(ONE_INPUT, [], [[NEGATIVE, [0]]] * (MOST_LIVE + 1), range(MOST_LIVE + 1)),
            "2049 live results; the most is 2048",
        ),
        (
            program_bytes(ONE_INPUT, [], [[SLICE, [0], [0], [1], [1], [0]]] * (MOST_STARTS + 1), [0]),
            "8193 starts of slices; the most is 8192",
        ),
    ],
    ids=["inputs", "live results", "starts"],
)
def test_what_no_step_could_look_at_is_refused(raw: bytes, text: str) -> None:
    with pytest.raises(CaseError, match=f"^quota_program.*{text}$"):
        codec.decode(raw, LIMITS._replace(program_ops=MOST_STARTS + 1))
