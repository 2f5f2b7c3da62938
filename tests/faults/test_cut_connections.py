"""Connections that are cut anywhere, or that fall silent: a session goes on with the same bytes, and holds no more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire._stream import resumption
from fusewire.examples.training.timing import train_once
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.access.tokens import revoke
from tests.bounds import Bounded
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.drawn_nests import Nest, drawn_nests, run_nest
from tests.effort import of_a_hundred
from tests.faults.cuts import SETTLED_S, connected, cuts
from tests.faults.cutting_proxy import CuttingProxy, proxy_to
from tests.faults.server import Inspector, serving, until
from tests.patience import HANGS_S

pytestmark = pytest.mark.faults

_CUTS = 500
NOTICED_WITHIN_S = 16.0
PARTED_WITHIN_S = 5.0  # a server would keep the session for limits.resume_grace_s = 30
_DRAINED_WITHIN_S = 12.0
_HALF_OPEN = 0.2  # of the cuts
_RATE = 0.3
_EPOCHS = 2


@pytest.fixture
def server(token_file: Path, token: str, inspecting: str) -> Iterator[ServerProcess]:
    """A server that knows these tokens."""
    assert token
    assert inspecting
    with serving(token_file) as started:
        yield started


def trained(target: str, token: str) -> tuple[Any, ...]:
    with connected(target, token):
        run = train_once(fw, _RATE, _EPOCHS, lambda: None)
    return run.losses, run.accuracy


@pytest.mark.usefixtures("hasty")
def test_the_demo_trains_to_the_same_bytes_over_connections_that_are_cut(
    server: ServerProcess, token: str, inspecting: str
) -> None:
    inspector = Inspector(server, inspecting)
    wanted = trained(server.grpc, token)
    until(lambda: inspector.held()[0] == 0)
    before = inspector.held()
    with proxy_to(server.grpc, cuts(seed=1, most_bytes=3_000_000)) as proxy:
        while proxy.cuts < _CUTS:
            assert trained(proxy.target, token) == wanted
    until(lambda: inspector.held()[0] == 0, SETTLED_S)
    assert inspector.held() == before
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


@pytest.mark.usefixtures("hasty")
@settings(of_a_hundred(15), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(nest=drawn_nests(most_iterations=40), seed=st.integers(0, 2**32))
def test_a_body_that_is_recorded_once_gives_the_same_bytes_over_connections_that_are_cut(
    open_server: ServerProcess, nest: Nest, seed: int
) -> None:
    with connected(open_server.grpc, "") as session:
        wanted = run_drawn_nest(nest, session)
    with (
        proxy_to(open_server.grpc, cuts(seed, most_bytes=5_000, half_open=_HALF_OPEN)) as proxy,
        connected(proxy.target, "") as session,
    ):
        assert run_drawn_nest(nest, session) == wanted


def run_drawn_nest(nest: Nest, session: fw.Session) -> list[bytes]:
    arrays = [*map(session.array, data(np.float32))]
    states = run_nest(nest, fw, fw.fori_loop, arrays, read=lambda state: state.numpy(timeout=HANGS_S))
    return [state.numpy(timeout=HANGS_S).tobytes() for state in states]


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
    until(lambda: inspector.held()[0] == 0)
    before = inspector.held()
    with (
        proxy_to(server.grpc, cuts(seed=2, most_bytes=100_000_000)) as proxy,
        connected(proxy.target, token) as session,
    ):
        while proxy.cuts < _CUTS // 5:
            assert large_work(session) == wanted
    until(lambda: inspector.held()[0] == 0, SETTLED_S)
    assert inspector.held() == before


@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])
def test_silence_is_noticed_on_both_sides_and_the_session_goes_on(
    server: ServerProcess, token: str, inspecting: str, is_busy: bool, bounded: Bounded
) -> None:
    inspector = Inspector(server, inspecting)
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
        x = session.array(np.arange(100.0))
        assert float(x.sum()) == 4950
        proxy.accepts = False
        proxy.silence_all()
        value = (x + 1).sum().future() if is_busy else None
        by_server_s = until(lambda: inspector.sessions("quiet") == ["detached"], NOTICED_WITHIN_S)
        by_client_s = by_server_s + until(lambda: "resuming" in repr(session), NOTICED_WITHIN_S)
        bounded("time until the server notices", by_server_s, NOTICED_WITHIN_S, "s")
        bounded("time until the client notices", by_client_s, NOTICED_WITHIN_S, "s")
        proxy.accepts = True
        assert float((x + 1).sum()) == 5050
        assert value is None or float(value.result(HANGS_S)) == 5050
        assert inspector.sessions("quiet") == ["open"]


def test_who_is_cut_off_while_results_pour_in_is_not_taken_for_a_slow_reader(
    server: ServerProcess, token: str, inspecting: str
) -> None:
    inspector = Inspector(server, inspecting)
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
        x = session.array(np.arange(50_000, dtype=np.float32)) + 1
        wanted = x.numpy(timeout=HANGS_S).tobytes()
        proxy.accepts = False
        futures = [x.future() for _ in range(200)]
        futures[0].result(HANGS_S)
        proxy.silence_all()
        until(lambda: inspector.sessions("quiet") == ["detached"], NOTICED_WITHIN_S)
        until(lambda: "resuming" in repr(session), NOTICED_WITHIN_S)
        proxy.accepts = True
        assert {future.result(HANGS_S).tobytes() for future in futures} == {wanted}


def test_a_wait_goes_on_after_a_pause_and_another_server_has_nothing_of_the_session(
    server: ServerProcess, token: str, token_file: Path
) -> None:
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
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
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
        x = session.array(np.arange(100.0))
        assert float(x.sum()) == 4950
        revoke(token_file, token.partition(".")[0])
        proxy.cut_all()
        with pytest.raises(fw.Unauthenticated):
            (x + 1).numpy(timeout=HANGS_S)


@pytest.mark.parametrize("silence", [CuttingProxy.silence_stream, CuttingProxy.silence_large_values])
def test_large_values_outlast_the_silence_of_one_connection_alone(
    server: ServerProcess, token: str, silence: Callable[[CuttingProxy], None]
) -> None:
    """Large values travel over another connection, whose calls need what the stream declares."""
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
        source = np.arange(INLINE_BYTES, dtype=np.float32)
        assert session.array(source).numpy(timeout=HANGS_S).tobytes() == source.tobytes()
        product = session.array(source) * 2
        assert float(product[1]) == 2
        silence(proxy)
        wanted, sent = product.future(), session.array(source) + 1
        assert sent.numpy(timeout=HANGS_S).tobytes() == (source + 1).tobytes()
        assert wanted.result(HANGS_S).tobytes() == (source * 2).tobytes()


@pytest.mark.parametrize("is_noticed", [True, False], ids=["noticed", "not noticed"])
def test_a_session_that_is_closed_without_a_connection_leaves_nothing_on_the_server(
    server: ServerProcess,
    token: str,
    inspecting: str,
    monkeypatch: pytest.MonkeyPatch,
    is_noticed: bool,
    bounded: Bounded,
) -> None:
    monkeypatch.setattr(resumption, "_FIRST_DELAY_S", HANGS_S)
    monkeypatch.setattr(resumption, "_LONGEST_DELAY_S", HANGS_S)
    inspector = Inspector(server, inspecting)
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
        x = session.array(np.arange(100.0))
        assert float(x.sum()) == 4950
        proxy.cut_all()
        if is_noticed:
            until(lambda: "resuming" in repr(session), NOTICED_WITHIN_S)
        session.close()
        ended_s = until(lambda: inspector.sessions("quiet") == [], PARTED_WITHIN_S)
        bounded("time until the server has ended the session", ended_s, PARTED_WITHIN_S, "s")


def test_a_client_that_is_back_before_a_draining_server_ends_gets_its_answers(
    server: ServerProcess, token: str, inspecting: str
) -> None:
    inspector = Inspector(server, inspecting)
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False) as session:
        future = (session.array(np.arange(100.0)) + 1).sum().future()
        until(lambda: inspector.ask("/v1/stats")["totals"]["ops"] > 0)
        proxy.accepts = False
        proxy.cut_all()
        until(lambda: inspector.sessions("quiet") == ["detached"], NOTICED_WITHIN_S)
        psutil.Process(server.pid).terminate()
        proxy.accepts = True
        assert float(future.result(HANGS_S)) == 5050


def test_a_client_that_comes_back_when_a_server_has_drained_is_told_so(server: ServerProcess, token: str) -> None:
    with proxy_to(server.grpc) as proxy, fw.connect(proxy.target, token=token, local=False, reconnect_s=1.0) as session:
        x = session.array(np.arange(100.0))
        assert float(x.sum()) == 4950
        proxy.accepts = False
        proxy.cut_all()
        until(lambda: "resuming" in repr(session), NOTICED_WITHIN_S)
        process = psutil.Process(server.pid)
        process.terminate()
        assert process.wait(_DRAINED_WITHIN_S) == 0
        proxy.accepts = True
        with pytest.raises(fw.SessionLost, match="all values of the session are gone"):
            (x + 1).numpy(timeout=HANGS_S)
