"""Varints are those of protobuf."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_protos.varints import append_varint, read_varint


@given(st.integers(1, 2**64 - 1))
def test_a_number_has_the_bytes_that_protobuf_gives_it(number: int) -> None:
    raw = bytearray(b"\x08")
    append_varint(raw, number)
    assert bytes(raw) == pb.ClientFrame(number=number).SerializeToString()
    assert read_varint(bytes(raw) + b"more", 1) == (number, len(raw))


@pytest.mark.parametrize("raw", [b"", b"\x80", b"\xff" * 11])
def test_a_number_that_is_truncated_or_too_long_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="truncated or too long"):
        read_varint(raw, 0)
