"""Products on the GPU have the bits of the CPU, whichever tile computes them and however their operands lie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.cuda import geometry
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile.c_compiler import Toolchain
from fusewire_kernels.compile.cuda_compiler import CudaCompiler
from fusewire_kernels.devices.base import Device
from fusewire_kernels.ir.kernel import ProductKernel
from fusewire_kernels.plan.plan import Cost, InputColumn, Launch, OperandRef, OutputColumn, Plan
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.launching import launch_slots
from tests.kernels.problems import Problem, product_problem, run, toolchain_in, walked_problem, windows
from tests.tolerances import assert_same_bytes

pytest.importorskip("cupy", reason="needs CuPy", exc_type=ImportError)
cuda: Any = pytest.importorskip("fusewire_kernels.devices.cuda.device", reason="needs CuPy", exc_type=ImportError)
pytestmark = pytest.mark.gpu

Array = npt.NDArray[Any]
DTYPES = [dtype for dtype in dtypes.ALL if not dtype.is_boolean]
RANDOM = np.random.default_rng(6)
IMAGES = [((2, 3, 9, 10), (3, 2), 1), ((1, 17, 12, 33), (3, 3), 2), ((3, 1, 7, 7), (2, 2), 1)]  # windows, their stride
SHAPES = [(1, 1, 1), (3, 0, 4), (1, 256, 256), (9, 257, 40), (70, 130, 132), (65, 64, 300)]  # rows, inner, columns


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory, device: Device) -> CudaCompiler:
    return CudaCompiler(device.info.architecture, tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    device = cuda.CudaDevice(memory_bytes=1 << 28, arena_bytes=1 << 20)
    yield device
    device.close()


@pytest.mark.parametrize("tile", geometry.TILES, ids=lambda tile: tile.entry)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_tile_has_the_bits_of_the_cpu(
    dtype: DType,
    tile: geometry.Tile,
    device: Device,
    compiler: CudaCompiler,
    toolchain: Toolchain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(geometry, "_grid_of_product", lambda *_: geometry.Grid(f"_{tile.entry}", 3, tile.threads))
    problems = [product_problem(a, b) for shape in SHAPES for a, b in _pairs(dtype, *shape)]
    problems = [problem for problem in problems if tile in _tiles(problem)]
    run(problems, toolchain)
    for problem in problems:
        assert_same_bytes(_on(device, compiler, problem), problem.outputs[0])


@pytest.mark.parametrize("tile", geometry.TILES, ids=lambda tile: tile.entry)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_windows_have_the_bits_of_the_cpu(
    dtype: DType,
    tile: geometry.Tile,
    device: Device,
    compiler: CudaCompiler,
    toolchain: Toolchain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(geometry, "_grid_of_product", lambda *_: geometry.Grid(f"_{tile.entry}", 3, tile.threads))
    problems = []
    for shape, window, stride in IMAGES:
        seen = windows(_matrix(dtype, *shape), window, stride)
        for inner_axes, view in ((3, seen), (2, seen.transpose(0, 4, 5, 1, 2, 3))):
            inner = math.prod(view.shape[1 : 1 + inner_axes])
            problems += [walked_problem(_matrix(dtype, shape[0], rows, inner), view, inner_axes) for rows in (1, 9, 70)]
    problems = [problem for problem in problems if tile in _tiles(problem)]
    run(problems, toolchain)
    for problem in problems:
        assert_same_bytes(_on(device, compiler, problem), problem.outputs[0])


def test_a_stack_of_matrices_has_the_bits_of_the_cpu(
    device: Device, compiler: CudaCompiler, toolchain: Toolchain
) -> None:
    a, b = _matrix(dtypes.float32, 2, 3, 20, 40), _matrix(dtypes.float32, 3, 40, 36)
    problems = [product_problem(x, y) for x in _layouts(a) for y in _layouts(b)]
    run(problems, toolchain)
    for problem in problems:
        assert_same_bytes(_on(device, compiler, problem), problem.outputs[0])


def _tiles(problem: Problem) -> tuple[geometry.Tile, ...]:
    assert isinstance(problem.kernel, ProductKernel)
    return geometry.tiles_of(problem.kernel)


def _pairs(dtype: DType, rows: int, inner: int, columns: int) -> Iterator[tuple[Array, Array]]:
    a, b = _matrix(dtype, rows, inner), _matrix(dtype, inner, columns)
    for x in _layouts(a):
        for y in _layouts(b):
            yield x, y


def _matrix(dtype: DType, *shape: int) -> Array:
    """A tenth of the floats are -0: whatever is added to a sum beyond its last k would change it."""
    if not dtype.is_floating:
        return RANDOM.integers(0, 200, shape).astype(dtypes.to_numpy(dtype))
    values = RANDOM.normal(size=shape)
    values[RANDOM.random(shape) < 0.1] = -0.0
    return values.astype(dtypes.to_numpy(dtype))


def _layouts(x: Array) -> Iterator[Array]:
    """The same values dense, turned, with gaps, and within wider lines that begin at an odd element."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    gaps = np.zeros((*x.shape[:-2], x.shape[-2] * 2, x.shape[-1] * 3), x.dtype)
    gaps[..., ::2, ::3] = x
    yield gaps[..., ::2, ::3]
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 4), x.dtype)
    wide[..., 1:-3] = x
    yield wide[..., 1:-3]


def _on(device: Device, compiler: CudaCompiler, problem: Problem) -> Array:
    """The result of a product, from operands at the addresses and strides that they have on the host."""
    (out,) = problem.outputs
    arrays = [x for x in problem.inputs if isinstance(x, np.ndarray)]
    wholes = [x if x.base is None else np.asarray(x.base) for x in arrays]
    offsets = [x.ctypes.data - whole.ctypes.data for x, whole in zip(arrays, wholes, strict=True)]
    blocks = [device.allocate(whole.nbytes) for whole in wholes]
    for block, whole in zip(blocks, wholes, strict=True):
        device.write(block, memoryview(whole.tobytes()))
    result = device.allocate(out.nbytes)
    sources = generate(problem.kernel, "cuda")
    instance = (*(OperandRef(column, offset) for column, offset in enumerate(offsets)), OperandRef(2, 0))
    columns = (InputColumn(0), InputColumn(1), OutputColumn(0))
    plan = Plan(sources, (Launch(0, problem.sizes, (instance,)),), columns, 0, (), Cost(0, 0))
    loaded = device.load(plan, compiler.compile(sources).paths)
    launch_slots(device, loaded, [[*(block.address for block in blocks), result.address]])
    readback = device.read(result, out.nbytes)
    device.fence().wait()
    for block in (*blocks, result):
        device.release(block)
    return np.frombuffer(readback.data(), out.dtype).reshape(out.shape)
