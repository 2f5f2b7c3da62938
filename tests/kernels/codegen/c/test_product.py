"""Product kernels in C: any shape and strides, and the same bits whichever way an element is computed."""

from __future__ import annotations

import math
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.c.product import product_text
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.c_compiler import Toolchain
from fusewire_kernels.ir.kernel import ProductKernel
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.problems import Problem, product_problem, run, toolchain_in, walked_problem, windows
from tests.roundings import allowance
from tests.tolerances import assert_close, assert_same_bytes

Array = npt.NDArray[Any]
MATMUL = catalogue.BY_NAME["matmul"]
DTYPES = [dtype for dtype in dtypes.ALL if not dtype.is_boolean]
RANDOM = np.random.default_rng(2)
IMAGES = [
    ((2, 3, 9, 10), (3, 2), 1),
    ((1, 40, 12, 33), (3, 3), 2),
    ((3, 1, 7, 7), (2, 2), 1),
    ((1, 2, 40, 50), (5, 1), 1),
]
SHAPES = [(1, 1, 1), (1, 300, 70), (2, 5, 33), (7, 64, 10), (9, 257, 40), (33, 40, 65), (70, 520, 530), (3, 0, 4)]


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("cache"))


def _matrix(dtype: DType, *shape: int) -> Array:
    if dtype.is_floating:
        return RANDOM.normal(size=shape).astype(dtypes.to_numpy(dtype))
    return RANDOM.integers(0, 200, shape).astype(dtypes.to_numpy(dtype))


def _products(pairs: Iterable[tuple[Array, Array]], toolchain: Toolchain) -> list[Array]:
    problems = [product_problem(a, b) for a, b in pairs]
    run(problems, toolchain)
    return [problem.outputs[0] for problem in problems]


def _expected(a: Array, b: Array, dtype: DType) -> Array:
    """The product in the widest type of its kind, rounded once."""
    wide = np.float64 if dtype.is_floating else np.int64
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(a.astype(wide), b.astype(wide)).astype(a.dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_product_is_close_to_numpys(dtype: DType, toolchain: Toolchain) -> None:
    pairs = [(_matrix(dtype, m, k), _matrix(dtype, k, n)) for m, k, n in SHAPES]
    for (a, b), result in zip(pairs, _products(pairs, toolchain), strict=True):
        assert_close(result, _expected(a, b, dtype), MATMUL, dtype, allowance(MATMUL, (a, b), (), dtype))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.int32], ids=lambda dtype: dtype.name)
def test_strides_never_change_a_bit(dtype: DType, toolchain: Toolchain) -> None:
    for m, k, n in SHAPES:
        a, b = _matrix(dtype, m, k), _matrix(dtype, k, n)
        plain, *others = _products([(a, b), *((x, y) for x in _layouts(a) for y in _layouts(b))], toolchain)
        for other in others:
            assert_same_bytes(other, plain)


def _layouts(x: Array) -> Sequence[Array]:
    """The same matrix laid out by columns, and with gaps."""
    gaps = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
    gaps[::2, ::3] = x
    return [np.asfortranarray(x), gaps[::2, ::3]]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_row_alone_has_the_bits_it_has_among_others(dtype: DType, toolchain: Toolchain) -> None:
    a, b = _matrix(dtype, 45, 600), _matrix(dtype, 600, 139)
    together, *alone = _products([(a, b), *((a[i : i + 1], b) for i in (0, 8, 44)), (a[5:9], b)], toolchain)
    for i, row in zip((0, 8, 44), alone, strict=False):
        assert_same_bytes(row, together[i : i + 1])
    assert_same_bytes(alone[3], together[5:9])


def test_a_column_alone_has_the_bits_it_has_among_others(toolchain: Toolchain) -> None:
    a, b = _matrix(dtypes.float32, 6, 300), _matrix(dtypes.float32, 300, 75)
    together, *parts = _products([(a, b), (a, b[:, 74:]), (a, b[:, 10:31])], toolchain)
    assert_same_bytes(parts[0], together[:, 74:])
    assert_same_bytes(parts[1], together[:, 10:31])


def test_an_element_is_one_chain_of_fma_over_ascending_k(toolchain: Toolchain) -> None:
    # Products of float32 are exact in float64; sums made odd there before they become float32 round once, as fma does.
    a, b = _matrix(dtypes.float32, 2, 700), _matrix(dtypes.float32, 700, 18)
    (result,) = _products([(a, b)], toolchain)
    chain = np.zeros(result.shape, np.float32)
    for k in range(a.shape[1]):
        chain = _fma(a[:, k : k + 1], b[k : k + 1], chain)
    assert_same_bytes(result, chain)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """a · b + c of float32, rounded once: the float64 sum, made odd where it was inexact."""
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    towards_zero = (lost != 0) & ((lost < 0) == (total > 0))
    odd = (bits - towards_zero) | (lost != 0)
    return np.asarray(odd.view(np.float64).astype(np.float32))


@pytest.mark.parametrize("batches", [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (4,))])
def test_stacks_of_matrices_broadcast(batches: tuple[tuple[int, ...], tuple[int, ...]], toolchain: Toolchain) -> None:
    a, b = _matrix(dtypes.float32, *batches[0], 5, 20), _matrix(dtypes.float32, *batches[1], 20, 40)
    (result,) = _products([(a, b)], toolchain)
    wide_a, wide_b = (np.broadcast_to(x, result.shape[:-2] + x.shape[-2:]) for x in (a, b))
    places = list(np.ndindex(*result.shape[:-2]))
    alone = _products([(wide_a[place], wide_b[place]) for place in places], toolchain)
    for place, expected in zip(places, alone, strict=True):
        assert_same_bytes(result[place], expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_windows_have_the_bits_of_their_copies(dtype: DType, toolchain: Toolchain) -> None:
    """The windows are along columns, as for a convolution, and along k, as for the gradient by its kernels."""
    walked, copied = [], []
    for shape, window, stride in IMAGES:
        seen = windows(_matrix(dtype, *shape), window, stride)
        for inner_axes, view in ((3, seen), (2, seen.transpose(0, 4, 5, 1, 2, 3))):
            for rows in (1, 5, 70):
                one, other = _by_windows(dtype, rows, view, inner_axes)
                walked.append(one)
                copied.append(other)
    run([*walked, *copied], toolchain)
    for one, other in zip(walked, copied, strict=True):
        assert_same_bytes(one.outputs[0], other.outputs[0])


def _by_windows(dtype: DType, rows: int, view: Array, inner_axes: int) -> tuple[Problem, Problem]:
    """Products of matrices of so many rows by a view, and by its copy."""
    inner = math.prod(view.shape[1 : 1 + inner_axes])
    a = _matrix(dtype, view.shape[0], rows, inner)
    return walked_problem(a, view, inner_axes), product_problem(a, view.copy().reshape(view.shape[0], inner, -1))


def test_nan_and_infinity_reach_their_elements_only(toolchain: Toolchain) -> None:
    a, b = _matrix(dtypes.float32, 6, 50), _matrix(dtypes.float32, 50, 70)
    a[2, 3], b[7, 69] = np.nan, np.inf
    (result,) = _products([(a, b)], toolchain)
    assert np.isnan(result[2]).all()
    assert np.isfinite(np.delete(np.delete(result, 2, axis=0), 69, axis=1)).all()
    assert not np.isfinite(result[:, 69]).any()


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="looks at x86 instructions")
def test_a_vector_stays_whole_where_compilers_prefer_shorter_ones(toolchain: Toolchain, tmp_path: Path) -> None:
    source, assembly = tmp_path / "product.c", tmp_path / "product.s"
    source.write_text(prelude("c") + product_text(ProductKernel(dtypes.float32, 0, True)), encoding="utf-8")
    command = [toolchain.compiler, *toolchain.flags, "-march=skylake-avx512", "-S", str(source), "-o", str(assembly)]
    subprocess.run(command, check=True, timeout=60)
    text = assembly.read_text(encoding="utf-8")
    assert re.search(r"vfmadd\w+ps\b.*zmm", text)
    assert not re.search(r"vfmadd\w+ps\b.*ymm", text)
