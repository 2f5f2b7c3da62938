"""Through a real server: a session by local calls gives what one by gRPC gives, and goes on when a socket is cut."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import fusewire as fw
from fusewire._transport.local_channel import LocalChannel, LocalOffer
from fusewire._transport.local_stream import LocalStream
from fusewire._transport.stream_transport import StreamTransport
from fusewire.testing import serve_subprocess
from fusewire_protos.local_calls.parts import NAME_PREFIX, Opening, Part, PartKind, PartReader, encode_opening, head_of
from tests.contract.service import Service
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.effort import of_a_hundred
from tests.faults.mixed_load import do_round
from tests.patience import HANGS_S, until

WAYS = pytest.mark.parametrize("local", [True, False], ids=["local", "grpc"])
THREADS, READS = 16, 200
CUTS = 20
MIB = 1 << 20
KEPT, NOT_KEPT = 5 * MIB + 3, 40 * MIB + 1  # bytes of uploads that the client copies, and that it does not
LONG_WAIT_S = HANGS_S


@pytest.fixture(autouse=True)
def _nothing_is_left(service: Service) -> None:
    """Each test leaves the server empty."""


def transport_of(session: fw.Session) -> StreamTransport:
    transport = session._state.transport
    assert isinstance(transport, StreamTransport)
    return transport


def stream_of(session: fw.Session) -> LocalStream:
    """The stream of a session by local calls, once there is one."""
    transport = transport_of(session)
    until(lambda: transport._local_stream is not None)
    stream = transport._local_stream
    assert stream is not None
    return stream


def cut(session: fw.Session) -> None:
    """Cuts the socket of a session's stream."""
    stream_of(session)._socket.shutdown(socket.SHUT_RDWR)


def opened(service: Service, *, local: bool, **options: Any) -> fw.Session:
    session = fw.connect(service.target, local=local, **options)
    if local:
        stream_of(session)
    return session


def is_local(session: fw.Session) -> bool:
    return transport_of(session)._local_stream is not None


# ---- results ----


@WAYS
def test_mixed_work_gives_numpys_bits(service: Service, *, local: bool) -> None:
    with opened(service, local=local) as session:
        random = np.random.default_rng(5)
        for _ in range(3):
            do_round(session, random)
        assert is_local(session) == local


@settings(
    of_a_hundred(6), phases=(Phase.generate,), suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # an example waits for plans
@given(loop=drawn_loops(most_iterations=40))
def test_drawn_programs_give_the_same_bytes_by_both_ways(served: Service, loop: Drawn) -> None:
    for dtype in (np.float32, np.int32):
        found = []
        for local in (True, False):
            with opened(served, local=local) as session:
                rows, *states = map(session.array, data(dtype))
                way = Way(fw, session.array, look=lambda state: state.numpy(timeout=LONG_WAIT_S))
                results = run(loop, way, rows, states)
                found.append([result.numpy(timeout=LONG_WAIT_S).tobytes() for result in results])
        assert found[0] == found[1]


@WAYS
@pytest.mark.parametrize("size_bytes", [64 << 10, (64 << 10) + 1, MIB, KEPT, NOT_KEPT])
def test_values_of_any_size_come_back_as_they_were(service: Service, size_bytes: int, *, local: bool) -> None:
    host = np.random.default_rng(size_bytes).integers(0, 256, size_bytes, np.uint8)
    with opened(service, local=local) as session:
        array = session.array(host)
        expected = host.tobytes()
        host[:] = 0  # what was uploaded is the value at that time
        assert array.numpy(timeout=LONG_WAIT_S).tobytes() == expected
        future = array.future()
        assert future.result(LONG_WAIT_S).tobytes() == expected


@WAYS
def test_large_values_of_several_threads_do_not_mix(service: Service, *, local: bool) -> None:
    def echo(number: int) -> bool:
        host = np.full(NOT_KEPT // 2, number, np.uint8)
        return session.array(host).numpy(timeout=LONG_WAIT_S).tobytes() == host.tobytes()

    with opened(service, local=local) as session, ThreadPoolExecutor(4) as pool:
        assert all(pool.map(echo, range(8), timeout=HANGS_S))


@WAYS
def test_many_threads_wait_at_once(service: Service, *, local: bool) -> None:
    def read(number: int) -> None:
        x = session.array(np.float32(number))
        for step in range(READS):
            assert float((x + float(step)).numpy(timeout=LONG_WAIT_S)) == number + step

    with opened(service, local=local) as session, ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(read, number) for number in range(THREADS)]:
            done.result(HANGS_S)


# ---- errors ----


@WAYS
def test_a_failed_value_raises_its_typed_error_and_the_session_goes_on(service: Service, *, local: bool) -> None:
    with opened(service, local=local, debug=True) as session:
        x = session.array(np.arange(9.0))
        beyond = x[session.array(np.array([99]))] + 1
        with pytest.raises(IndexError, match="out of range"):
            beyond.numpy(timeout=LONG_WAIT_S)
        assert float(x[8].numpy(timeout=LONG_WAIT_S)) == 8.0


@WAYS
def test_a_wait_that_takes_too_long_is_told_so_and_the_value_comes_later(service: Service, *, local: bool) -> None:
    with opened(service, local=local) as session:
        x = session.array(np.ones(3))
        x.numpy(timeout=LONG_WAIT_S)
        with service.held(), pytest.raises(fw.WaitTimeout):
            (x + 1).numpy(timeout=0.05)
        assert (x + 1).numpy(timeout=LONG_WAIT_S).tolist() == [2.0] * 3


# ---- cuts ----


def test_a_session_goes_on_however_often_its_socket_is_cut(service: Service) -> None:
    with opened(service, local=True) as session:
        x = session.array(np.zeros(3))
        for number in range(CUTS):
            x = x + 1
            future = x.future() if number % 2 else None
            cut(session)
            assert x.numpy(timeout=LONG_WAIT_S).tolist() == [number + 1.0] * 3
            assert future is None or future.result(LONG_WAIT_S).tolist() == [number + 1.0] * 3


def test_threads_that_wait_while_the_socket_is_cut_get_their_values(service: Service) -> None:
    stop = threading.Event()

    def read(number: int) -> int:
        x, reads = session.array(np.float64(number)), 0
        while not stop.is_set():
            assert float((x * 2.0).numpy(timeout=LONG_WAIT_S)) == 2.0 * number
            reads += 1
        return reads

    with opened(service, local=True) as session, ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read, number) for number in range(4)]
        for _ in range(CUTS):
            cut(session)
            assert float(session.array(np.float64(7)).numpy(timeout=LONG_WAIT_S)) == 7.0
        stop.set()
        assert all(done.result(HANGS_S) for done in reading)


@pytest.mark.parametrize("size_bytes", [KEPT, NOT_KEPT])
@pytest.mark.parametrize("method", ["Upload", "Download"])
@pytest.mark.parametrize("what", ["stream", "call"])
def test_a_large_value_whose_connection_is_cut_on_its_way_comes_whole(
    service: Service, size_bytes: int, method: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts the stream, or the value's own connection, when the first call of the method has begun."""
    host = np.random.default_rng(7).integers(0, 256, size_bytes, np.uint8)
    begin_call, cuts_left = LocalChannel.stream_stream, threading.Semaphore()
    with opened(service, local=True) as session:
        stream, loop = stream_of(session), transport_of(session)._loop

        def cut_soon(call: Any) -> None:
            if not call._opened.done():
                loop.call_soon(cut_soon, call)
            elif what == "stream":
                stream._socket.shutdown(socket.SHUT_RDWR)
            else:
                call._connection._socket.shutdown(socket.SHUT_RDWR)

        def begin_and_cut(self: LocalChannel, path: str) -> Callable[..., Any]:
            begin = begin_call(self, path)

            def begun(**options: Any) -> Any:
                call = begin(**options)
                if path.endswith(method) and cuts_left.acquire(blocking=False):
                    loop.call_soon(cut_soon, call)
                return call

            return begun

        monkeypatch.setattr(LocalChannel, "stream_stream", begin_and_cut)
        monkeypatch.setattr(LocalChannel, "stream_unary", begin_and_cut)
        array = session.array(host)
        assert array.numpy(timeout=LONG_WAIT_S).tobytes() == host.tobytes()
        assert not cuts_left.acquire(blocking=False)
        assert (stream_of(session) is stream) == (what == "call")


# ---- who goes by local calls ----


def test_who_does_not_want_local_calls_stays_on_grpc(service: Service) -> None:
    with opened(service, local=False) as session:
        assert session.array(np.ones(3)).numpy(timeout=LONG_WAIT_S).tolist() == [1.0] * 3
        assert not is_local(session)


def test_a_client_that_does_not_know_local_calls_is_served(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fw.Session, "local_offer", lambda _session: None)  # it reads no such field of the welcome
    with fw.connect(service.target) as session:
        do_round(session, np.random.default_rng(1))
        assert not is_local(session)


def test_a_server_that_offers_no_local_calls_serves_by_grpc() -> None:
    with (
        serve_subprocess("null", environment={"FUSEWIRE_LISTEN__LOCAL": "false"}) as server,
        fw.connect(server.grpc) as session,
    ):
        assert session.array(np.ones(3)).numpy(timeout=LONG_WAIT_S).shape == (3,)
        assert not is_local(session)


def test_a_client_that_cannot_reach_the_socket_stays_on_grpc(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = LocalOffer(f"{NAME_PREFIX}nobody", b"secret", MIB)
    monkeypatch.setattr(fw.Session, "local_offer", lambda _session: offer)
    with fw.connect(service.target) as session:
        do_round(session, np.random.default_rng(1))
        assert not is_local(session)


# ---- foreign processes ----


def name_of(session: fw.Session) -> str:
    offer = session.local_offer()
    assert offer is not None
    return offer.name


def conversation(name: str, sent: bytes) -> list[Part]:
    """What the server tells a process that sends these bytes."""
    program = (
        "import socket, sys\n"
        "foreign = socket.socket(socket.AF_UNIX)\n"
        f"foreign.settimeout({HANGS_S})\n"
        "foreign.connect('\\0' + sys.argv[1])\n"
        "foreign.sendall(bytes.fromhex(sys.argv[2]))\n"
        "while told := foreign.recv(1 << 16):\n"
        "    sys.stdout.buffer.write(told)\n"
    )
    command = [sys.executable, "-c", program, name, sent.hex()]
    ended = subprocess.run(command, capture_output=True, timeout=HANGS_S, check=True)
    return PartReader(MIB).feed(ended.stdout)


@pytest.fixture(params=["no secret", "another's secret", "rubbish"])
def foreign(request: pytest.FixtureRequest) -> Iterator[bytes]:
    """What a foreign process sends."""
    if request.param == "rubbish":
        yield b"GET / HTTP/1.1\r\n\r\n"
    else:
        opening = Opening("Session", (), "", b"" if request.param == "no secret" else bytes(48))
        raw = encode_opening(opening)
        yield head_of(PartKind.OPEN, len(raw)) + raw


def test_a_foreign_process_is_refused_and_sessions_go_on(service: Service, foreign: bytes) -> None:
    with opened(service, local=True) as session:
        stream = stream_of(session)
        x = session.array(np.ones(3))
        answers = conversation(name_of(session), foreign)
        assert [part.kind for part in answers if part.kind is not PartKind.PING] in ([PartKind.STATUS], [])
        assert (x + 1).numpy(timeout=LONG_WAIT_S).tolist() == [2.0] * 3
        assert stream_of(session) is stream


def test_the_socket_has_no_file(service: Service) -> None:
    with opened(service, local=True) as session:
        names = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
        assert f" @{name_of(session)}" in names
