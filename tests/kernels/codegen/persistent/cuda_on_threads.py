"""Runs persistent cluster kernels on this machine: their CUDA text as C++, and each of their threads as a thread."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.plan.plan import InputColumn, OutputColumn, Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.plan.filled_slots import fill_iterations

COMPILER = shutil.which("g++")
_HEADER = Path(__file__).with_suffix(".h")
_WITHIN_S = 120
# The functions of prelude and templates whose bodies are in assembler, and what stands for them.
_BODIES = {
    "fw_rank_in_cluster": "return threads_rank_in_cluster();",
    "fw_shared_address": "return threads_shared_address(place);",
    "fw_address_in_block": "return threads_address_in_block(address, rank);",
    "fw_meet_in_cluster": "threads_meet_in_cluster();",
    "fw_arrive_in_cluster": "threads_arrive_in_cluster();",
    "fw_await_cluster": "threads_await_cluster();",
    "fw_make_barrier": "threads_make_barrier(barrier);",
    "fw_show_barriers": "threads_show_barriers();",
    "fw_expect_bytes": "threads_expect_bytes(barrier, bytes);",
    "fw_wait_for_bytes": "threads_wait_for_bytes(barrier, parity);",
    "fw_send": "threads_send(place, value, barrier);",
    "fw_begin_copy": "memcpy(to, from, bytes);",
    "fw_end_copies": "",
    "fw_wait_for_copies": "",
    "fw_in_register": "return value;",
    "fw_opaque_i32": "return x;",
    "fw_opaque_i64": "return x;",
    "fw_divide_fraction_f32": "return a / b;",
    "fw_wait_for_kernels_before": "",
    "fw_let_next_kernel_start": "",
}
_MAIN = """
extern "C" void run(int blocks, int blocks_of_cluster, int rows, const int64_t *sizes, const fw_operand *operands,
                    const fw_loop *loop) {{
    run_clusters(blocks, blocks_of_cluster, rows, [=] {{ {kernel}(sizes, operands, *loop); }});
}}
"""

Array = npt.NDArray[Any]


class _Loop(ctypes.Structure):
    """The struct `fw_loop` of generated kernels."""

    _fields_ = (
        *[(name, ctypes.c_int64) for name in ("slots", "counts", "rows", "columns", "first", "entries", "tail")],
        ("moving", ctypes.c_uint64),
        ("each", ctypes.c_uint64),
    )


class ClusterKernel:
    """The persistent kernel of a plan, compiled in a folder."""

    def __init__(self, program: Program, plan: Plan, folder: Path) -> None:
        assert plan.persistent is not None
        assert plan.persistent.clusters
        self._program = program
        self._plan = plan
        source = plan.kernels[plan.persistent.kernel]
        text = with_bodies(f"{prelude('cuda')}\n{source.text}", {})
        text = text.replace('extern "C" __global__', "__global__")
        shared = "float4 *fw_shared_memory = (float4 *)cluster->blocks[own_rank].shared;"
        text = text.replace("extern __shared__ float4 fw_shared_memory[];", shared)
        written, library = folder / f"{source.key}.cpp", folder / f"{source.key}.so"
        written.write_text(f'#include "{_HEADER}"\n{text}\n{_MAIN.format(kernel=source.key)}', encoding="utf-8")
        options = ("-std=c++20", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-pthread")
        subprocess.run([str(COMPILER), *options, "-o", library, written], check=True, timeout=_WITHIN_S)
        self._library = ctypes.CDLL(str(library))

    def results(
        self, inputs: Sequence[Array], scalars: Sequence[float | list[float]], starts: Sequence[int | Array], count: int
    ) -> list[Array]:
        """Runs a loop of `count` iterations. Returns each live result, with an axis of iterations in front.

        Of an array that is changed in place, this axis has the last iteration only.
        """
        plan, launch = self._plan, self._plan.persistent
        assert launch is not None
        specs = [self._program.result_spec(index) for index in self._program.live]
        results = [np.zeros((count, *spec.shape), dtypes.to_numpy(spec.dtype)) for spec in specs]
        for number, position in self._updates():
            results[position] = inputs[number][np.newaxis].copy()
        slots = np.empty((count, len(plan.columns)), np.int64)
        arena = np.zeros(plan.arena_bytes + 1, np.uint8)
        numbers = np.arange(count)
        addresses = [result.ctypes.data + numbers % len(result) * result[0].nbytes for result in results]
        at = [array.ctypes.data for array in inputs]
        fill_iterations(SlotLayout(plan), slots, arena.ctypes.data, at, addresses, scalars, starts)
        moving = [bool((slots[:, operand.column] != slots[0, operand.column]).any()) for operand in launch.operands]
        reads = len(launch.operands) - launch.outputs
        again = [index for index in range(reads) if moving[index] and index not in launch.carried]
        counts = np.array([count], np.int64)
        loop = _Loop(slots.ctypes.data, counts.ctypes.data, 1, len(plan.columns), count, count, 1)
        loop.moving, loop.each = sum(1 << index for index in again), (1 << launch.outputs) - 1
        operands, sizes = np.array(launch.operands, np.int64), np.array(launch.sizes, np.int64)
        blocks_of_cluster = launch.blocks // launch.clusters
        pointers = (ctypes.c_void_p(sizes.ctypes.data), ctypes.c_void_p(operands.ctypes.data), ctypes.byref(loop))
        self._library.run(launch.blocks, blocks_of_cluster, 1, *pointers)
        return results

    def _updates(self) -> Iterator[tuple[int, int]]:
        """Yields the input and the position of each result that is copied before the first iteration."""
        columns, launch = self._plan.columns, self._plan.persistent
        for array in launch.updated if launch is not None else ():
            source, result = columns[array.input_column], columns[array.output_column]
            assert isinstance(source, InputColumn)
            assert isinstance(result, OutputColumn)
            yield source.input, result.position


def with_bodies(text: str, more: Mapping[str, str]) -> str:
    """Returns a CUDA text in which the functions of `_BODIES`, and more, have other bodies."""
    for name, body in {**_BODIES, **more}.items():
        head = re.search(rf"FW_FN [\w ]+\b{name}\([^)]*\) \{{", text)
        if head is not None:  # else the text does without it
            end = text.index("\n}", head.end())
            text = f"{text[: head.end()]} {body} {text[end:]}"
    return text
