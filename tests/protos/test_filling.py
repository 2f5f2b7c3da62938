"""The chunks of a value fill its memory in order, wherever each is received; all else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.chunks import ChunkOrderError, chunk_head, encode_chunk
from fusewire_protos.filling import Filling

FIRST_BYTES = 32
DATA = bytes(range(200))


def filling_of(size_bytes: int) -> tuple[Filling, bytearray]:
    memory = bytearray(size_bytes)
    return Filling(memoryview(memory)), memory


def placed(filling: Filling, message: bytes) -> memoryview | None:
    """Receives a message as a local call does. Returns its memory, or None if it has no place."""
    place = filling.place(memoryview(message)[:FIRST_BYTES], len(message))
    if place is None:
        return None
    left_out, target = place
    target[:] = message[left_out:]
    return target


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=8))
def test_chunks_fill_the_memory_in_order(chunks: list[tuple[int, bool]]) -> None:
    filling, memory = filling_of(len(DATA) * 3)
    offset = 0
    expected = (DATA * 3)[: sum(size for size, _ in chunks)]
    for size, is_placed in chunks:
        message = encode_chunk(offset, expected[offset : offset + size])
        target = placed(filling, message) if is_placed else None
        assert filling.take(message if target is None else target) == size
        offset += size
        assert filling.filled_bytes == offset
    assert memory[:offset] == expected


@given(st.binary(max_size=FIRST_BYTES), st.integers(0, 1 << 33))
def test_rubbish_has_no_place_outside_the_memory(first: bytes, message_bytes: int) -> None:
    filling, memory = filling_of(100)
    place = filling.place(memoryview(first), message_bytes)
    assert place is None or (place[1].obj is memory and place[0] + len(place[1]) == message_bytes)


def test_a_chunk_of_more_bytes_than_are_left_is_refused() -> None:
    filling, _ = filling_of(len(DATA) + 10)
    filling.take(encode_chunk(0, DATA))
    message = encode_chunk(len(DATA), bytes(11))
    assert placed(filling, message) is None
    with pytest.raises(ValueError, match="more than the 210 bytes declared"):
        filling.take(message)


def test_a_placed_chunk_out_of_order_is_refused() -> None:
    filling, _ = filling_of(500)
    target = placed(filling, encode_chunk(200, DATA))
    with pytest.raises(ChunkOrderError, match="begins at byte 200 instead of byte 0"):
        filling.take(target)


def test_a_placed_chunk_that_comes_twice_is_refused() -> None:
    filling, _ = filling_of(500)
    first, second = placed(filling, encode_chunk(0, DATA)), placed(filling, encode_chunk(0, DATA))
    assert filling.take(first) == len(DATA)
    with pytest.raises(ChunkOrderError):
        filling.take(second)


def test_a_head_without_its_data_does_not_pass_for_a_placed_chunk() -> None:
    filling, _ = filling_of(500)
    placed(filling, encode_chunk(0, DATA))
    with pytest.raises(ValueError, match="does not match its head"):
        filling.take(chunk_head(0, len(DATA)))
