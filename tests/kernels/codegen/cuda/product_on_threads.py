"""Runs product kernels on this machine: their CUDA text as C++, and each thread of a block as a thread."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

from fusewire_kernels.codegen.cuda.geometry import Tile
from fusewire_kernels.codegen.cuda.product import cuda_product_text
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.ir.kernel import ProductKernel
from tests.kernels.codegen.persistent.cuda_on_threads import COMPILER, with_bodies
from tests.kernels.problems import Problem

_HEADER = Path(__file__).with_suffix(".h")
_WITHIN_S = 120
_BODIES = {
    "fw_read_now": "return *address;",
    "fw_meet_in_block": "meet_in_block();",
    "fw_begin_copy": "begin_copy(to, from, bytes);",
    "fw_begin_copy_or_zero": "begin_copy(to, is_copied ? from : nullptr, bytes);",
    "fw_end_copies": "end_copies();",
    "fw_wait_for_copies": "wait_for_copies(lists);",
}
_HINT = re.compile(r'asm volatile\("" : [^;]*;')  # which tells the compiler something, and does nothing
_MAIN = """
extern "C" bool run(int blocks, int threads, const int64_t *sizes, int count, const int64_t *slots) {{
    fw_values values = {{}};
    memcpy(values.sizes, sizes, count * sizeof *sizes);
    for (int n = 0; n < 3; n++) values.operands[n] = {{n, 0}};
    run_blocks(blocks, threads, [=] {{ {kernel}(values, nullptr, nullptr, slots, 3); }});
    return has_awaited_copies;
}}
"""


def run_on_threads(problem: Problem, tile: Tile, blocks: int, folder: Path) -> None:
    """Computes a product by blocks that are threads, with a tile. Compiles it in a folder.

    Asserts that no copy to a block's memory is still under way when the memory is used for something else.
    """
    assert isinstance(problem.kernel, ProductKernel)
    text = f"{prelude('cuda')}\n{cuda_product_text(problem.kernel, tile)}"
    text = _HINT.sub(";", with_bodies(text, _BODIES)).replace('extern "C" __global__', "__global__")
    key = f"{problem.kernel.key}_{tile.entry}"
    written, library = folder / f"{key}.cpp", folder / f"{key}.so"
    if not library.exists():
        written.write_text(f'#include "{_HEADER}"\n{text}\n{_MAIN.format(kernel=key)}', encoding="utf-8")
        options = ("-std=c++20", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-pthread")
        subprocess.run([str(COMPILER), *options, "-o", library, written], check=True, timeout=_WITHIN_S)
    sizes = np.array(problem.sizes, np.int64)
    arrays = [each for each in (*problem.inputs, *problem.outputs) if isinstance(each, np.ndarray)]
    slots = np.array([each.ctypes.data for each in arrays], np.int64)
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (sizes, slots)]
    has_awaited_copies = ctypes.CDLL(str(library)).run
    has_awaited_copies.restype = ctypes.c_bool
    assert has_awaited_copies(blocks, tile.threads, pointers[0], len(sizes), pointers[1])
