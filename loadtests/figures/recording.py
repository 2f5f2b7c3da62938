"""What recording an op costs the user's thread: dtype rule, handle, finaliser, and its part of cutting and sealing.

The device is held, so that the server leaves the processor to the client; the client's own I/O thread works on. The
thread never waits for credit: a turn records less than there is.
"""

from __future__ import annotations

import numpy as np

import fusewire as fw
from loadtests.context import Context
from loadtests.figure import Figure, Scenario, at_most
from loadtests.programs import Floats, check_close
from loadtests.service import Service
from loadtests.turns import elapsed_ns, summarise

_OPS = 500  # timed at once
_PIECES = 6  # a turn
_TURNS = 20
_STEP = np.float32(1e-3)


def _measure(context: Context) -> tuple[Figure, ...]:
    with context.session() as (service, session):
        _check(session)
        service.warm_up(lambda: _record_turn(session))
        held = [us for _ in range(_TURNS) for us in _record_held(service, session)]
        free = [us for _ in range(_TURNS) for us in _record_turn(session)]
    summary = summarise(held)
    free_summary = summarise(free)
    return (
        Figure(
            name="record_op",
            what="recording one pointwise op",
            value=summary.median,
            unit="µs",
            limit=at_most(1.3),
            spread=summary.spread,
            notes=(f"with the device at work: {free_summary.median:.2f} µs",),
            raw={"held": held, "running": free},
        ),
    )


def _record_held(service: Service, session: fw.Session) -> list[float]:
    with service.held():
        times_us, last = _record(session)
    last.numpy()
    return times_us


def _record_turn(session: fw.Session) -> list[float]:
    times_us, last = _record(session)
    last.numpy()
    return times_us


def _record(session: fw.Session) -> tuple[list[float], fw.Array]:
    """Times in µs an op, and the last result."""
    x, step = session.array(_draw()), session.array(_STEP)

    def record() -> None:
        nonlocal x
        for _ in range(_OPS):
            x = x + step

    times_us = [elapsed_ns(record) / 1e3 / _OPS for _ in range(_PIECES)]
    return times_us, x


def _draw() -> Floats:
    return np.random.default_rng(0).random(16, np.float32)


def _check(session: fw.Session) -> None:
    _, actual = _record(session)
    expected = _draw()
    for _ in range(_OPS * _PIECES):
        expected += _STEP
    check_close(actual.numpy(), expected, "a chain of additions")


RECORDING = Scenario(("record_op",), _measure)
