"""The parts of a local call come out as they went in, however the bytes are split; all else is refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.parts import (
    Opening,
    Part,
    PartKind,
    PartReader,
    Status,
    decode_metadata,
    decode_opening,
    decode_status,
    encode_metadata,
    encode_opening,
    encode_status,
    head_of,
)

MOST_BYTES = 100_000
SHORT_BYTES = 64 << 10
HEAD_BYTES = 5

parts = st.builds(Part, st.sampled_from(PartKind), st.binary(max_size=300), st.none())
texts = st.text(max_size=20)
metadata = st.lists(st.tuples(texts, texts), max_size=8).map(tuple)
openings = st.builds(Opening, texts, metadata, texts, st.binary(max_size=64))
statuses = st.builds(Status, st.integers(0, 16), texts)
# What may be inside a part, though not all of it in this order.
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 40) | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=12,
)


def encoded(sequence: Iterable[Part]) -> bytes:
    return b"".join(head_of(part.kind, len(part.raw)) + part.raw for part in sequence)


def pieces(data: bytes, places: Iterable[int]) -> list[bytes]:
    cuts = sorted({0, len(data), *[place % (len(data) + 1) for place in places]})
    return [data[start:end] for start, end in pairwise(cuts)]


@given(st.lists(parts, max_size=12), st.lists(st.integers(0, 5000), max_size=12))
def test_any_split_of_any_sequence_gives_the_parts_back(sequence: list[Part], places: list[int]) -> None:
    reader = PartReader(MOST_BYTES)
    assert [part for piece in pieces(encoded(sequence), places) for part in reader.feed(piece)] == sequence


@given(st.lists(parts, max_size=6))
def test_each_part_is_found_with_its_last_byte(sequence: list[Part]) -> None:
    reader, found = PartReader(MOST_BYTES), 0
    ends = {len(encoded(sequence[: count + 1])) for count in range(len(sequence))}
    for place, byte in enumerate(encoded(sequence), 1):
        found += len(reader.feed(bytes([byte])))
        assert found == sum(end <= place for end in ends)


@given(st.lists(parts, max_size=12), st.lists(st.integers(0, 5000), max_size=6), st.integers(1, 4))
def test_a_few_parts_are_taken_at_a_time_and_the_others_later(
    sequence: list[Part], places: list[int], most_parts: int
) -> None:
    reader, found = PartReader(MOST_BYTES), list[Part]()
    for piece in pieces(encoded(sequence), places):
        taken = reader.feed(piece, most_parts)
        found += taken
        while len(taken) == most_parts:
            taken = reader.feed(b"", most_parts)
            found += taken
        assert len(taken) < most_parts
    assert found == sequence


@given(st.lists(st.integers(0, MOST_BYTES), min_size=1, max_size=4), st.lists(st.integers(0, 400_000), max_size=12))
def test_long_messages_are_received_to_the_memory_that_the_reader_names(lengths: list[int], places: list[int]) -> None:
    sequence = [Part(PartKind.MESSAGE, bytes([number + 1]) * length) for number, length in enumerate(lengths)]
    reader, found, left = PartReader(MOST_BYTES), list[Part](), memoryview(encoded(sequence))
    for step in [*[place % 70_000 + 1 for place in places], *[1 << 16] * len(left)]:
        if not left:
            break
        if reader.rest is None:
            found += reader.feed(bytes(left[:step]))
            left = left[step:]
        else:
            count = min(step, len(reader.rest), len(left))
            reader.rest[:count] = left[:count]
            found += reader.filled(count)
            left = left[count:]
    assert found == sequence
    assert reader.held_bytes == 0


@given(st.lists(st.integers(0, 400_000), max_size=8), st.integers(0, 20))
def test_a_message_goes_to_its_place_but_for_its_beginning(places: list[int], left_out: int) -> None:
    memory = memoryview(bytearray(MOST_BYTES))
    reader = PartReader(MOST_BYTES)
    reader.place = lambda _first, length: (left_out, memory[: length - left_out])
    short, long = Part(PartKind.MESSAGE, b"short"), Part(PartKind.MESSAGE, bytes(20) + b"x" * 99_000)
    sequence = [short, long, short]
    found = [part for piece in pieces(encoded(sequence), places) for part in reader.feed(piece)]
    assert [found[0], found[-1]] == [short, short]
    if found[1].placed is None:  # all of it came at once
        assert found == sequence
    else:
        assert bytes(found[1].placed) == long.raw[left_out:]
        assert found[1].raw == b""


@pytest.mark.parametrize("split", [5, 36, 37, 70_000, 99_999])
def test_after_the_last_place_nothing_is_written_there(split: int) -> None:
    memory = memoryview(bytearray(MOST_BYTES))
    reader, message = PartReader(MOST_BYTES), encoded([Part(PartKind.MESSAGE, b"x" * MOST_BYTES)])
    reader.place = lambda _first, length: (0, memory[:length])
    assert reader.feed(message[:split]) == []
    reader.place_no_more()
    before = bytes(memory)
    assert len(reader.feed(message[split:])) == 1
    assert bytes(memory) == before


@pytest.mark.parametrize("kind", [kind for kind in PartKind if kind is not PartKind.MESSAGE])
def test_only_messages_have_places(kind: PartKind) -> None:
    reader = PartReader(MOST_BYTES)
    reader.place = lambda _first, _length: pytest.fail("it was asked")
    raw = bytes(SHORT_BYTES)
    data = encoded([Part(kind, raw)])
    assert reader.feed(data[:100]) == []
    assert reader.rest is None
    assert reader.feed(data[100:]) == [Part(kind, raw)]


@pytest.mark.parametrize("number", [*range(len(PartKind), 16), 127, 255])
def test_an_unknown_kind_is_refused(number: int) -> None:
    with pytest.raises(CaseError, match=f"a part of kind {number}"):
        PartReader(MOST_BYTES).feed(bytes(4) + bytes([number]))


def test_a_message_may_have_as_many_bytes_as_are_allowed_and_no_more() -> None:
    message = Part(PartKind.MESSAGE, bytes(MOST_BYTES))
    assert PartReader(MOST_BYTES).feed(encoded([message])) == [message]
    with pytest.raises(CaseError, match="a part of 100001 bytes; the most is 100000"):
        PartReader(MOST_BYTES).feed(head_of(PartKind.MESSAGE, MOST_BYTES + 1))


@pytest.mark.parametrize("kind", [kind for kind in PartKind if kind is not PartKind.MESSAGE])
@pytest.mark.parametrize("length", [SHORT_BYTES + 1, (1 << 32) - 1])
def test_any_other_part_is_short(kind: PartKind, length: int) -> None:
    assert PartReader(MOST_BYTES).feed(head_of(kind, SHORT_BYTES)) == []
    with pytest.raises(CaseError, match=f"a part of {length} bytes"):
        PartReader(MOST_BYTES).feed(head_of(kind, length))


@given(st.binary(min_size=HEAD_BYTES, max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_rubbish_gives_parts_or_is_refused(rubbish: bytes, places: list[int]) -> None:
    reader, found = PartReader(1000), list[Part]()
    with suppress(CaseError):
        for piece in pieces(rubbish, places):
            found += reader.feed(piece)
    assert rubbish.startswith(encoded(found))


def test_a_length_that_is_not_allowed_takes_no_memory() -> None:
    reader = PartReader(MOST_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(CaseError):
            reader.feed(head_of(PartKind.MESSAGE, (1 << 32) - 1) + bytes(1000))
        assert tracemalloc.get_traced_memory()[1] < SHORT_BYTES
    finally:
        tracemalloc.stop()


def test_a_part_that_comes_byte_by_byte_takes_no_more_memory_than_its_length() -> None:
    reader, fed = PartReader(MOST_BYTES), head_of(PartKind.MESSAGE, MOST_BYTES)
    reader.feed(fed)
    tracemalloc.start()
    try:
        for _ in range(MOST_BYTES - 1):
            assert reader.feed(b"x") == []
        assert tracemalloc.get_traced_memory()[1] < 2 * MOST_BYTES
    finally:
        tracemalloc.stop()


@given(openings)
def test_an_opening_comes_back(opening: Opening) -> None:
    assert decode_opening(encode_opening(opening)) == opening


@given(metadata)
def test_metadata_come_back(pairs: tuple[tuple[str, str], ...]) -> None:
    assert decode_metadata(encode_metadata(pairs)) == pairs


@given(statuses)
def test_a_status_comes_back(status: Status) -> None:
    assert decode_status(encode_status(status)) == status


DECODERS: Sequence[Callable[[bytes], object]] = [decode_opening, decode_metadata, decode_status]


@pytest.mark.parametrize("decode", DECODERS)
@given(raw=st.binary(max_size=60) | values.map(msgpack.packb))
def test_what_is_no_such_part_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(CaseError):  # and no other error
        decode(raw)


@pytest.mark.parametrize(
    ("decode", "items"),
    [
        (decode_opening, []),
        (decode_opening, [b"Session", [], b""]),
        (decode_opening, [b"Session", [], b"", b"", b""]),
        (decode_opening, ["Session", [], b"", b""]),
        (decode_opening, [b"\xff", [], b"", b""]),
        (decode_opening, [b"Session", [b"key"], b"", b""]),
        (decode_opening, [b"Session", [[b"key"]], b"", b""]),
        (decode_opening, [b"Session", [[b"key", b"value", b"more"]], b"", b""]),
        (decode_opening, [b"Session", [[b"key", 1]], b"", b""]),
        (decode_opening, [b"Session", [[b"key", b"\xff"]], b"", b""]),
        (decode_opening, [b"Session", [[b"k", b"v"]] * 257, b"", b""]),
        (decode_metadata, [[b"key", b"value"]]),
        (decode_status, [b"0", b""]),
        (decode_status, [True, b""]),
        (decode_status, [0, b"\xff"]),
        (decode_status, [0, b"", b""]),
    ],
)
def test_a_part_with_other_contents_is_refused(decode: Callable[[bytes], object], items: list[object]) -> None:
    with pytest.raises(CaseError) as caught:
        decode(msgpack.packb(items))
    assert caught.value.case.name == "undecodable_frame"


@pytest.mark.parametrize("decode", DECODERS)
def test_a_part_that_nests_without_end_is_refused(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(CaseError):
        decode(b"\x91" * SHORT_BYTES)
