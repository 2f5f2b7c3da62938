"""Programs have one encoding, and bytes that are no program are refused in time and space that they pay for."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos import catalogue, dtypes, program
from fusewire_protos.errors import CaseError
from fusewire_protos.program import Program, ProgramLimits, ProgramOp, build
from fusewire_protos.shapes import Spec
from tests import golden_files, strategies

LIMITS = ProgramLimits()
ADD, SUM, RESHAPE, SLICE, ASTYPE, EYE, CONCAT = (
    catalogue.BY_NAME[name].code for name in ("add", "sum", "reshape", "slice", "astype", "eye", "concat")
)
F32 = dtypes.float32.code


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


def _packed(inputs: Any, scalars: Any, ops: Any, live: Any) -> bytes:
    raw: bytes = msgpack.packb([inputs, scalars, ops, live])
    return raw


def _parts(known: Program) -> tuple[Any, ...]:
    return known.inputs, known.scalars, known.ops, known.live


def _refusal(raw: bytes, limits: ProgramLimits = LIMITS) -> str:
    with pytest.raises(CaseError) as caught:
        program.decode(raw, limits)
    assert len(caught.value.text) < 1000
    return caught.value.case.name


def test_the_bytes_of_a_program_never_change_unnoticed() -> None:
    raw = program.encode(_sample())
    golden_files.check_bytes("protos/program.hex", raw)
    assert program.digest(raw).hex() == "2bdbebb56e1448a34f8f00e1df1f9c59"


@given(strategies.programs())
def test_every_program_comes_back_from_its_bytes(work: strategies.Work) -> None:
    raw = program.encode(work.program)
    again = program.decode(raw, LIMITS)
    assert (again.inputs, again.scalars, again.ops, again.live) == _parts(work.program)
    assert again.specs == work.program.specs


def test_specs_of_every_operand_are_inferred() -> None:
    sample = program.decode(program.encode(_sample()), LIMITS)
    assert sample.first_result == 4
    assert sample.specs[3] == Spec(dtypes.float64, ())
    assert sample.result_spec(3) == Spec(dtypes.float32, (2, 300))
    assert sample.starts == 1
    assert sample.live_bytes == 8 * 300 * 4 + 2 + 12 * 8


ONE_INPUT = [[F32, 2, 3]]
ONE_OP = [[ADD, [0, 0]]]
BAD: dict[str, tuple[str, bytes]] = {
    "unknown op": ("unknown_op", _packed(ONE_INPUT, [], [[999, [0, 0]]], [0])),
    "negative op": ("unknown_op", _packed(ONE_INPUT, [], [[-1, [0, 0]]], [0])),
    "op of 2^64−1": ("unknown_op", _packed(ONE_INPUT, [], [[2**64 - 1, [0, 0]]], [0])),
    "op that is a float": ("undecodable_frame", _packed(ONE_INPUT, [], [[1.0, [0, 0]]], [0])),
    "op that is a bool": ("undecodable_frame", _packed(ONE_INPUT, [], [[True, [0, 0]]], [0])),
    "too few operands": ("bad_arity", _packed(ONE_INPUT, [], [[ADD, [0]]], [0])),
    "too many operands": ("bad_arity", _packed(ONE_INPUT, [], [[ADD, [0, 0, 0]]], [0])),
    "no attributes": ("bad_arity", _packed(ONE_INPUT, [], [[SUM, [0]]], [0])),
    "an attribute too many": ("bad_arity", _packed(ONE_INPUT, [], [[ADD, [0, 0], 1]], [0])),
    "descending axes": ("bad_attribute", _packed(ONE_INPUT, [], [[SUM, [0], [1, 0], False]], [0])),
    "axis twice": ("bad_attribute", _packed(ONE_INPUT, [], [[SUM, [0], [0, 0], False]], [0])),
    "axis −1": ("bad_attribute", _packed(ONE_INPUT, [], [[SUM, [0], [-1], False]], [0])),
    "axis beyond the rank": ("bad_shape", _packed(ONE_INPUT, [], [[SUM, [0], [2], False]], [0])),
    "flag that is a number": ("bad_attribute", _packed(ONE_INPUT, [], [[SUM, [0], [0], 1]], [0])),
    "dim −1 in an attribute": ("bad_attribute", _packed(ONE_INPUT, [], [[RESHAPE, [0], [-1]]], [0])),
    "dim 2^31 in an attribute": ("bad_attribute", _packed(ONE_INPUT, [], [[RESHAPE, [0], [2**31]]], [0])),
    "rank 9 in an attribute": ("bad_attribute", _packed(ONE_INPUT, [], [[RESHAPE, [0], [1] * 9]], [0])),
    "dims that are bytes": ("bad_attribute", _packed(ONE_INPUT, [], [[RESHAPE, [0], b"6"]], [0])),
    "step 0": ("bad_attribute", _packed(ONE_INPUT, [], [[SLICE, [0], [0], [1], [0], []]], [0])),
    "step 2^63": ("bad_attribute", _packed(ONE_INPUT, [], [[SLICE, [0], [0], [1], [2**63], []]], [0])),
    "region too long": ("bad_shape", _packed(ONE_INPUT, [], [[SLICE, [0], [0], [3], [1], []]], [0])),
    "dtype attribute unknown": ("bad_attribute", _packed(ONE_INPUT, [], [[ASTYPE, [0], 8]], [0])),
    "diagonal of 2^40": ("bad_attribute", _packed([], [], [[EYE, [], 2, 2, 2**40, F32]], [0])),
    "elements do not fit": ("bad_shape", _packed(ONE_INPUT, [], [[RESHAPE, [0], [7]]], [0])),
    "shapes do not broadcast": ("bad_shape", _packed([[F32, 2], [F32, 3]], [], [[ADD, [0, 1]]], [0])),
    "operand of the future": ("bad_operand", _packed(ONE_INPUT, [], [[ADD, [0, 1]]], [0])),
    "operand −1": ("bad_operand", _packed(ONE_INPUT, [], [[ADD, [0, -1]]], [0])),
    "operand 2^64−1": ("bad_operand", _packed(ONE_INPUT, [], [[ADD, [0, 2**64 - 1]]], [0])),
    "operand that is a bool": ("undecodable_frame", _packed(ONE_INPUT, [], [[ADD, [0, False]]], [0])),
    "dtype unknown": ("bad_dtype", _packed([[8, 2]], [], ONE_OP, [0])),
    "scalar dtype unknown": ("bad_dtype", _packed(ONE_INPUT, [-1], ONE_OP, [0])),
    "dim −1": ("bad_shape", _packed([[F32, -1]], [], ONE_OP, [0])),
    "dim 2^31": ("bad_shape", _packed([[F32, 2**31]], [], ONE_OP, [0])),
    "dim 2^63": ("bad_shape", _packed([[F32, 2**63]], [], ONE_OP, [0])),
    "dim 2^64−1": ("bad_shape", _packed([[F32, 2**64 - 1]], [], ONE_OP, [0])),
    "dim that is a float": ("bad_shape", _packed([[F32, 2.0]], [], ONE_OP, [0])),
    "rank 9": ("bad_shape", _packed([[F32, *[1] * 9]], [], ONE_OP, [0])),
    "product beyond 64 bits": ("bad_shape", _packed([[F32, *[2**31 - 1] * 3]], [], ONE_OP, [0])),
    "array beyond the limit": ("quota_array_bytes", _packed([[F32, 2**16, 2**20]], [], ONE_OP, [0])),
    "live results descend": ("bad_operand", _packed(ONE_INPUT, [], ONE_OP * 2, [1, 0])),
    "live result twice": ("bad_operand", _packed(ONE_INPUT, [], ONE_OP, [0, 0])),
    "live result that is none": ("bad_operand", _packed(ONE_INPUT, [], ONE_OP, [1])),
    "no ops": ("quota_program", _packed(ONE_INPUT, [], [], [])),
    "too many ops": ("quota_program", _packed(ONE_INPUT, [], ONE_OP * 8193, [])),
    "three parts": ("undecodable_frame", msgpack.packb([[], [], []])),
    "a map": ("undecodable_frame", msgpack.packb({1: 2})),
    "a number": ("undecodable_frame", msgpack.packb(4)),
    "parts that are maps": ("undecodable_frame", msgpack.packb([{}, {}, {}, {}])),
    "text": ("undecodable_frame", _packed([["float32", 2]], [], ONE_OP, [0])),
    "an extension": ("undecodable_frame", _packed(ONE_INPUT, [], [msgpack.ExtType(5, b"")], [0])),
    "nothing": ("undecodable_frame", b""),
    "something after the end": ("undecodable_frame", program.encode(_sample()) + b"\x00"),
    "an integer longer than needed": (
        "undecodable_frame",
        program.encode(_sample()).replace(
            b"\x93" + bytes([F32]) + b"\x08\x40", b"\x93" + bytes([F32]) + b"\xcc\x08\x40"
        ),
    ),
}


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
        ("undecodable_frame", [ADD, [0, 0]], [ADD, [0, False]]),
        ("undecodable_frame", [ADD, [0, 0]], [ADD, [0, 0.0]]),
    ],
)
def test_what_equals_a_known_op_in_another_type_is_refused(case: str, good: Any, bad: Any) -> None:
    program.decode(_packed(ONE_INPUT, [], [good], [0]), LIMITS)
    assert _refusal(_packed(ONE_INPUT, [], [bad], [0])) == case


def test_ops_of_any_number_of_operands_are_read() -> None:
    decoded = program.decode(_packed(ONE_INPUT, [], [[CONCAT, [0] * 1000, 0]], [0]), LIMITS)
    assert decoded.result_spec(0).shape == (2000, 3)


def test_every_truncation_is_refused() -> None:
    raw = program.encode(_sample())
    assert {_refusal(raw[:length]) for length in range(len(raw))} == {"undecodable_frame"}


def test_bytes_beyond_the_limit_are_refused_before_they_are_read() -> None:
    assert _refusal(b"\xff" * 1001, ProgramLimits(program_bytes=1000)) == "quota_program"


def test_limits_of_ops_and_arrays_are_the_settings() -> None:
    raw = program.encode(_sample())
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
    doubled = [[CONCAT, [0, 0], 0], [CONCAT, [1, 1], 0], [CONCAT, [2, 2], 0]]
    with pytest.raises(CaseError) as caught:
        program.decode(_packed([[F32, *dims]], [], doubled, [2]), ProgramLimits(array_bytes=1000))
    assert caught.value.text == text


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=10), st.integers(1, 20), st.integers(0, 20), st.integers(1, 60)
)
def test_a_program_takes_no_more_operands_than_its_limit_nor_inputs_and_scalars(
    arities: list[int], inputs: int, scalars: int, most: int
) -> None:
    ops = [[CONCAT, [0] * arity, 0] for arity in arities]
    raw = _packed(ONE_INPUT * inputs, [F32] * scalars, ops, [0])
    limits = ProgramLimits(program_operands=most)
    if max(sum(arities), inputs + scalars) > most:
        assert _refusal(raw, limits) == "quota_program"
    else:
        assert len(program.decode(raw, limits).ops) == len(ops)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (_packed(ONE_INPUT, [], [[CONCAT, [0] * 9, 0]], [0]), "9 operands of ops; limits.program_operands = 8"),
        (_packed(ONE_INPUT, [], [[ADD, [0, 0]]] * 5, [0]), "10 operands of ops; limits.program_operands = 8"),
        (
            _packed(ONE_INPUT * 6, [F32] * 3, [[ADD, [0, 0]]], [0]),
            "6 inputs and 3 scalars; limits.program_operands = 8",
        ),
    ],
)
def test_too_many_operands_are_told_with_the_setting(raw: bytes, text: str) -> None:
    with pytest.raises(CaseError) as refused:
        program.decode(raw, ProgramLimits(program_operands=8))
    assert refused.value.text == text


def test_too_many_operands_are_refused_before_any_rule_sees_them() -> None:
    no_op, far_operand = 65535, 1 << 60
    raw = _packed(ONE_INPUT, [], [[no_op, [far_operand] * 9]], [7])
    assert _refusal(raw, ProgramLimits(program_operands=8)) == "quota_program"


def test_what_is_wrong_with_many_operands_is_told_in_few_words() -> None:
    raw = _packed([[F32, 2, 3], [F32, 4, 3, 1]], [], [[CONCAT, [0] * 10_000 + [1], 0]], [0])
    assert _refusal(raw) == "bad_shape"


@given(st.binary(max_size=200))
def test_random_bytes_give_a_refusal(raw: bytes) -> None:
    _refusal(raw)


@given(strategies.programs(), st.data())
def test_a_changed_byte_gives_a_program_or_a_refusal(work: strategies.Work, data: st.DataObject) -> None:
    raw = bytearray(program.encode(work.program))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = program.decode(bytes(raw), LIMITS)
    except CaseError:
        return
    assert program.encode(decoded) == bytes(raw)


# Integers about the limits, other types and nested lists, in the places where a program has its parts.
_NUMBERS = st.one_of(st.integers(-2, 9), st.sampled_from((2**31 - 1, 2**31, 2**63, 2**64 - 1, -(2**63))))
_JUNK = st.recursive(
    st.one_of(_NUMBERS, st.none(), st.booleans(), st.floats(), st.binary(max_size=3), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.integers(0, 3), inner, max_size=2)),
    max_leaves=20,
)
_PLAUSIBLE_OP = st.tuples(
    st.sampled_from([op.code for op in catalogue.OPS]), st.lists(st.integers(-1, 6), max_size=4)
).flatmap(lambda head: st.lists(_JUNK, max_size=4).map(lambda attributes: [*head, *attributes]))


@given(st.lists(_JUNK, max_size=3), st.lists(_JUNK, max_size=3), st.lists(_PLAUSIBLE_OP, max_size=4), _JUNK)
def test_junk_in_place_of_parts_gives_a_program_or_a_refusal(inputs: Any, scalars: Any, ops: Any, live: Any) -> None:
    try:
        program.decode(_packed(inputs, scalars, ops, live), LIMITS)
    except CaseError as error:
        assert len(error.text) < 1000  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("depth", [3, 100, 1023, 1024, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    assert _refusal(b"\x91" * depth + b"\x00") == "undecodable_frame"


@pytest.mark.parametrize("depth", [100, 500, 1000])
def test_a_dim_that_is_a_deep_nest_is_refused_in_few_words(depth: int) -> None:
    nest = b"\x91" * depth + b"\x00"
    raw = b"\x94\x91\x92" + bytes([F32]) + nest + b"\x90\x91" + msgpack.packb([ADD, [0, 0]]) + b"\x91\x00"
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
        _packed([[F32]] * 300_000, [], ONE_OP, [0]),
        _packed([[F32, 2]], [], [[catalogue.BY_NAME["concat"].code, [0] * 500_000, 0]], [0]),
        _packed(ONE_INPUT, [F32] * 500_000, ONE_OP, [0]),
        _packed(ONE_INPUT, [], ONE_OP * 8192, list(range(8192))),
    ],
    ids=["inputs", "operands", "scalars", "ops"],
)
def test_the_largest_programs_are_read_in_bounded_time(raw: bytes) -> None:
    started = time.process_time()
    try:
        program.decode(raw, LIMITS)
    except CaseError as error:
        assert error.case.name == "quota_program"  # noqa: PT017 - either outcome is right
    assert time.process_time() - started < 5.0
