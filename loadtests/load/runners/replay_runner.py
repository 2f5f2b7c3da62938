"""Replays a recording again and again, in one session after another. A step is the answer of a fetch."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fusewire._connect import transport_to
from fusewire._replay.records import Recording
from fusewire._replay.replay import OnAnswer, Replay, Replayed
from loadtests.load.runners.clock import MONOTONIC_CLOCK
from loadtests.load.runners.pace import Pace
from loadtests.load.runners.runner import Runner, RunnerReport
from loadtests.load.target.server import Access

_CLIENT = "fusewire-loadtests"


class Repeated(NamedTuple):
    """A recording, and how it is repeated."""

    path: Path
    speed: float  # of the frames, in times of the recorded speed; inf: as fast as the server completes the work
    answers: int  # that the recording holds
    timeout_s: float  # of one replay


class ReplayRunner(Runner):
    """Replays one after another; with a rate, by a schedule, even if they come late. Connecting is part of no step."""

    def __init__(self, repeated: Repeated, access: Access, pace: Pace, seed: int) -> None:
        super().__init__(pace.session)
        self._repeated = repeated
        self._access = access
        self._pace = pace if pace.rate_per_s is None else pace._replace(rate_per_s=pace.rate_per_s / repeated.answers)
        self._seed = seed
        self._replay: Replay | None = None  # the last one that has begun
        self._done: list[Replayed] = []

    @property
    def ops(self) -> int:
        return sum(replayed.ops for replayed in self._done)

    def first_step(self) -> None:
        """Replays the recording once, so that the server knows its programs."""
        self._run_replay(lambda _intended_ns, _answered_ns: None)

    def run_steps(self, began_ns: int) -> None:
        now, sleep_until = MONOTONIC_CLOCK
        replay, free_ns = 0, began_ns
        while not self._stops.is_set():
            intended_ns = self._pace.intended_ns(replay, began_ns, now())
            if not sleep_until(intended_ns, self._stops):
                return
            replay_began_ns = now()
            is_open = self._pace.rate_per_s is not None
            due_ns = max(intended_ns, free_ns) if is_open else replay_began_ns
            self._run_replay(self._noting(intended_ns if is_open else replay_began_ns, due_ns, replay_began_ns))
            free_ns = due_ns + now() - replay_began_ns
            replay += 1

    def stop(self) -> None:
        super().stop()
        if self._replay is not None:
            self._replay.stop()

    def report(self) -> RunnerReport:
        return RunnerReport(
            self.session,
            sum(len(replayed.answered) for replayed in self._done),
            self.error,
            compared=sum(replayed.compared for replayed in self._done),
            differences=tuple(
                f"replay {number}: {difference}"
                for number, replayed in enumerate(self._done, start=1)
                for difference in replayed.differences
            ),
        )

    def _run_replay(self, on_answer: OnAnswer) -> None:
        given = self._repeated
        with Recording(given.path) as recording:
            self._replay = Replay(
                transport_to(self._access.target, self._access.token, self._access.tls_ca, None),
                recording,
                speed=given.speed,
                seed=self._seed,
                client=_CLIENT,
                on_answer=on_answer,
            )
            if self._stops.is_set():
                self._replay.stop()  # `stop` may have come before there was this replay
            self._done.append(self._replay.run(given.timeout_s))

    def _noting(self, intended_ns: int, due_ns: int, began_ns: int) -> OnAnswer:
        """Returns a function that notes the steps of a replay with these times.

        A fetch is sent as long after the begin of its replay as it was in the recording. So by the schedule it was to
        be sent as much earlier as the replay has begun late.
        """

        def note(fetch_ns: int, answered_ns: int) -> None:
            late_ns, lag_ns = began_ns - intended_ns, began_ns - due_ns
            self._steps.append((self.session, fetch_ns - late_ns, fetch_ns - lag_ns, fetch_ns, fetch_ns, answered_ns))

        return note

    def _under_way(self) -> str:
        missing = "" if self._replay is None else f", {self._replay.missing()}"
        return f"replay {len(self._done) + 1}{missing}"
