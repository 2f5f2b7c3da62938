"""On a GPU: a persistent kernel gives the same bytes however long its threads wait before each step.

The blocks of a cluster send elements to one another. A kernel that let a thread read an element too early, or write one
too early, would give other bytes when some threads wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.compile.cuda_compiler import CudaCompiler
from fusewire_kernels.devices.base import Block, Device
from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.plan import OutputColumn, Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.programs.program import Program
from tests.kernels.loops_of_note import (
    bottleneck,
    descending,
    driven,
    gated,
    joined,
    leaky,
    normalised,
    recurrent,
    stacked,
    with_gates_together,
    with_memory,
    with_sums,
)
from tests.kernels.plan.filled_slots import fill_iterations
from tests.kernels.programs import random_inputs, starts_side_by_side
from tests.kernels.random_waits import plan_with_random_waits

cuda = pytest.importorskip("fusewire_kernels.devices.cuda.device", reason="needs CuPy", exc_type=ImportError)
pytestmark = pytest.mark.gpu

_BATCHES = (1, 4, 64)
# Of each body: they are shared out among its cases, so that other processes get the GPU too.
RUNS = int(os.environ.get("FUSEWIRE_RANDOM_WAITS_RUNS", "1000"))
WIDTH = 256
COUNTS = [(count, count // 2 + 2, 3) for count in range(3, 41)][:RUNS]  # of three rows with clusters of their own
_WITHIN_S = 240.0  # under a sanitizer a run takes a hundred times as long


class Body(NamedTuple):
    """The body of a loop: its program by rows and width, and its scalars, of which the last may change in each step.

    The input `stepped`, if any, may be another in each step.
    """

    program: Callable[[int, int], Program]
    scalars: tuple[float, ...]
    stepped: int | None = None


BODIES = {
    "recurrent": Body(recurrent, (0.5,)),
    "leaky": Body(leaky, (0.9, 0.2)),
    "driven": Body(driven, (0.8,), stepped=2),
    "gated": Body(gated, (0.7,)),
    "with_memory": Body(with_memory, (0.9,)),
    "with_gates_together": Body(with_gates_together, (0.9,)),
    "stacked": Body(stacked, (0.8,)),
    "joined": Body(joined, (0.8,)),
    "with_sums": Body(with_sums, (0.3,)),
    "normalised": Body(normalised, (0.4,)),
    "bottleneck": Body(bottleneck, (0.6,)),
    "descending": Body(lambda rows, width: descending(rows * 3, width), (0.5,)),
}


class Case(NamedTuple):
    """Rows of one launch, and the memory of each row's results."""

    table: LoopTable
    results: Sequence[Block]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    device = cuda.CudaDevice(memory_bytes=1 << 30, arena_bytes=1 << 20)
    if int(device.info.architecture.removeprefix("sm_")) < 90:
        pytest.skip("needs a device with clusters")
    yield device
    device.close()


def loaded(device: Device, plan: Plan, cache_folder: Path) -> Any:
    compiler = CudaCompiler(device.info.architecture, cache_folder)
    return device.load(plan, [compiler.compile([source]).paths[0] for source in plan.kernels])


def inputs_of_rows(device: Device, program: Program) -> list[list[Block]]:
    """The inputs of each row: its state, its weights and its shift."""
    rows = []
    for seed in range(3):
        arrays = random_inputs(program, seed)
        blocks = [device.allocate(array.nbytes) for array in arrays]
        for block, array in zip(blocks, arrays, strict=True):
            device.write(block, memoryview((array / WIDTH**0.5).tobytes()))
        rows.append(blocks)
    return rows


def last_results(
    device: Device,
    plan: Plan,
    inputs: Sequence[Sequence[int]],
    starts: Sequence[int],
    body: Body,
    counts: Sequence[int],
) -> Case:
    """Nothing moves but what is carried, and the last results are stored."""
    size_bytes, lives = state_bytes(plan), live_results(plan)
    results = [device.allocate(lives * size_bytes) for _ in counts]
    slots = np.empty((2, len(counts), len(plan.columns)), np.int64)
    for row, block in enumerate(results):
        arena = device.arena_address(plan.arena_bytes, row)
        addresses = [block.address + live * size_bytes for live in range(lives)]
        fill_iterations(SlotLayout(plan), slots[:, row], arena, inputs[row], addresses, body.scalars, starts)
    return Case(LoopTable(slots, counts, 1, 1, frozenset(), frozenset()), results)


def all_results(
    device: Device,
    plan: Plan,
    inputs: Sequence[Sequence[int]],
    starts: Sequence[int],
    body: Body,
    counts: Sequence[int],
) -> Case:
    """Each iteration has a last scalar and results of its own. A stepped input takes turns with the first input."""
    *same, last = body.scalars
    size_bytes, lives = state_bytes(plan), live_results(plan)
    results = [device.allocate(lives * count * size_bytes) for count in counts]
    slots = np.empty((counts[0], len(counts), len(plan.columns)), np.int64)
    for row, block in enumerate(results):
        arena = device.arena_address(plan.arena_bytes, row)
        numbers = np.minimum(np.arange(counts[0]), counts[row] - 1)
        addresses = [block.address + (live * counts[row] + numbers) * size_bytes for live in range(lives)]
        moving = (last * (1 - numbers / 100)).tolist()
        taken: list[Any] = [*inputs[row]]
        if body.stepped is not None:
            taken[body.stepped] = np.where(numbers % 2, taken[0], taken[body.stepped])
        fill_iterations(SlotLayout(plan), slots[:, row], arena, taken, addresses, [*same, moving], starts)
    moving_columns = np.flatnonzero((slots != slots[:1]).any(axis=(0, 1))).tolist()
    return Case(LoopTable(slots, counts, counts[0], 1, frozenset(range(lives)), frozenset(moving_columns)), results)


_CASES = (last_results, all_results)


def state_bytes(plan: Plan) -> int:
    """The size of the state in float32, from the rows and columns of the product."""
    assert plan.persistent is not None
    rows, width, *_ = plan.persistent.sizes
    return rows * width * 4


def live_results(plan: Plan) -> int:
    return sum(isinstance(column, OutputColumn) for column in plan.columns)


def run(device: Device, plan: Any, case: Case) -> list[bytes]:
    """Runs a case over memory that no earlier run has left its results in. Returns the results of each row."""
    kernels = device.persistent_kernels
    assert kernels is not None
    assert kernels.can_run(plan, case.table)
    for block in case.results:
        device.write(block, memoryview(bytes(block.size_bytes)))
    kernels.launch(plan, case.table)
    readbacks = [device.read(block, block.size_bytes) for block in case.results]
    fence = device.fence()
    waiting = threading.Thread(target=fence.wait, daemon=True)
    waiting.start()
    waiting.join(_WITHIN_S)
    assert fence.is_reached(), "the blocks of a cluster wait for one another for ever"
    return [bytes(readback.data()) for readback in readbacks]


@pytest.mark.parametrize("case_of", _CASES)
@pytest.mark.parametrize("batch", _BATCHES)
@pytest.mark.parametrize("name", BODIES)
def test_random_waits_change_no_byte_in_many_runs(
    name: str, batch: int, case_of: Any, device: Device, tmp_path: Path
) -> None:
    program = BODIES[name].program(batch, WIDTH)
    plan = build_plan(program, "cuda")
    assert plan.persistent is not None
    without, waiting = loaded(device, plan, tmp_path), loaded(device, plan_with_random_waits(plan), tmp_path)
    rows, starts = inputs_of_rows(device, program), starts_side_by_side(program)
    inputs = [[block.address for block in blocks] for blocks in rows]
    cases = [case_of(device, plan, inputs, starts, BODIES[name], counts) for counts in COUNTS]
    expected = [run(device, without, case) for case in cases]
    assert all(any(result) for results in expected for result in results)
    for number in range(-(-RUNS // (len(_BATCHES) * len(_CASES)))):
        place = number % len(cases)
        assert run(device, waiting, cases[place]) == expected[place], f"run {number} of counts {COUNTS[place]}"
    for block in [*chain(*rows), *chain(*[case.results for case in cases])]:
        device.release(block)
