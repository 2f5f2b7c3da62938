"""Frames without a connection: numbers, acknowledgement, resumption."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._errors import ProtocolError
from fusewire._stream.frames import FRAME_BYTES, ClientStream, Outgoing, Wish
from fusewire_protos.frames import (
    MAX_HANDLE,
    MOST_TENSORS,
    PROTOCOL_VERSION,
    Cancel,
    Entry,
    Fetch,
    Forget,
    Free,
    NewProgram,
    Segment,
    Upload,
    decode_entries,
    decode_programs,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.segments import loop_of


def begun(*, programs: int = 0, message_bytes: int = 4 << 20) -> ClientStream:
    stream = ClientStream("test")
    limits = wire.Limits(programs=programs, message_bytes=message_bytes)
    stream.on_welcome(wire.Welcome(version=PROTOCOL_VERSION, limits=limits))
    return stream


def read(raw: bytes | None) -> wire.ClientFrame:
    assert raw is not None
    return wire.ClientFrame.FromString(raw)


def test_a_new_session_tells_its_wish_and_a_resumed_one_does_not() -> None:
    stream = ClientStream("test", Wish(2, (b"first", b"second"), "ppo-worker-7", {"run": "42"}))
    hello = read(stream.hello()).hello
    assert (hello.device, [*hello.programs]) == (2, [b"first", b"second"])
    assert (hello.name, dict(hello.labels)) == ("ppo-worker-7", {"run": "42"})
    stream.on_welcome(wire.Welcome(version=PROTOCOL_VERSION, session_id=b"session"))
    hello = read(stream.hello()).hello
    assert not hello.HasField("device")
    assert (*hello.programs, hello.name, *hello.labels) == ("",)


def test_device_0_is_asked_for_only_if_it_is_wished() -> None:
    assert read(ClientStream("test", Wish(0)).hello()).hello.HasField("device")
    assert not read(ClientStream("test").hello()).hello.HasField("device")


def test_entries_that_wait_together_share_a_frame_in_their_order() -> None:
    stream = begun()
    stream.post(Outgoing(Free((1,))), Outgoing(Fetch(1, 2)))
    stream.post(Outgoing(Cancel()))
    frame = read(stream.next_frame())
    assert frame.number == 1
    assert decode_entries(frame.bindings) == [Free((1,)), Fetch(1, 2), Cancel()]
    assert stream.next_frame() is None


def test_a_program_travels_with_its_first_segment() -> None:
    stream = begun()
    segment = Segment(3, 10, (), (), (), ())
    stream.post(Outgoing(segment, NewProgram(3, is_fragment=True, raw=b"program")))
    frame = read(stream.next_frame())
    assert decode_programs(frame.programs) == [NewProgram(3, is_fragment=True, raw=b"program")]
    assert decode_entries(frame.bindings) == [segment]


def test_tensors_are_numbered_within_their_frame() -> None:
    stream = begun()
    spec = Spec(dtypes.uint8, (3,))
    stream.post(Outgoing(Upload(1, spec, None), tensor=b"abc"), Outgoing(Upload(2, spec, None)))
    stream.post(Outgoing(Upload(3, spec, None), tensor=b"def"))
    frame = read(stream.next_frame())
    assert [entry.tensor for entry in decode_entries(frame.bindings) if isinstance(entry, Upload)] == [0, None, 1]
    assert list(frame.tensors) == [b"abc", b"def"]


def test_a_full_frame_is_followed_by_another() -> None:
    stream = begun()
    half = FRAME_BYTES // 2 - 200
    for handle in range(3):
        stream.post(Outgoing(Upload(handle, Spec(dtypes.uint8, (half,)), None), tensor=bytes(half)))
    assert len(read(stream.next_frame()).tensors) == 2
    assert read(stream.next_frame()).number == 2


@pytest.mark.parametrize(
    "entry",
    [
        Free((MAX_HANDLE,) * 50_000),
        Segment(1, 1, (MAX_HANDLE,) * 50_000, (), (), ()),
        Segment(1, 1, (), (0.1,) * 50_000, (), ()),
        Segment(1, 1, (), (), (MAX_HANDLE,) * 50_000, ()),
        loop_of(Segment(1, 1, (), (), (), ()), 50_000, 1, (), inputs=((0, (MAX_HANDLE,) * 50_000),)),
        loop_of(Segment(1, 1, (), (), (), ()), 50_000, 1, (), scalars=((0, (0.1,) * 25_000), (1, (0.1,) * 25_000))),
        loop_of(Segment(1, 1, (), (), (), ()), 50_000, 1, (), starts=tuple((place, 1) for place in range(25_000))),
    ],
)
def test_a_frame_is_full_of_what_its_entries_list_too(entry: Entry) -> None:
    stream = begun()
    stream.post(*[Outgoing(entry)] * 10)
    lengths_bytes = [len(raw) for raw in iter(stream.next_frame, None)]
    assert len(lengths_bytes) > 1
    assert max(lengths_bytes) <= FRAME_BYTES


def test_a_frame_is_no_longer_than_the_server_takes() -> None:
    stream = begun(message_bytes=1000)
    for handle in range(20):
        stream.post(Outgoing(Upload(handle, Spec(dtypes.uint8, (90,)), None), tensor=bytes(90)))
    lengths_bytes = [len(raw) for raw in iter(stream.next_frame, None)]
    assert len(lengths_bytes) < 10
    assert max(lengths_bytes) <= 1000


@given(
    most=st.integers(1, 12),
    kept=st.integers(1, 12),
    posts=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60),
)
def test_no_frame_has_more_programs_numbered_at_once_than_the_server_lets_be(
    most: int, kept: int, posts: list[tuple[bool, bool]]
) -> None:
    stream = begun(programs=most)
    posted: list[Entry] = []
    alive: deque[int] = deque()
    frames: list[wire.ClientFrame] = []
    for number, (is_new, is_sent) in enumerate(posts):
        if is_new and len(alive) >= min(kept, most):
            posted.append(Forget(alive.popleft()))
            stream.post(Outgoing(posted[-1]))
        posted.append(Segment(number, number, (), (), (), ()))
        stream.post(Outgoing(posted[-1], NewProgram(number, is_fragment=False, raw=b"program") if is_new else None))
        alive += [number] * is_new
        frames += [read(raw) for raw in iter(stream.next_frame, None)] if is_sent else []
    frames += [read(raw) for raw in iter(stream.next_frame, None)]
    numbered = 0
    for frame in frames:
        numbered += len(decode_programs(frame.programs))
        assert numbered <= most
        numbered -= sum(isinstance(entry, Forget) for entry in decode_entries(frame.bindings))
    assert [entry for frame in frames for entry in decode_entries(frame.bindings)] == posted


def test_frames_count_as_unacknowledged_until_the_server_acknowledges_them() -> None:
    stream = begun()
    for handle in range(3):
        stream.post(Outgoing(Free((handle,))))
        stream.next_frame()
    stream.on_frame(wire.ServerFrame(acknowledged=2))
    assert stream.unacknowledged_frames == 1


def test_results_that_come_twice_are_new_once_and_acknowledged() -> None:
    stream = begun()
    assert stream.on_frame(wire.ServerFrame(number=1))
    stream.took(wire.ServerFrame(number=1))
    assert not stream.on_frame(wire.ServerFrame(number=1))
    assert stream.owes_acknowledgement
    assert read(stream.heartbeat()).acknowledged == 1
    assert not stream.owes_acknowledgement


def test_a_gap_in_the_servers_frames_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="frame 2 follows 0"):
        begun().on_frame(wire.ServerFrame(number=2))


def test_a_version_we_do_not_speak_breaks_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="version 99"):
        ClientStream("test").on_welcome(wire.Welcome(version=99))


def test_a_heartbeat_and_a_goodbye_stand_outside_the_numbering() -> None:
    stream = begun()
    assert read(stream.heartbeat()).number == 0
    assert read(stream.goodbye()).HasField("goodbye")


def test_a_frame_takes_no_more_tensors_than_a_server_accepts() -> None:
    stream = begun()
    upload = Upload(1, Spec(dtypes.uint8, (1,)), None)
    stream.post(*[Outgoing(upload, tensor=b"\1") for _ in range(MOST_TENSORS + 1)])
    assert [len(read(stream.next_frame()).tensors) for _ in range(2)] == [MOST_TENSORS, 1]


def test_a_new_connection_carries_again_what_was_not_acknowledged_and_then_what_waits() -> None:
    stream = begun()
    sent = []
    for handle in range(4):
        stream.post(Outgoing(Free((handle,))))
        sent.append(stream.next_frame())
    stream.on_frame(wire.ServerFrame(number=1, acknowledged=1))
    stream.took(wire.ServerFrame(number=1))
    stream.is_connected = False
    stream.post(Outgoing(Free((4,))))
    assert stream.next_frame() is None
    assert read(stream.hello()).acknowledged == 1
    stream.on_welcome(wire.Welcome(version=PROTOCOL_VERSION, epoch=2), acknowledged=2)
    assert [stream.next_frame(), stream.next_frame()] == sent[2:]
    assert read(stream.next_frame()).number == 5
    assert stream.next_frame() is None


def test_a_hello_names_the_session_that_was_welcomed() -> None:
    stream = ClientStream("test")
    assert not read(stream.hello()).hello.session_id
    stream.on_welcome(wire.Welcome(version=PROTOCOL_VERSION, session_id=b"s", server_instance=b"i", epoch=3))
    hello = read(stream.hello()).hello
    assert (hello.session_id, hello.server_instance, hello.epoch) == (b"s", b"i", 3)


def test_a_welcome_to_another_session_breaks_the_protocol() -> None:
    stream = ClientStream("test")
    stream.on_welcome(wire.Welcome(version=PROTOCOL_VERSION, session_id=b"s"))
    with pytest.raises(ProtocolError, match="another session"):
        stream.on_welcome(wire.Welcome(version=PROTOCOL_VERSION, session_id=b"t"))
