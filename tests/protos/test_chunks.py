"""Chunks are encoded and read exactly as the generated message class would."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.chunks import decode_chunk, encode_chunk
from fusewire_protos.v1.fusewire_pb2 import Chunk

SIZES = [1, 126, 127, 128, 129, 16383, 16384, 65536, 2**21 - 1, 2**21]


@pytest.mark.parametrize("size_bytes", SIZES)
def test_an_encoded_chunk_has_the_bytes_of_the_message(size_bytes: int) -> None:
    data = bytes(range(256)) * (size_bytes // 256 + 1)
    assert encode_chunk(data[:size_bytes]) == Chunk(data=data[:size_bytes]).SerializeToString()


@given(st.binary(max_size=500))
def test_the_message_class_reads_what_is_encoded(data: bytes) -> None:
    assert Chunk.FromString(encode_chunk(memoryview(data))).data == data


@given(st.binary(max_size=500))
def test_what_the_message_class_writes_is_read(data: bytes) -> None:
    assert decode_chunk(Chunk(data=data).SerializeToString()) == data


def test_the_data_are_a_view_and_no_copy() -> None:
    raw = encode_chunk(b"abc")
    assert decode_chunk(raw).obj is raw


@pytest.mark.parametrize(
    "raw",
    [
        b"\x0a",
        b"\x0a\x80",
        b"\x0a\xff\xff\xff\xff\xff\x01",
        b"\x0a\x03ab",
        b"\x0a\x03abcd",
        b"\x0a\xff\xff\xff\xff\x0fabc",
        b"\x08\x01",
        b"\x12\x01a",
        b"abc",
    ],
)
def test_what_is_no_chunk_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="chunk"):
        decode_chunk(raw)


@given(st.binary(max_size=40))
def test_whatever_is_read_is_what_the_message_class_reads(raw: bytes) -> None:
    try:
        data = decode_chunk(raw)
    except ValueError:
        return
    try:
        assert Chunk.FromString(raw).data == data
    except DecodeError:
        pytest.fail("read bytes that are no message")
