"""Measures a server's engine without a network and with a device that computes nothing.

The engine decodes, checks and coalesces frames that lie in memory. Every session runs one program again and again; the
program has its plan before the measurement begins. A session sends one segment in each frame, as far ahead as its
credit allows. This is the one module of the load tests that reaches into the server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos import frames
from fusewire_protos.frames import NewProgram, Segment, Upload
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.config import config
from fusewire_server.config.config import Config
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.planning.planner import Planned, Planner, PlannerSettings, PlanRequest
from fusewire_server.scheduling.turns import Owner
from fusewire_server.sessions.session import Session
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.figure import Figure
from loadtests.measuring.timing import summarise, take_turns
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context

_MANY = 1000
_SEGMENTS = 12_000  # sent by all sessions together in each measurement
_TURNS = 5
_DEADLINE_S = 60.0
_STOP_DEADLINE_S = 10.0
_STATE, _WEIGHTS, _BIAS = 1 << 41, (1 << 41) + 1, (1 << 41) + 2
_WIDTH, _BODIES = 16, 8
_FUNCTIONS = ("sigmoid", "tanh", "exp")
_VECTOR, _MATRIX = Spec(dtypes.float32, (_WIDTH,)), Spec(dtypes.float32, (_WIDTH, _WIDTH))
_TENSORS = bytes(_VECTOR.size_bytes), bytes(_MATRIX.size_bytes)
_UPLOADS = frames.encode_entries((Upload(_STATE, _VECTOR, 0), Upload(_WEIGHTS, _MATRIX, 1), Upload(_BIAS, _VECTOR, 0)))
_WARMING_SEGMENTS = 1000
_LIMITS = config.Limits(sessions=2 * _MANY, tenant_sessions=2 * _MANY)


class _PlannerWithoutProcess(Planner):
    """Plans in this process and compiles nothing."""

    def __init__(self) -> None:
        super().__init__(PlannerSettings("c", "", _DEADLINE_S, 0))

    def request(self, raw: bytes, owner: Owner, *, is_urgent: bool, **how: Any) -> PlanRequest:
        request = super().request(raw, owner, is_urgent=is_urgent, **how)
        request.answer.set_result(Planned(build_plan(decode(raw, ProgramLimits()), "c"), (), 1, 1, 0))
        return request


class _Client:
    """A session that sends its frames as far ahead as its credit allows, whenever the engine wakes it."""

    def __init__(self, engine: Engine, first: bytes, following: Sequence[bytes], op_count: int) -> None:
        self._engine = engine
        self._session: Session = engine.open("tenant", "bench", "memory")
        self._most_in_flight = min(_LIMITS.credit_segments, _LIMITS.credit_ops // op_count)
        self._following = following
        self._frame = 1
        self._last_frame = 1
        self._done: asyncio.Future[None] | None = None
        self._applying: asyncio.Task[None] | None = None  # waits until the frame sent last is applied
        engine.attach(self._session, self._go_on)
        engine.receive(self._session, self._frame, first, _UPLOADS, _TENSORS, time.monotonic_ns())

    async def is_set_up(self) -> None:
        """Waits until the engine has applied the first frame."""
        await outcome_of(self._engine.unapplied(self._session))

    def send(self, segments: int) -> asyncio.Future[None]:
        """Sends `segments` more segments. Returns a future that is done when the device has completed them."""
        self._last_frame += segments
        self._done = asyncio.get_running_loop().create_future()
        self._go_on()
        return self._done

    def _go_on(self) -> None:
        session = self._session
        if self._applying is not None:
            return
        while self._frame < self._last_frame:
            if session.admitted.segments - session.completed.segments >= self._most_in_flight:
                return
            bindings = self._following[self._frame - 1]
            self._frame += 1
            if not self._engine.receive(session, self._frame, b"", bindings, (), time.monotonic_ns()):
                self._applying = asyncio.create_task(self._go_on_once_applied())
                return
        if self._done is not None and not self._done.done() and session.admitted == session.completed:
            self._done.set_result(None)

    async def _go_on_once_applied(self) -> None:
        await outcome_of(self._engine.unapplied(self._session))
        self._applying = None
        self._go_on()


def _segment_frames(count: int, op_count: int) -> list[bytes]:
    """Returns the bindings of frames with one segment each. A segment's state is the last result of the one before."""
    segments = []
    state = _STATE
    for base in range(1, 1 + count * op_count, op_count):
        segments.append(Segment(1, base, (state, _WEIGHTS, _BIAS), (0.5,), (), (0,)))
        state = base + op_count - 1
    return [frames.encode_entries((segment,)) for segment in segments]


def _loop_program(number: int) -> Program:
    """Returns a program of several bodies of a recurrent loop. Only the last result is live.

    Each body has a matrix product and five pointwise ops. Programs of different `number` have different pointwise ops.
    """
    state, weights, bias, scale = range(4)
    ops: list[ProgramOp] = []

    def op(name: str, *operands: int) -> int:
        ops.append(ProgramOp(catalogue.BY_NAME[name], operands, ()))
        return 3 + len(ops)

    for body in range(_BODIES):
        z = op("add", op("matmul", state, weights), bias)
        function = _FUNCTIONS[number // len(_FUNCTIONS) ** body % len(_FUNCTIONS)]
        state = op("add", op(function, op("negative", op("multiply", z, scale))), bias)
    return build([_VECTOR, _MATRIX, _VECTOR], [dtypes.float32], ops, (len(ops) - 1,))


class Bench:
    """An engine on a device that computes nothing, and its sessions."""

    def __init__(self, sessions: int, programs: int = 1) -> None:
        self._sessions = sessions
        self._programs = programs

    def segments_per_s(self) -> float:
        """Opens the sessions, waits until their program has its plan, and measures."""
        return asyncio.run(self._measure())

    async def _measure(self) -> float:
        engine = Engine(replace(Config(), limits=_LIMITS), NullDevice(), _PlannerWithoutProcess())
        engine.start()
        try:
            programs = [_loop_program(number) for number in range(self._programs)]
            new = [frames.encode_programs([NewProgram(1, False, encode(program))]) for program in programs]
            op_count = programs[0].op_count
            warming, measured = max(_WARMING_SEGMENTS // self._sessions, 1), _SEGMENTS // self._sessions
            following = _segment_frames(warming + measured, op_count)
            firsts = islice(cycle(new), self._sessions)
            clients = [_Client(engine, first, following, op_count) for first in firsts]
            for client in clients:
                await client.is_set_up()
            await _run(clients, warming)
            began_s = time.perf_counter()
            await _run(clients, measured)
            taken_s = time.perf_counter() - began_s
            _check(engine)
        finally:
            engine.drain(0)
            for session in list(engine.sessions.values()):
                engine.end(session)
            await asyncio.to_thread(engine.stop, _STOP_DEADLINE_S)
        return measured * self._sessions / taken_s


async def _run(clients: Sequence[_Client], segments: int) -> None:
    """Sends `segments` segments in each session, and waits until the device has completed all of them."""
    await asyncio.wait_for(asyncio.gather(*[client.send(segments) for client in clients]), _DEADLINE_S)


def _check(engine: Engine) -> None:
    """Raises WrongResult if anything failed, or if fewer rows ran than a measurement sends segments."""
    if engine.counters.failures or engine.counters.rows < _SEGMENTS:
        raise WrongResult(f"{engine.counters.rows} rows, failures {dict(engine.counters.failures)}")


def _measure(_context: Context) -> tuple[Figure, ...]:
    ways = {
        "one": lambda: [Bench(1).segments_per_s()],
        "many": lambda: [Bench(_MANY).segments_per_s()],
        "distinct": lambda: [Bench(_MANY, _MANY).segments_per_s()],
    }
    rates = take_turns(_TURNS, ways)
    one, many, distinct = (summarise(rates[way]) for way in ways)
    return (
        Figure(
            name="engine_frames",
            what=f"segments of {_BODIES} loop bodies through the engine, in memory, one session",
            value=one.median,
            unit="segments/s",
            spread=one.spread,
            raw={"one": rates["one"]},
        ),
        Figure(
            name="engine_frames_many",
            what=f"the same with {_MANY:,} sessions, as a share of that rate",
            value=many.median / one.median,
            unit="",
            notes=(f"{many.median:,.0f} segments/s",),
            raw={"many": rates["many"]},
        ),
        Figure(
            name="engine_frames_distinct",
            what=f"the same with {_MANY:,} sessions that all run different programs, as a share of that rate",
            value=distinct.median / one.median,
            unit="",
            notes=(f"{distinct.median:,.0f} segments/s",),
            raw={"distinct": rates["distinct"]},
        ),
    )


ENGINE_FRAMES = Microbenchmark(("engine_frames", "engine_frames_many", "engine_frames_distinct"), _measure)
