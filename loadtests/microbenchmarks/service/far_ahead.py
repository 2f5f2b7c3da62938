"""Measures a server's memory for a loop over 4 MiB arrays, with the client as far ahead as its credit allows.

The device starts no work until the client's thread waits for credit. The figure is the most bytes that all buffers took
at one time, plus the size of the largest plan's arena, which holds the values that are needed only inside a row.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

import fusewire as fw
from loadtests.measuring.figure import Figure
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context, upload
from loadtests.system.service import Service
from loadtests.workloads.loops import Chain, Function, check_close, draw_chain

_ELEMENTS = 1 << 20  # 4 MiB of float32
_STEPS = 1000
_CHECKED_STEPS = 20
_CREDIT_DEADLINE_S = 20.0
_CREDIT_LOOK_S = 0.2  # a client that has credit sends within this time, even if it waits for a processor
_MIB = 1 << 20


def _measure(context: Context) -> tuple[Figure, ...]:
    operands = draw_chain(_ELEMENTS, seed=13)
    with context.session() as (service, session):
        chain = upload(session, operands)
        _check(chain, operands)
        with service.held():
            runner = threading.Thread(target=_run_to_the_end, args=(chain,))
            runner.start()
            ahead_ops = _wait_until_it_waits(service)
        runner.join()
        peak_bytes = service.stats()["memory"]["peak_bytes"]
        arena_bytes = max(service.arena_bytes(digest) for digest in service.programs())
    return (
        Figure(
            name="far_ahead",
            what="peak buffer bytes, 1,000-step loop over 4 MiB arrays",
            value=(peak_bytes + arena_bytes) / _MIB,
            unit="MiB",
            notes=(
                f"buffers {peak_bytes / _MIB:.0f} MiB, largest arena {arena_bytes / _MIB:.0f} MiB",
                f"{ahead_ops} ops ahead when the device began",
            ),
        ),
    )


def _wait_until_it_waits(service: Service) -> int:
    """Waits until the client sends nothing more; returns the number of ops in flight."""
    deadline_s = time.monotonic() + _CREDIT_DEADLINE_S
    before = 0
    while time.monotonic() < deadline_s:
        (now,) = service.in_flight_ops()
        if now and now == before:
            return now
        before = now
        time.sleep(_CREDIT_LOOK_S)
    raise TimeoutError(f"the client did not use up its credit within {_CREDIT_DEADLINE_S} s: {before} ops in flight")


def _run_to_the_end(chain: Chain) -> None:
    _run(chain, _STEPS, fw.tanh)[0].numpy()


def _run(chain: Chain, steps: int, tanh: Function) -> Any:
    """Runs a loop of four ops a step. Three of the four results die within the step."""
    x, b, z = chain
    for _ in range(steps):
        y = x * z
        y = y + b
        y = y * 0.5
        x = tanh(y)
    return x


def _check(chain: Chain, operands: Chain) -> None:
    expected = _run(operands, _CHECKED_STEPS, np.tanh)
    check_close(_run(chain, _CHECKED_STEPS, fw.tanh).numpy(), expected, "a loop over 4 MiB arrays")


FAR_AHEAD = Microbenchmark(("far_ahead",), _measure)
