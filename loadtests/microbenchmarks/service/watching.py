"""Measures how much a server slows down while it is watched: by a page's live stream and a scrape each second.

One client runs a load all the time: the recurrent loop inline, the same as `fori_loop`, or the agent of the scenario
`rl`. The time is divided into windows, and these into pairs; in one window of each pair a process of its own reads the
live stream as the page does at its widest look, and the metrics once a second. Which window it is changes from pair to
pair. A figure is the median slowdown of the pairs; its 95 % interval is told beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from multiprocessing.connection import Connection
from time import perf_counter

import fusewire as fw
from loadtests.measuring.errors import LoadFailed
from loadtests.measuring.figure import Figure
from loadtests.measuring.pairs import paired_ratio
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Worker, answer_commands
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.microbenchmarks.service.agent_step import Agent
from loadtests.scenarios import library
from loadtests.system.context import FUSEWIRE, Context, upload
from loadtests.system.remote_loop import as_fori_loop
from loadtests.workloads.loops import Loop, draw_rnn, run_rnn

_PAIRS = 24
_WINDOW_S = 1.2
_SETTLING_S = 0.3  # of a window, before it is measured
_WARM_UP_S = 1.0
_PLANNING_DEADLINE_S = 90.0
_SCRAPE_EVERY_S = 1.0
_BATCH, _HIDDEN = 1, 256
_INLINE_STEPS = 500
_LOOP_STEPS = 5_000
_AGENT_STEPS = 20
_STREAM = "/v1/live?pixel_ns=2097152"  # as the page asks for two seconds in a thousand pixels
_METRICS = "/metrics"
_DEADLINE_S = 10.0
_LEAST_READ_BYTES = 1  # of the stream in a window: else nobody watched
_PIECE_BYTES = 1 << 16

_WHAT = {
    "watched_rnn": "the recurrent loop inline",
    "watched_fori": "the recurrent loop as fori_loop",
    "watched_rl": "an agent's steps",
}


def watch(connection: Connection, http: str) -> None:
    """Watches the server whose inspection is at `http`, on command: answers `begin` and `end`."""
    watcher = _Watcher(http)
    answer_commands(connection, {"begin": watcher.begin, "end": watcher.end})


class _Watcher:
    """Reads the live stream and the metrics, each on a thread of its own, between `begin` and `end`."""

    def __init__(self, http: str) -> None:
        self._http = http
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []
        self._stream: HTTPConnection | None = None
        self._read_bytes = 0

    def begin(self) -> None:
        """Returns once the first message of the stream has come."""
        self._read_bytes = 0
        self._ends = threading.Event()
        self._stream = HTTPConnection(self._http, timeout=_DEADLINE_S)
        self._stream.request("GET", _STREAM)
        answer = self._stream.getresponse()
        self._take(answer)
        self._threads = [threading.Thread(target=self._read, args=(answer,)), threading.Thread(target=self._scrape)]
        for each in self._threads:
            each.start()

    def end(self) -> int:
        """Returns how many bytes of the stream were read."""
        self._ends.set()
        for each in self._threads:
            each.join()
        assert self._stream is not None
        self._stream.close()
        return self._read_bytes

    def _take(self, answer: HTTPResponse) -> None:
        self._read_bytes += len(answer.read1(_PIECE_BYTES))

    def _read(self, answer: HTTPResponse) -> None:
        while not self._ends.is_set():
            self._take(answer)

    def _scrape(self) -> None:
        while not self._ends.is_set():
            connection = HTTPConnection(self._http, timeout=_DEADLINE_S)
            try:
                connection.request("GET", _METRICS)
                connection.getresponse().read()
            except (OSError, HTTPException):
                return  # the bytes of the stream tell whether the server was watched
            finally:
                connection.close()
            self._ends.wait(_SCRAPE_EVERY_S)


def _measure(context: Context) -> Iterator[Figure]:
    with context.session() as (service, session):
        loads = _loads(session)
        for act in loads.values():
            _run_for(_WARM_UP_S, act)
            service.wait_until_planned(_PLANNING_DEADLINE_S)
        with Worker(watch, service.http) as watcher:
            for name, act in loads.items():
                ways = {"without": _window(act), "watched": _watched(watcher, _window(act))}
                take_turns(1, ways)
                yield _figure(name, take_turns(_PAIRS, ways))


def _loads(session: fw.Session) -> dict[str, Callable[[], object]]:
    """Returns what runs in a window, again and again, by figure."""
    drawn = draw_rnn(_BATCH, _HIDDEN, 0)
    rnn, agent = upload(session, drawn), Agent(library.fusewire(session))

    def run_agent() -> None:
        for _ in range(_AGENT_STEPS):
            agent.step()

    return {
        "watched_rnn": lambda: run_rnn(rnn, range(_INLINE_STEPS), FUSEWIRE).numpy(),
        "watched_fori": lambda: as_fori_loop(Loop(drawn, run_rnn), rnn, _LOOP_STEPS).numpy(),
        "watched_rl": run_agent,
    }


def _window(act: Callable[[], object]) -> Callable[[], list[float]]:
    """Returns what runs a window, and returns the rate of the act in it."""

    def run() -> list[float]:
        _run_for(_SETTLING_S, act)
        return [_run_for(_WINDOW_S - _SETTLING_S, act)]

    return run


def _run_for(seconds: float, act: Callable[[], object]) -> float:
    began_s, acts = perf_counter(), 0
    while True:
        act()
        acts += 1
        passed_s = perf_counter() - began_s
        if passed_s >= seconds:
            return acts / passed_s


def _watched(watcher: Worker, run: Callable[[], list[float]]) -> Callable[[], list[float]]:
    def run_watched() -> list[float]:
        with _watching(watcher):
            return run()

    return run_watched


@contextmanager
def _watching(watcher: Worker) -> Iterator[None]:
    """Has the server watched within the block. Raises LoadFailed if nothing of the stream came."""
    watcher.ask("begin")
    yield
    if watcher.ask("end") < _LEAST_READ_BYTES:
        raise LoadFailed("nothing of the live stream came")


def _figure(name: str, rates: Mapping[str, Sequence[float]]) -> Figure:
    alone, watched = rates["without"], rates["watched"]
    slowdown = paired_ratio(watched, alone)
    speed, watched_speed = summarise(alone).median, summarise(watched).median
    return Figure(
        name=name,
        what=f"slowdown of {_WHAT[name]} by a live stream and a scrape each second",
        value=(slowdown.ratio - 1) * 100,
        unit="%",
        notes=(
            f"slowdown {slowdown.ratio:.4f}, 95 % interval {slowdown.low:.4f} … {slowdown.high:.4f}",
            f"{len(alone)} pairs of windows: {speed:,.2f} runs/s, watched {watched_speed:,.2f}",
        ),
        raw={**rates},
    )


WATCHING = Microbenchmark(tuple(_WHAT), _measure)
