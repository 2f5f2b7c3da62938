"""Connections that are cut anywhere, or that fall silent: a session goes on with the same bytes, and holds no more."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire._stream import resumption
from fusewire._transport import grpc_transport
from fusewire._transport.grpc_transport import _CLEAR_CHANNEL_OPTIONS
from fusewire.examples.training import train_once
from fusewire.testing import ServerProcess, serve_subprocess
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.faults.cutting_proxy import Cut, proxy_to
from tests.faults.server import Inspector, serving, until
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_CUTS = 500
_NOTICED_WITHIN_S = 16.0
_RATE = 0.3
_EPOCHS = 2


@pytest.fixture
def server(token_file: Path, token: str, inspecting: str) -> Iterator[ServerProcess]:
    """A server that knows these tokens."""
    assert token
    assert inspecting
    with serving(token_file) as started:
        yield started


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connects again almost at once, so that many cuts take little time."""
    monkeypatch.setattr(resumption, "_FIRST_DELAY_S", 0.005)
    monkeypatch.setattr(resumption, "_LONGEST_DELAY_S", 0.05)
    # gRPC may fail to notice a reset until it sends something.
    options = [(name, 1000 if name == "grpc.keepalive_time_ms" else value) for name, value in _CLEAR_CHANNEL_OPTIONS]
    monkeypatch.setattr(grpc_transport, "_CLEAR_CHANNEL_OPTIONS", options)


def cuts(seed: int, most_bytes: int) -> Callable[[], Cut]:
    """Draws when connections break: as often after tens of bytes as after hundreds of them, and so on."""
    drawn = random.Random(seed)

    def next_cut() -> Cut:
        after_bytes = round(10 ** drawn.uniform(2, np.log10(most_bytes)))
        stalls_s = drawn.choice([0.0, 0.0, 0.0, 0.02])
        return Cut(after_bytes, drawn.random() < 0.5, drawn.random() < 0.5, stalls_s)

    return next_cut


@contextmanager
def connected(target: str, token: str, **options: Any) -> Iterator[fw.Session]:
    """A session that is opened though the first connections may be cut."""
    while True:
        try:
            session = fw.connect(target, token=token, **options)
        except fw.SessionLost:
            continue
        break
    with session:
        yield session


def trained(target: str, token: str) -> tuple[Any, ...]:
    with connected(target, token):
        run = train_once(fw, _RATE, _EPOCHS, lambda: None)
    return run.losses, run.accuracy


def held(inspector: Inspector) -> tuple[int, int]:
    """The sessions of a server, and the bytes of the device that values take."""
    stats = inspector.ask("/v1/stats")
    return len(inspector.ask("/v1/sessions")["sessions"]), stats["memory"]["live_bytes"]


@pytest.mark.usefixtures("hasty")
def test_the_demo_trains_to_the_same_bytes_over_connections_that_are_cut(
    server: ServerProcess, token: str, inspecting: str
) -> None:
    inspector = Inspector(server, inspecting)
    wanted = trained(server.grpc, token)
    until(lambda: held(inspector)[0] == 0)
    before = held(inspector)
    with proxy_to(server.grpc, cuts(seed=1, most_bytes=3_000_000)) as proxy:
        while proxy.cuts < _CUTS:
            assert trained(proxy.target, token) == wanted
    until(lambda: held(inspector)[0] == 0, within_s=60)
    assert held(inspector) == before
    assert inspector.ask("/v1/stats")["totals"]["sessions"]["resumed"] > _CUTS // 4


@pytest.fixture(scope="module")
def open_server() -> Iterator[ServerProcess]:
    """A server that needs no token, for many small tests."""
    with serve_subprocess("cpu") as started:
        yield started


@pytest.mark.usefixtures("hasty")
@settings(max_examples=30, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(loop=drawn_loops(most_iterations=60), seed=st.integers(0, 2**32))
def test_a_drawn_loop_gives_the_same_bytes_over_connections_that_are_cut(
    open_server: ServerProcess, loop: Drawn, seed: int
) -> None:
    with connected(open_server.grpc, "") as session:
        wanted = run_drawn(loop, session)
    with (
        proxy_to(open_server.grpc, cuts(seed, most_bytes=20_000)) as proxy,
        connected(proxy.target, "") as session,
    ):
        assert run_drawn(loop, session) == wanted


def run_drawn(loop: Drawn, session: fw.Session) -> list[bytes]:
    rows, *states = map(session.array, data(np.float32))
    way = Way(fw, session.array, read=lambda state: state.numpy(timeout=HANGS_S))
    return [array.numpy(timeout=HANGS_S).tobytes() for array in run(loop, way, rows, states)]


def large_work(session: fw.Session) -> list[bytes]:
    """Uploads and downloads values that travel in calls of their own; one is larger than what a client keeps."""
    sources = [np.arange(count, dtype=np.float32) for count in (100_000, 300_000, 5_000_000)]
    arrays = [session.array(source) for source in sources]
    sources[0][:] = 0  # nobody may send from here what has been copied
    futures = [(array * 2).future() for array in arrays]
    return [future.result(HANGS_S).tobytes() for future in futures]


@pytest.mark.usefixtures("hasty")
def test_large_values_come_whole_over_connections_that_are_cut(
    server: ServerProcess, token: str, inspecting: str
) -> None:
    inspector = Inspector(server, inspecting)
    with connected(server.grpc, token) as session:
        wanted = large_work(session)
    until(lambda: held(inspector)[0] == 0)
    before = held(inspector)
    with (
        proxy_to(server.grpc, cuts(seed=2, most_bytes=100_000_000)) as proxy,
        connected(proxy.target, token) as session,
    ):
        while proxy.cuts < _CUTS // 5:
            assert large_work(session) == wanted
    until(lambda: held(inspector)[0] == 0, within_s=60)
    assert held(inspector) == before


@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])
def test_silence_is_noticed_on_both_sides_and_the_session_goes_on(
    server: ServerProcess, token: str, inspecting: str, is_busy: bool
) -> None:
    inspector = Inspector(server, inspecting)
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token) as session:
        x = session.array(np.arange(100.0))
        assert float(x.sum()) == 4950
        proxy.accepts = False
        proxy.silence_all()
        value = (x + 1).sum().future() if is_busy else None
        until(lambda: inspector.sessions("quiet") == ["detached"], _NOTICED_WITHIN_S)
        until(lambda: "resuming" in repr(session), _NOTICED_WITHIN_S)
        proxy.accepts = True
        assert float((x + 1).sum()) == 5050
        assert value is None or float(value.result(HANGS_S)) == 5050
        assert inspector.sessions("quiet") == ["open"]


def test_who_is_cut_off_while_results_pour_in_is_not_taken_for_a_slow_reader(
    server: ServerProcess, token: str, inspecting: str
) -> None:
    inspector = Inspector(server, inspecting)
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token) as session:
        x = session.array(np.arange(50_000, dtype=np.float32)) + 1
        wanted = x.numpy(timeout=HANGS_S).tobytes()
        proxy.accepts = False
        futures = [x.future() for _ in range(200)]
        futures[0].result(HANGS_S)
        proxy.silence_all()
        until(lambda: inspector.sessions("quiet") == ["detached"], _NOTICED_WITHIN_S)
        until(lambda: "resuming" in repr(session), _NOTICED_WITHIN_S)
        proxy.accepts = True
        assert {future.result(HANGS_S).tobytes() for future in futures} == {wanted}


def test_a_wait_goes_on_after_a_pause_and_another_server_has_nothing_of_the_session(
    server: ServerProcess, token: str, token_file: Path
) -> None:
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token) as session:
        x = session.array(np.arange(100.0))
        proxy.accepts = False
        proxy.cut_all()
        future = (x + 1).sum().future()
        until(lambda: "resuming" in repr(session))
        proxy.accepts = True
        assert float(future.result(HANGS_S)) == 5050
        with serving(token_file) as other:
            proxy.lead_to(other.grpc)
            proxy.cut_all()
            with pytest.raises(fw.SessionLost, match="all values of the session are gone: connect again"):
                (x + 1).numpy(timeout=HANGS_S)
        assert not session.is_open


def test_a_killed_server_is_given_up_after_the_time_that_the_user_set(server: ServerProcess, token: str) -> None:
    with fw.connect(server.grpc, token=token, reconnect_s=0.5) as session:
        x = session.array(np.arange(100.0))
        waiting = threading.Thread(target=lambda: until(lambda: not session.is_open))
        waiting.start()
        psutil.Process(server.pid).kill()
        with pytest.raises(
            fw.SessionLost, match=r"it was tried to resume for 0\.5 s; all values of the session are gone"
        ):
            (x + 1).numpy(timeout=HANGS_S)
        waiting.join(HANGS_S)


def test_a_revoked_token_ends_the_attempts(server: ServerProcess, token: str, token_file: Path) -> None:
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token) as session:
        x = session.array(np.arange(100.0))
        assert float(x.sum()) == 4950
        token_file.write_text("")
        proxy.cut_all()
        with pytest.raises(fw.Unauthenticated):
            (x + 1).numpy(timeout=HANGS_S)
