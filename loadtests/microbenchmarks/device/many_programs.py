"""Measures whether device memory stays flat while one client runs many programs in turn, more than graphs are kept.

Each program is a loop whose body takes several launches; the programs differ in the number of rows. They compute in
float64, because a persistent kernel, which takes float32 only, would need no graph. A first turn makes the plans. Then
all programs run in turn, three times; each runs a few times in a row, so that graphs of it are captured, dropped for
others, and captured again. If they are not, there is no measurement. A program's first run must give NumPy's values,
and each later run the bytes of the first. `programs_memory` is how much more device memory is taken after the last of
these turns than after the first: as the GPU's driver counts it, or without a GPU as the server does. `programs_graphs`
is the largest number of captured graphs that the server has kept.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

import fusewire as fw
from loadtests.measuring.errors import NotMeasured, WrongResult
from loadtests.measuring.figure import Figure
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context, upload
from loadtests.system.remote_loop import as_fori_loop
from loadtests.system.service import Service
from loadtests.workloads.cells import Mlp, Operands
from loadtests.workloads.loops import Floats, Loop, check_close, result_in_numpy

_PROGRAMS: Mapping[str, int] = {"cpu": 50, "cuda": 1_000}
_LAYERS, _WIDTH = 3, 16  # each layer is a launch
_STEPS = 100  # enough for a graph, which has about 128 launches
_TURNS = 3
_RUNS = 4  # of a program in a row
_PLANNING_DEADLINE_S = 90.0
_MIB = 1 << 20


class Held(NamedTuple):
    """What the server holds after a turn. `driver_mib` is the GPU's used memory, or None without a GPU."""

    pool_mib: float  # of values, and free for later values
    driver_mib: float | None
    graphs: int
    captured: int
    evicted: int

    @property
    def device_mib(self) -> float:
        return self.pool_mib if self.driver_mib is None else self.driver_mib


def _measure(context: Context) -> tuple[Figure, ...]:
    loop = _in_float64(Mlp(_LAYERS, _WIDTH, _PROGRAMS[context.backend]).loop())
    expected = result_in_numpy(loop, _STEPS)
    with context.session() as (service, session):
        first: dict[int, bytes] = {}
        _run_all(session, loop, expected, first, 1)
        service.wait_until_planned(_PLANNING_DEADLINE_S)
        turns = []
        for _ in range(_TURNS):
            _run_all(session, loop, expected, first, _RUNS)
            turns.append(_held(service, context.backend))
    if context.backend == "cuda":
        check_captured(turns[-1], len(expected))
    return figures(turns, len(expected))


def _in_float64(loop: Loop) -> Loop:
    return loop._replace(operands=Operands(*(operand.astype(np.float64) for operand in loop.operands)))


def _run_all(session: fw.Session, loop: Loop, expected: Floats, first: dict[int, bytes], runs: int) -> None:
    """Runs the loop on its first row, its first two rows, and so on, so many times each.

    `first` holds the bytes of the first result by the number of rows. Raises WrongResult if a result is wrong, or if
    its bytes are not those of the first.
    """
    state, *layers = loop.operands
    uploaded = upload(session, Operands(*layers))
    for rows in range(1, len(state) + 1):
        operands = Operands(session.array(state[:rows]), *uploaded)
        for _ in range(runs):
            result = as_fori_loop(loop, operands, _STEPS).numpy()
            if rows not in first:
                check_close(result, expected[:rows], f"the loop on {rows} rows", tolerance=2e-3)
                first[rows] = result.tobytes()
            elif result.tobytes() != first[rows]:
                raise WrongResult(f"the loop on {rows} rows gives other bytes than at first")


def _held(service: Service, backend: str) -> Held:
    stats = service.stats()
    memory, launching = stats["memory"], stats["launching"]
    pool_mib = (memory["live_bytes"] + memory["pool_bytes"]) / _MIB
    driver_mib = _driver_mib() if backend == "cuda" else None
    return Held(pool_mib, driver_mib, launching["graphs"], launching["captured"], launching["evicted"])


def _driver_mib() -> float | None:
    """Returns the used memory of the first GPU, or None if the driver's tool is not installed."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])


def check_captured(last: Held, programs: int) -> None:
    """Raises NotMeasured if fewer graphs were captured than there are programs, so that few had to be dropped."""
    if last.captured < programs:
        raise NotMeasured(f"{programs:,} programs captured {last.captured:,} graphs: too few to crowd each other out")


def figures(turns: list[Held], programs: int) -> tuple[Figure, ...]:
    """Returns the growth of device memory over the turns, and the most graphs."""
    last = turns[-1]
    return (
        Figure(
            name="programs_memory",
            what=f"{programs:,} programs in turn, {len(turns)} times: growth of device memory",
            value=last.device_mib - turns[0].device_mib,
            unit="MiB",
            notes=(
                f"of values, used and free: {last.pool_mib:.1f} MiB, growth {last.pool_mib - turns[0].pool_mib:.1f}",
            ),
            raw={"device_mib": [turn.device_mib for turn in turns], "pool_mib": [turn.pool_mib for turn in turns]},
        ),
        Figure(
            name="programs_graphs",
            what="the same: captured graphs that are kept, at most",
            value=max(turn.graphs for turn in turns),
            unit="graphs",
            notes=(f"{last.captured:,} captured, {last.evicted:,} dropped",),
            raw={"graphs": [turn.graphs for turn in turns]},
        ),
    )


MANY_PROGRAMS = Microbenchmark(("programs_memory", "programs_graphs"), _measure)
