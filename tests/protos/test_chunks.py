"""Chunks are encoded and read exactly as the generated message class would, and only in their order."""

from __future__ import annotations

from itertools import accumulate

import pytest
from google.protobuf.message import DecodeError
from hypothesis import assume, given
from hypothesis import strategies as st

from fusewire_protos.chunks import ChunkOrderError, decode_chunk, encode_chunk
from fusewire_protos.v1.fusewire_pb2 import Chunk

SIZES = [0, 1, 126, 127, 128, 129, 16383, 16384, 65536, 2**21 - 1, 2**21]
OFFSETS = [0, 1, 127, 128, 2**30, 2**40, 2**63 - 1]

offsets = st.one_of(st.sampled_from(OFFSETS), st.integers(0, 2**63 - 1))


@pytest.mark.parametrize("size_bytes", SIZES)
@pytest.mark.parametrize("offset", OFFSETS)
def test_an_encoded_chunk_has_the_bytes_of_the_message(offset: int, size_bytes: int) -> None:
    data = (bytes(range(256)) * (size_bytes // 256 + 1))[:size_bytes]
    assert encode_chunk(offset, data) == Chunk(offset=offset, data=data).SerializeToString()


def test_the_bytes_of_a_chunk_never_change_unnoticed() -> None:
    assert encode_chunk(0, b"abc").hex() == "1203616263"
    assert encode_chunk(300, b"abc").hex() == "08ac021203616263"


@given(offsets, st.binary(max_size=500))
def test_the_message_class_reads_what_is_encoded(offset: int, data: bytes) -> None:
    chunk = Chunk.FromString(encode_chunk(offset, memoryview(data)))
    assert (chunk.offset, chunk.data) == (offset, data)


@given(offsets, st.binary(max_size=500))
def test_what_the_message_class_writes_is_read(offset: int, data: bytes) -> None:
    assert decode_chunk(Chunk(offset=offset, data=data).SerializeToString(), offset) == data


def test_the_data_are_a_view_and_no_copy() -> None:
    raw = encode_chunk(7, b"abc")
    assert decode_chunk(raw, 7).obj is raw


@pytest.mark.parametrize(
    "raw",
    [
        b"\x08",
        b"\x08\x80",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x08\x00\x08\x00",
        b"\x08\x00\x12",
        b"\x12",
        b"\x12\x80",
        b"\x12\xff\xff\xff\xff\xff\x01",
        b"\x12\x03ab",
        b"\x12\x03abcd",
        b"\x12\x01a\x08\x00",
        b"\x12\xff\xff\xff\xff\x0fabc",
        b"\x0a\x01a",
        b"\x18\x01",
        b"abc",
    ],
)
def test_what_is_no_chunk_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="chunk") as refused:
        decode_chunk(raw, 0)
    assert refused.type is ValueError


@st.composite
def nearly_chunks(draw: st.DrawFn) -> bytes:
    """Chunks of which one byte was changed, and bytes of any kind."""
    raw = bytearray(encode_chunk(draw(offsets), draw(st.binary(max_size=20))))
    if raw and draw(st.booleans()):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return draw(st.one_of(st.just(bytes(raw)), st.binary(max_size=40)))


@given(nearly_chunks(), st.integers(0, 3))
def test_whatever_is_read_is_what_the_message_class_reads(raw: bytes, elsewhere: int) -> None:
    try:
        chunk = Chunk.FromString(raw)
    except DecodeError:
        chunk = None
    offset = elsewhere if chunk is None else chunk.offset
    try:
        data = decode_chunk(raw, offset)
    except ValueError:
        return
    assert chunk is not None, "read bytes that are no message"
    assert chunk.data == data


# ---- order ----


def received(chunks: list[bytes]) -> bytes:
    """What a receiver has of these chunks; it knows of each where it must begin. Raises what it refuses one with."""
    value = b""
    for raw in chunks:
        value += decode_chunk(raw, len(value))
    return value


@st.composite
def sent(draw: st.DrawFn) -> list[bytes]:
    """A value in chunks of any lengths but none."""
    pieces = draw(st.lists(st.binary(min_size=1, max_size=200), min_size=2, max_size=6))
    begins = accumulate((len(piece) for piece in pieces[:-1]), initial=0)
    return [encode_chunk(begin, piece) for begin, piece in zip(begins, pieces, strict=True)]


def value_of(chunks: list[bytes]) -> bytes:
    return b"".join(Chunk.FromString(raw).data for raw in chunks)


@given(sent())
def test_chunks_in_order_are_the_value(chunks: list[bytes]) -> None:
    assert received(chunks) == value_of(chunks)


@given(sent(), st.data())
def test_chunks_in_any_other_order_are_refused(chunks: list[bytes], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(chunks))))
    assume(order != sorted(order))
    with pytest.raises(ChunkOrderError, match="begins at byte"):
        received([chunks[index] for index in order])


@given(sent(), st.data())
def test_a_chunk_that_comes_again_is_refused_wherever_it_does(chunks: list[bytes], data: st.DataObject) -> None:
    again = data.draw(st.integers(0, len(chunks) - 1))
    place = data.draw(st.integers(0, len(chunks)))
    with pytest.raises(ChunkOrderError, match="begins at byte"):
        received([*chunks[:place], chunks[again], *chunks[place:]])


@given(sent(), st.data())
def test_chunks_behind_one_that_was_left_out_are_refused(chunks: list[bytes], data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, len(chunks) - 2))
    with pytest.raises(ChunkOrderError, match="begins at byte"):
        received(chunks[:left_out] + chunks[left_out + 1 :])


@given(sent(), st.data())
def test_one_chunk_in_the_place_of_another_is_refused(chunks: list[bytes], data: st.DataObject) -> None:
    """Even if it is as long, so that all that came is as long as what was declared."""
    place, other = data.draw(st.permutations(range(len(chunks))))[:2]
    with pytest.raises(ChunkOrderError, match="begins at byte"):
        received([*chunks[:place], chunks[other], *chunks[place + 1 :]])


@given(sent(), st.data())
def test_a_chunk_that_overlaps_the_one_before_or_leaves_a_gap_is_refused(
    chunks: list[bytes], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(chunks) - 1))
    moved = Chunk.FromString(chunks[place])
    elsewhere = data.draw(st.integers(0, 2 * len(value_of(chunks))))
    assume(elsewhere != moved.offset)
    with pytest.raises(ChunkOrderError, match="begins at byte"):
        received([*chunks[:place], encode_chunk(elsewhere, moved.data), *chunks[place + 1 :]])
