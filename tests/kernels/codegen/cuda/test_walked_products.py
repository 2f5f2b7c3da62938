"""Products read windows in place with the bits of their copies, in CUDA too: run by threads, where there is g++."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.cuda.geometry import TILES, Tile
from fusewire_kernels.compile.c_compiler import Toolchain
from tests.kernels.codegen.cuda.product_on_threads import run_on_threads
from tests.kernels.codegen.persistent.cuda_on_threads import COMPILER
from tests.kernels.problems import product_problem, run, toolchain_in, walked_problem, windows
from tests.tolerances import assert_same_bytes

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

Array = npt.NDArray[Any]
_RANDOM = np.random.default_rng(8)


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("cache"))


def _matrix(dtype: str, *shape: int) -> Array:
    """Some floats are -0: whatever is added to a sum beyond its last k would change it."""
    values = _RANDOM.normal(size=shape) * 9
    values[_RANDOM.random(shape) < 0.1] = -0.0
    return values.astype(dtype)


_ONE_ROW, _SMALL, _LARGE = TILES[0], TILES[2], TILES[-2]
_CASES = [
    ("float32", _ONE_ROW, 3),
    ("float32", _SMALL, 2),
    ("float32", _LARGE, 3),
    ("float32", _LARGE, 2),
    ("float64", _LARGE, 3),
    ("int8", _SMALL, 2),
    ("int8", _ONE_ROW, 3),
]
_NAMES = [f"{dtype} in {tile.entry} with {axes} axes along k" for dtype, tile, axes in _CASES]
_IMAGES = [((2, 3, 7, 9), (3, 2), 1, 5), ((1, 9, 12, 33), (3, 3), 2, 68)]  # shape, window, stride, rows of the product


@pytest.mark.parametrize(("dtype", "tile", "inner_axes"), _CASES, ids=_NAMES)
def test_windows_have_the_bits_of_their_copies(
    dtype: str, tile: Tile, inner_axes: int, toolchain: Toolchain, tmp_path: Path
) -> None:
    for shape, window, stride, rows in _IMAGES:
        seen = windows(_matrix(dtype, *shape), window, stride)
        view = seen if inner_axes == 3 else seen.transpose(0, 4, 5, 1, 2, 3)
        inner = math.prod(view.shape[1 : 1 + inner_axes])
        a = _matrix(dtype, shape[0], 1 if tile.down == 1 else rows, inner)
        walked, copied = (
            walked_problem(a, view, inner_axes),
            product_problem(a, view.copy().reshape(shape[0], inner, -1)),
        )
        run([copied], toolchain)
        run_on_threads(walked, tile, 3, tmp_path)
        assert_same_bytes(walked.outputs[0], copied.outputs[0])
