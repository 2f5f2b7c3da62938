"""A frame is parsed if it has few fields, and refused before it is parsed if it has very many."""

from __future__ import annotations

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import MOST_TENSORS
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.transport.frame_parsing import parse_frame

MESSAGE_BYTES = 1 << 20
LONG = b"x" * 100_000


def refusal_of(raw: bytes) -> str:
    with pytest.raises(CaseError) as caught:
        parse_frame(raw, MESSAGE_BYTES)
    return caught.value.case.name


@pytest.mark.parametrize(
    "frame",
    [
        pb.ClientFrame(),
        pb.ClientFrame(number=2**64 - 1, acknowledged=3, goodbye=pb.Goodbye(code=4, text="bye")),
        pb.ClientFrame(number=1, programs=LONG, bindings=LONG, tensors=[LONG, b"", LONG]),
        pb.ClientFrame(number=1, bindings=LONG, tensors=[b"four"] * MOST_TENSORS),
    ],
    ids=["empty", "short", "long", "of the most tensors"],
)
def test_a_frame_is_what_was_sent(frame: pb.ClientFrame) -> None:
    assert parse_frame(frame.SerializeToString(), MESSAGE_BYTES) == frame


@pytest.mark.parametrize(
    "field",
    [b"\x3a\x00", b"\x2a\x00", b"\x08\x01", b"\x78\x00", b"\x1a\x00"],
    ids=["empty tensors", "bindings again and again", "numbers", "unknown fields", "hellos"],
)
def test_a_long_frame_of_very_many_fields_is_refused(field: bytes) -> None:
    assert refusal_of(field * 100_000) == "oversized_frame"


def test_a_long_hello_is_refused_in_a_frame_of_few_fields() -> None:
    frame = pb.ClientFrame(hello=pb.Hello(versions=range(100_000)))
    assert refusal_of(frame.SerializeToString()) == "oversized_frame"


def test_a_frame_beyond_the_limit_is_refused_with_the_setting() -> None:
    with pytest.raises(CaseError, match=r"a frame of 11 bytes; limits.message_bytes = 10"):
        parse_frame(b"\0" * 11, 10)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x2a\x05abc",
        pb.ClientFrame(bindings=LONG).SerializeToString()[:-1],
        pb.ClientFrame(bindings=LONG).SerializeToString() + b"\x08",
        pb.ClientFrame(bindings=LONG).SerializeToString() + b"\x0b\x0c",
        pb.ClientFrame(bindings=LONG).SerializeToString() + b"\xff" * 11,
    ],
    ids=["short and cut off", "cut off", "cut off number", "a group", "a number too long"],
)
def test_a_malformed_frame_is_refused(raw: bytes) -> None:
    assert refusal_of(raw) == "undecodable_frame"
