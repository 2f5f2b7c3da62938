"""Recording a session and replaying it, on a server in memory and on a real one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire._connect import open_session
from fusewire._replay.recording_transport import RecordingTransport
from fusewire._replay.records import Answer, Header, LargeUpload, Record, Recording, RecordWriter, SentFrame
from fusewire._replay.replay import Replay, Replayed
from fusewire._transport.interface import Peer
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_transport import MemoryTransport
from fusewire_protos.credit import Amount
from fusewire_protos.v1 import fusewire_pb2 as wire

pytestmark = pytest.mark.usefixtures("no_other_sessions")

_SECRET = np.frombuffer(b"a secret that nobody should see!", np.uint8)


def _work(session: fw.Session) -> None:
    """Scalars, small and large uploads, slices, frees, results, a question how it runs, and a failure."""
    random = np.random.default_rng(0)
    x, w = session.array(random.normal(size=(4, 64))), session.array(random.normal(size=(64, 64)) / 8)
    large, secret = session.array(random.normal(size=1 << 16)), session.array(_SECRET)
    for step in range(200):
        x = fw.tanh(x @ w + 0.01 * step)
        if step % 40 == 0:
            x[:, step % 4 : 8].numpy()
    (large * 2)[::2].numpy()
    with fw.profile():
        session.explain()
    (secret + 1).numpy()


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu") as server:
        yield server


def _recorded(server: ServerProcess, path: Path, *, record_values: bool) -> Path:
    with fw.connect(server.grpc, record=path, record_values=record_values) as session:
        _work(session)
    return path


def _records(path: Path) -> list[Record]:
    with Recording(path) as recording:
        return list(recording.records())


def _rewrite(path: Path, records: list[Record], *, keeps_values: bool) -> None:
    writer = RecordWriter(path, Header("a test", keeps_values=keeps_values))
    for record in records:
        writer.write(record)
    writer.end(0)


@pytest.mark.parametrize("speed", [4.0, inf])
def test_with_values_kept_a_replay_gives_the_same_bits(server: ServerProcess, tmp_path: Path, speed: float) -> None:
    replayed = fw.replay(_recorded(server, tmp_path / "r", record_values=True), server.grpc, speed=speed)
    assert replayed.differences == ()
    assert replayed.compared == len(replayed.answered) == 7
    assert replayed.ops > 600
    assert replayed.segments > 5


def test_a_wrong_bit_in_a_recording_is_found(server: ServerProcess, tmp_path: Path) -> None:
    records = _records(_recorded(server, tmp_path / "r", record_values=True))
    place = next(index for index, record in enumerate(records) if isinstance(record, Answer))
    answer = records[place]
    assert isinstance(answer, Answer)
    assert isinstance(answer.value, bytes)
    records[place] = answer._replace(value=bytes([answer.value[0] ^ 1]) + answer.value[1:])
    _rewrite(tmp_path / "r", records, keeps_values=True)
    (difference,) = fw.replay(tmp_path / "r", server.grpc, speed=inf).differences
    was, now = answer.value[0] ^ 1, answer.value[0]
    assert difference.startswith(f"fetch {answer.fetch} differs in 1 of {len(answer.value)} bytes")
    assert difference.endswith(f"byte 0 was {was:#04x} and is {now:#04x}")


def test_without_values_none_is_in_the_file_and_the_replay_draws_others(server: ServerProcess, tmp_path: Path) -> None:
    path = _recorded(server, tmp_path / "r", record_values=False)
    assert _SECRET.tobytes() not in path.read_bytes()
    assert not any(isinstance(record, LargeUpload) for record in _records(path))
    replayed = fw.replay(path, server.grpc, speed=inf)
    assert (replayed.compared, replayed.differences, len(replayed.answered)) == (0, (), 7)


def test_scalars_are_kept(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "r"
    with fw.connect(server.grpc, record=path) as session:
        (session.array(np.ones(3)) * 0.123456789).numpy()
    frames = [record for record in _records(path) if isinstance(record, SentFrame)]
    assert any(np.float64(0.123456789).tobytes()[::-1] in frame.raw for frame in frames)


def test_sessions_replay_at_the_same_time(server: ServerProcess, tmp_path: Path) -> None:
    path = _recorded(server, tmp_path / "r", record_values=True)

    def replay(seed: int) -> Replayed:
        return fw.replay(path, server.grpc, speed=inf, seed=seed)

    with ThreadPoolExecutor(4) as threads:
        assert all(not replayed.differences for replayed in threads.map(replay, range(4)))


def test_frames_wait_for_what_was_completed_in_the_recording(tmp_path: Path) -> None:
    with Recording(_recorded_in_memory(tmp_path / "r")) as recording:
        replayed = Replay(MemoryTransport(MemoryServer()), recording, speed=inf, seed=0, client="me").run(30)
    assert (replayed.differences, replayed.compared, replayed.ops) == ((), 3, 3)


class _LosingTransport(MemoryTransport):
    """Loses all answers of fetches on their way to the session."""

    def open(self, peer: Peer) -> None:
        healthy = peer.on_frame

        def on_frame(raw: bytes) -> bool:
            frame = wire.ServerFrame.FromString(raw)
            frame.ClearField("results")
            return healthy(frame.SerializeToString())

        peer.on_frame = on_frame  # type: ignore[method-assign]
        super().open(peer)


def _recorded_in_memory(path: Path) -> Path:
    transport = RecordingTransport(MemoryTransport(MemoryServer()), RecordWriter(path, Header("me", keeps_values=True)))
    with open_session(transport) as session:
        x = session.array(np.arange(4.0))
        for _ in range(3):
            x = x + 1
            x.numpy()
    return path


def test_a_lost_answer_is_named(tmp_path: Path) -> None:
    with Recording(_recorded_in_memory(tmp_path / "r")) as recording:
        fetches = [record.fetch for record in _records(tmp_path / "r") if isinstance(record, Answer)]
        replay = Replay(_LosingTransport(MemoryServer()), recording, speed=inf, seed=0, client="me")
        with pytest.raises(fw.WaitTimeout, match=f"did not end in time: fetch {fetches[0]}.* has no answer"):
            replay.run(0.5)


def test_a_replay_that_is_stopped_sends_no_more_and_tells_each_answer(tmp_path: Path) -> None:
    answered: list[tuple[int, int]] = []

    def on_answer(intended_ns: int, answered_ns: int) -> None:
        answered.append((intended_ns, answered_ns))
        replay.stop()

    with Recording(_recorded_in_memory(tmp_path / "r")) as recording:
        replay = Replay(MemoryTransport(MemoryServer()), recording, speed=inf, seed=0, client="me", on_answer=on_answer)
        replayed = replay.run(30)
    assert replayed.answered == tuple(answered)
    assert 1 <= len(answered) < 3
    assert replayed.differences == ()


@pytest.mark.parametrize("part", ["frame", "bindings", "tensors"])
def test_a_recording_with_a_malformed_frame_is_refused(server: ServerProcess, tmp_path: Path, part: str) -> None:
    records = _records(_recorded(server, tmp_path / "r", record_values=True))
    record = next(each for each in records if isinstance(each, SentFrame) and b"nobody should see" in each.raw)
    frame = wire.ClientFrame.FromString(record.raw)
    if part == "bindings":
        frame.bindings = b"\xc1"
    frame.ClearField("tensors")
    broken = b"\xff" if part == "frame" else frame.SerializeToString()
    _rewrite(tmp_path / "r", [record._replace(raw=broken, completed=Amount())], keeps_values=True)
    with pytest.raises(fw.ConfigurationError, match="the recording holds a malformed frame"):
        fw.replay(tmp_path / "r", server.grpc)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_speed_is_above_0(tmp_path: Path, speed: float) -> None:
    with pytest.raises(fw.ConfigurationError, match="speed"):
        fw.replay(tmp_path / "r", "127.0.0.1:1", speed=speed)


def test_a_seed_is_not_below_0(tmp_path: Path) -> None:
    with pytest.raises(fw.ConfigurationError, match="seed"):
        fw.replay(tmp_path / "r", "127.0.0.1:1", seed=-1)


def test_a_server_that_is_not_there_is_an_error(server: ServerProcess, tmp_path: Path) -> None:
    path = _recorded(server, tmp_path / "r", record_values=False)
    with pytest.raises(fw.SessionLost):
        fw.replay(path, "127.0.0.1:1")
