"""What a frame carries survives the wire, and malformed bytes are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos import frames
from fusewire_protos.errors import CaseError, Consequence
from fusewire_protos.frames import (
    Abandon,
    Cancel,
    Entry,
    Explain,
    Fetch,
    Forget,
    Free,
    NewProgram,
    Profile,
    Repetition,
    Scalar,
    Segment,
    Upload,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.limits import ProgramLimits
from tests import golden_files, strategies

NAN = float("nan")
UNKNOWN_DTYPE = max(dtypes.BY_CODE) + 1
numbers = st.integers(0, frames.MAX_HANDLE)
handles = st.lists(numbers, max_size=5).map(tuple)
whole = st.integers(-(2**63), 2**63 - 1)
scalars = st.one_of(st.booleans(), whole, st.floats(allow_nan=False))
segments = st.builds(
    Segment,
    numbers,
    numbers,
    handles,
    st.lists(scalars, max_size=4).map(tuple),
    st.lists(whole, max_size=4).map(tuple),
    st.lists(whole, max_size=4).map(tuple),
    st.just(frames.NO_REPETITION),
)
steps = st.one_of(whole, st.lists(scalars, min_size=1, max_size=4).map(tuple))
stepped = st.dictionaries(st.integers(0, 100), steps, max_size=3).map(lambda found: tuple(sorted(found.items())))


def loops(iterations: int) -> st.SearchStrategy[Segment]:
    kept = st.lists(st.integers(0, min(iterations, frames.MAX_STORED // 4)), max_size=4).map(tuple)
    repetitions = st.builds(Repetition, st.just(iterations), numbers, kept, stepped, stepped, stepped)
    return st.builds(lambda first, repetition: first._replace(repetition=repetition), segments, repetitions)


entries = st.one_of(
    segments,
    st.integers(1, frames.MAX_ITERATIONS).flatmap(loops),
    st.builds(Upload, numbers, strategies.specs(), st.one_of(st.none(), numbers)),
    st.builds(Free, handles),
    st.builds(Fetch, numbers, numbers),
    st.builds(Abandon, numbers),
    st.just(Cancel()),
    st.builds(Forget, numbers),
    st.builds(Explain, numbers, numbers),
    st.builds(Profile, numbers, st.booleans()),
)
# Few values, equal ones of other types and signs among them: what periods are found in.
few = st.sampled_from((0, 1, True, False, 1.0, 0.0, -0.0, NAN))
periodic = st.builds(lambda head, times: head * times, st.lists(few, max_size=4), st.integers(0, 5))

ONE_OF_EACH: list[Entry] = [
    Segment(3, 2**40 + 1, (7, 2**40 - 1, 0), (0.5, 1, True, -0.0), (0, 32, 2**33), (0, 2)),
    Upload(2**39, Spec(dtypes.bfloat16, (1797, 64)), None),
    Upload(2**39 + 1, Spec(dtypes.bool_, ()), 0),
    Free((1, 2, 300, 70_000)),
    Fetch(1, 2**63 - 1),
    Abandon(1),
    Cancel(),
    Forget(3),
    Explain(2, 3),
    Profile(2, True),
]


def _refusal(raw: bytes) -> str:
    with pytest.raises(CaseError) as caught:
        frames.decode_entries(raw)
    assert caught.value.case.consequence is Consequence.PROTOCOL
    assert len(caught.value.text) < 1000
    return caught.value.case.name


def _sent(values: Any) -> list[bytes]:
    return [msgpack.packb(value) for value in values]


def test_the_bytes_of_entries_never_change_unnoticed() -> None:
    golden_files.check_bytes("protos/entries.hex", frames.encode_entries(ONE_OF_EACH))


def test_the_bytes_of_new_programs_never_change_unnoticed() -> None:
    raw = frames.encode_programs([NewProgram(0, is_fragment=False, raw=b"\x94"), NewProgram(300, True, b"")])
    golden_files.check_bytes("protos/new_programs.hex", raw)


@given(st.lists(entries, max_size=6))
def test_entries_come_back_in_order(sent: list[Entry]) -> None:
    assert frames.decode_entries(frames.encode_entries(sent)) == sent


@given(st.lists(st.builds(NewProgram, numbers, st.booleans(), st.binary()), max_size=4))
def test_new_programs_come_back_in_order(sent: list[NewProgram]) -> None:
    assert frames.decode_programs(frames.encode_programs(sent)) == sent


def test_no_bytes_are_no_entries_and_no_programs() -> None:
    assert frames.decode_entries(b"") == []
    assert frames.decode_programs(b"") == []


def test_a_known_segment_is_short() -> None:
    segment = Segment(4, 2**40 + 123_456, tuple(range(2**40 + 1, 2**40 + 5)), (0.1,), (32,), (0, 1))
    assert len(frames.encode_entries([segment])) <= 100


@given(segments)
def test_a_segment_that_does_not_repeat_is_sent_without_a_word_about_it(segment: Segment) -> None:
    ((kind, *fields),) = msgpack.unpackb(frames.encode_entries([segment]), use_list=False)
    assert (kind, *fields) == (frames.EntryKind.SEGMENT, *segment[:-1])
    (decoded,) = frames.decode_entries(frames.encode_entries([segment]))
    assert isinstance(decoded, Segment)
    assert decoded.repetition is frames.NO_REPETITION


def test_all_inputs_are_those_of_the_first_iteration_and_then_the_others() -> None:
    repetition = Repetition(3, 0, (), inputs=((0, (7, 9)), (1, 5), (2, (8, 7, 6))))
    first = Segment(3, 100, (7, 4, 8), (), (), ())
    assert first.all_inputs == (7, 4, 8)
    assert first._replace(repetition=repetition).all_inputs == (7, 4, 8, 9, 7, 6)


def test_what_steps_repeats_its_values_or_changes_by_its_difference() -> None:
    stepped = ((1, (0.5, True)), (2, -3))
    assert [frames.in_iteration((9, 0.5, 10), stepped, iteration) for iteration in range(3)] == [
        (9, 0.5, 10),
        (9, True, 7),
        (9, 0.5, 4),
    ]


# ---- malformed bytes ----

SEGMENT = [0, 1, 2, [3], [0.5], [4], [0]]
MALFORMED: dict[str, Any] = {
    "a profile that goes on by a number": [[9, 1, 1]],
    "a profile without whether it goes on": [[9, 1]],
    "no list": 5,
    "a map": {},
    "an entry that is no list": [5],
    "an empty entry": [[]],
    "an unknown kind": [[7, 1]],
    "a kind that is a bool": [[True, 1, 2, 3, 4]],
    "a kind that is a list": [[[0], 1]],
    "a segment cut short": [SEGMENT[:-1]],
    "a segment with more": [[*SEGMENT, 0]],
    "a negative program number": [[0, -1, *SEGMENT[2:]]],
    "a base of 2^63": [[0, 1, 2**63, *SEGMENT[3:]]],
    "inputs that are no list": [[0, 1, 2, 3, *SEGMENT[4:]]],
    "an input of 2^64−1": [[0, 1, 2, [2**64 - 1], *SEGMENT[4:]]],
    "an input −1": [[0, 1, 2, [-1], *SEGMENT[4:]]],
    "an input that is a bool": [[0, 1, 2, [True], *SEGMENT[4:]]],
    "a scalar that is bytes": [[*SEGMENT[:4], [b"1"], [4], [0]]],
    "a scalar that is nothing": [[*SEGMENT[:4], [None], [4], [0]]],
    "a start that is a float": [[*SEGMENT[:5], [1.0], [0]]],
    "dying that is no list": [[*SEGMENT[:6], 0]],
    "an upload of an unknown dtype": [[1, 5, UNKNOWN_DTYPE, [2], None]],
    "an upload of a dtype that is a list": [[1, 5, [], [2], None]],
    "an upload of dtype True": [[1, 5, True, [2], None]],
    "an upload of dtype 1.0": [[1, 5, 1.0, [2], None]],
    "an upload of dim −1": [[1, 5, 6, [-1], None]],
    "an upload of dim 2^31": [[1, 5, 6, [2**31], None]],
    "an upload of dim 2^63": [[1, 5, 6, [2**63], None]],
    "an upload of dim 2^64−1": [[1, 5, 6, [2**64 - 1], None]],
    "an upload whose product overflows": [[1, 5, 6, [2**31 - 1] * 3, None]],
    "an upload of rank 17": [[1, 5, 6, [1] * 17, None]],
    "an upload with a shape of bytes": [[1, 5, 6, b"22", None]],
    "an upload with tensor −1": [[1, 5, 6, [2], -1]],
    "a fetch of nothing": [[3, None, 1]],
    "a fetch with a float": [[3, 1.0, 1]],
    "a huge integer in bytes": [[4, b"\xff" * 5000]],
}


_FIRST = (7, 3, 100, (), (), (), ())  # a loop's kind and its first iteration
_MALFORMED_LOOPS: dict[str, Any] = {
    "no iterations": (*_FIRST, 0, 2, (), (), (), ()),
    "too many iterations": (*_FIRST, frames.MAX_ITERATIONS + 1, 2, (), (), (), ()),
    "iterations are no integer": (*_FIRST, 2.0, 2, (), (), (), ()),
    "a negative stride": (*_FIRST, 2, -1, (), (), (), ()),
    "kept of more iterations than there are": (*_FIRST, 2, 2, (3,), (), (), ()),
    "kept of fewer iterations than none": (*_FIRST, 2, 2, (-1,), (), (), ()),
    "kept of a truth of iterations": (*_FIRST, 2, 2, (True,), (), (), ()),
    "kept is no list": (*_FIRST, 2, 2, 1, (), (), ()),
    "steps without values": (*_FIRST, 2, 2, (), (0, 2, 5), (), ()),
    "steps without a difference": (*_FIRST, 2, 2, (), (0, 0), (), ()),
    "steps without a length": (*_FIRST, 2, 2, (), (0,), (), ()),
    "a negative length": (*_FIRST, 2, 2, (), (0, -1, 5), (), ()),
    "a negative index": (*_FIRST, 2, 2, (), (-1, 1, 5), (), ()),
    "an index twice": (*_FIRST, 2, 2, (), (), (1, 1, 5, 1, 1, 6), ()),
    "descending indices": (*_FIRST, 2, 2, (), (), (2, 1, 5, 1, 1, 6), ()),
    "a difference of more than 64 bits": (*_FIRST, 1, 2, (), (), (), (0, 0, 2**63)),
    "a difference that is no integer": (*_FIRST, 2, 2, (), (), (0, 0, 0.5), ()),
    "an index that is no integer": (*_FIRST, 2, 2, (), (), (True, 1, 0.5), ()),
    "steps that are no list": (*_FIRST, 2, 2, (), (), 5, ()),
    "a value that is a list": (*_FIRST, 2, 2, (), (), (0, 1, (1,)), ()),
    "too few fields": (*_FIRST, 2, 2, (), (), ()),
}


@pytest.mark.parametrize("item", _MALFORMED_LOOPS.values(), ids=_MALFORMED_LOOPS.keys())
def test_malformed_loops_are_refused(item: Any) -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        frames.decode_entries(msgpack.packb([item]))


@pytest.mark.parametrize("items", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_entries_are_refused(items: Any) -> None:
    assert _refusal(msgpack.packb(items)) == "undecodable_frame"


@pytest.mark.parametrize(
    "items", [5, [5], [[]], [[1, 0, b""]], [[1, True, "text"]], [[-1, True, b""]], [[2**63, True, b""]]]
)
def test_malformed_new_programs_are_refused(items: Any) -> None:
    with pytest.raises(CaseError) as caught:
        frames.decode_programs(msgpack.packb(items))
    assert caught.value.case.name == "undecodable_frame"


def test_every_truncation_is_refused() -> None:
    raw = frames.encode_entries(ONE_OF_EACH)
    assert {_refusal(raw[:length]) for length in range(1, len(raw))} == {"undecodable_frame"}


@pytest.mark.parametrize("depth", [4, 1000, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    assert _refusal(b"\x91" * depth + b"\x00") == "undecodable_frame"


@given(st.binary(min_size=1, max_size=200))
def test_random_bytes_give_entries_or_a_refusal(raw: bytes) -> None:
    try:
        frames.decode_entries(raw)
    except CaseError as error:
        assert error.case.name in {"undecodable_frame", "oversized_frame"}  # noqa: PT017 - either outcome is right


@given(st.lists(entries, min_size=1, max_size=6), st.data())
def test_a_changed_byte_gives_entries_or_a_refusal(sent: list[Entry], data: st.DataObject) -> None:
    raw = bytearray(frames.encode_entries(sent))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        frames.decode_entries(bytes(raw))
    except CaseError as error:
        assert error.case.name in {"undecodable_frame", "oversized_frame"}  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("decode", [frames.decode_entries, lambda raw: [*frames.read_entries(raw, 1 << 20)]])
def test_an_entry_frees_a_bounded_number_of_handles(decode: Callable[[bytes], list[Entry]]) -> None:
    most = Free(tuple(range(frames.MAX_FREED)))
    assert decode(frames.encode_entries([most])) == [most]
    with pytest.raises(CaseError, match=f"oversized_frame.*at most {frames.MAX_FREED}"):
        decode(frames.encode_entries([Free((*most.handles, 1))]))


@pytest.mark.parametrize(
    ("kept", "stepped", "text"),
    [
        ((frames.MAX_STORED, 1), (), f"{frames.MAX_STORED + 1} results are kept"),
        ((), (0, frames.MAX_STEPPED, *[1] * frames.MAX_STEPPED), f"{frames.MAX_STEPPED + 2} numbers of stepped inputs"),
    ],
)
def test_a_loop_lists_a_bounded_number_of_values(kept: tuple[int, ...], stepped: tuple[int, ...], text: str) -> None:
    item = (frames.EntryKind.LOOP, *_FIRST[1:], 1 << 20, 1, kept, stepped, (), ())
    with pytest.raises(CaseError, match=f"oversized_frame.*{text}"):
        frames.decode_entries(msgpack.packb([item]))


def test_few_entries_are_told_from_many_by_the_head_of_their_list() -> None:
    assert frames.are_few(frames.encode_entries([Cancel()] * 15))
    assert not frames.are_few(frames.encode_entries([Cancel()] * 16))


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (ProgramLimits(program_operands=8, program_ops=8), frames.MAX_FREED),
        (ProgramLimits(program_operands=100_000, program_ops=8), 100_000),
        (ProgramLimits(program_operands=8, program_ops=100_000), 1_600_000),
    ],
)
def test_an_entry_may_list_all_that_a_program_binds(limits: ProgramLimits, most: int) -> None:
    assert frames.most_listed(limits) == most


# ---- periods ----


@given(periodic)
def test_a_shortest_period_repeats_to_the_values_it_came_from(values: list[Scalar]) -> None:
    period = frames.shortest_period(values)
    assert _sent(frames.repeat_period(period, len(values), "scalars")) == _sent(values)


@given(periodic)
def test_no_shorter_head_repeats_to_the_values(values: list[Scalar]) -> None:
    sent = _sent(values)
    for length in range(1, len(frames.shortest_period(values))):
        assert len(sent) % length or sent[:length] * (len(sent) // length) != sent


@pytest.mark.parametrize(
    ("values", "length"),
    [
        ([], 0),
        ([0.5], 1),
        ([0.5] * 64, 1),
        ([1, 2, 1, 2], 2),
        ([1, 2, 1], 3),
        ([1, 1.0], 2),
        ([1, True], 2),
        ([0, False, 0, False], 2),
        ([0.0, -0.0], 2),
        ([NAN, NAN], 1),
        ([math.inf, -math.inf], 2),
    ],
)
def test_values_of_other_types_and_zeros_of_other_signs_differ_and_nan_does_not(
    values: list[Scalar], length: int
) -> None:
    assert len(frames.shortest_period(values)) == length


@pytest.mark.parametrize(("period", "length"), [((), 1), ((1, 2), 3), ((1, 2), 1), ((1,), 0), ((1,) * 8, 4)])
def test_a_period_that_does_not_divide_is_refused(period: tuple[int, ...], length: int) -> None:
    with pytest.raises(CaseError, match="bad_binding") as caught:
        frames.repeat_period(period, length, "starts")
    assert caught.value.case.consequence is Consequence.OPERATION


@pytest.mark.parametrize(
    "decode", [frames.decode_entries, frames.decode_programs, lambda raw: frames.read_entries(raw, 1 << 20)]
)
def test_a_frame_of_more_entries_than_fit_is_refused_before_any_is_looked_at(
    decode: Callable[[bytes], object],
) -> None:
    with pytest.raises(CaseError, match=f"oversized_frame.*at most {frames.MAX_ENTRIES}"):
        decode(msgpack.packb([0] * (frames.MAX_ENTRIES + 1)))
