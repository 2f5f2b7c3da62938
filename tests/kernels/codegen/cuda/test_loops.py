"""Reductions on the GPU have the bits of the CPU, whether rows stay in registers or are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.compile.c_compiler import CCompiler
from fusewire_kernels.compile.cuda_compiler import CudaCompiler
from fusewire_kernels.devices.base import Device
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.ops.order import CHUNK
from fusewire_protos.programs.program import Program
from tests.kernels.launching import RowSlots, launch_rows
from tests.kernels.problems import toolchain_in
from tests.kernels.programs import Writer, random_inputs

pytest.importorskip("cupy", reason="needs CuPy", exc_type=ImportError)
cuda: Any = pytest.importorskip("fusewire_kernels.devices.cuda.device", reason="needs CuPy", exc_type=ImportError)
pytestmark = pytest.mark.gpu

Array = npt.NDArray[Any]
_MEMORY_BYTES, _ARENA_BYTES = 1 << 30, 1 << 24
_NARROW = ((8193, 1), (8194, 33), (8203, 256), (9000, 8))
_FEW = ((40_000, 1), (40_000, 3), (32_769, 8), (40_000, 9))
_ROWS = (
    *_NARROW,
    *_FEW,
    (9, 1),
    (9, 33),
    (9, 257),
    (5, CHUNK - 1),
    (3, CHUNK + 1),
    (2, 16 * CHUNK),
    (2, 16 * CHUNK + 1),
    (2, 40 * CHUNK + 3),
)


class _Side:
    """A device and the compiler of its dialect."""

    def __init__(self, device: Device, compiler: CCompiler | CudaCompiler) -> None:
        self.device, self.compiler = device, compiler

    def results(self, program: Program, inputs: Sequence[Array]) -> list[bytes]:
        device = self.device
        dialect = device.info.dialect
        assert dialect is not None
        plan = build_plan(program, dialect)
        loaded = device.load(plan, self.compiler.compile(plan.kernels).paths)
        blocks = [device.allocate(x.nbytes) for x in inputs]
        for block, x in zip(blocks, inputs, strict=True):
            device.write(block, memoryview(x.tobytes()))
        sizes = [program.result_spec(index).size_bytes for index in program.live]
        results = [device.allocate(size_bytes) for size_bytes in sizes]
        read, written = [[block.address for block in each] for each in (blocks, results)]
        scalars = [1e-5] * len(program.scalars)
        launch_rows(device, loaded, [RowSlots(read, written, scalars)])
        readbacks = [device.read(block, size) for block, size in zip(results, sizes, strict=True)]
        device.fence().wait()
        found = [bytes(readback.data()) for readback in readbacks]
        for block in (*blocks, *results):
            device.release(block)
        return found


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Side]:
    device = cuda.CudaDevice(memory_bytes=_MEMORY_BYTES, arena_bytes=_ARENA_BYTES)
    yield _Side(device, CudaCompiler(device.info.architecture, tmp_path_factory.mktemp("kernels")))
    device.close()


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Side]:
    toolchain = toolchain_in(tmp_path_factory.mktemp("cache"))
    device = CpuDevice(memory_bytes=_MEMORY_BYTES, arena_bytes=_ARENA_BYTES, find=lambda: toolchain)
    yield _Side(device, CCompiler(lambda: toolchain))
    device.close()


def _normalised(w: Writer, x: int, epsilon: int) -> tuple[int, ...]:
    return (w.tanh(w.layer_norm(x, epsilon, axes=(1,))),)


def _several(w: Writer, x: int, _: int) -> tuple[int, ...]:
    return w.softmax(x, axes=(1,)), w.argmax(x, axes=(1,), keepdims=False), w.sum(x, axes=(1,), keepdims=True)


def _scaled(w: Writer, x: int, epsilon: int) -> tuple[int, ...]:
    return (w.multiply(x, w.rsqrt(w.add(w.mean(w.square(x), axes=(1,), keepdims=True), epsilon))),)


def _of_quotients(w: Writer, x: int, divisor: int) -> tuple[int, ...]:
    return (w.softmax(w.divide(x, divisor), axes=(1,)),)


@pytest.mark.parametrize("shape", _ROWS)
@pytest.mark.parametrize("make", [_normalised, _several, _scaled, _of_quotients])
def test_rows_of_every_length_have_the_bits_of_the_cpu(
    make: Callable[[Writer, int, int], tuple[int, ...]], shape: tuple[int, int], gpu: _Side, cpu: _Side
) -> None:
    writer = Writer()
    x, epsilon = writer.input(*shape), writer.scalar()
    program = writer.program(*make(writer, x, epsilon))
    inputs = random_inputs(program)
    assert gpu.results(program, inputs) == cpu.results(program, inputs)


@pytest.mark.parametrize(
    ("extent", "columns"),
    [
        *product([1, 2, 3, 7, 16, 31, 32, 33, 100], [100, 40_000]),
        *product([CHUNK + 1, 70_000], [1, 3, 17]),
    ],
)
def test_columns_of_every_length_have_the_bits_of_the_cpu(extent: int, columns: int, gpu: _Side, cpu: _Side) -> None:
    writer = Writer()
    x = writer.input(extent, columns)
    found = (
        writer.softmax(x, axes=(0,)),
        writer.argmin(x, axes=(0,), keepdims=False),
        writer.sum(x, axes=(0,), keepdims=True),
    )
    program = writer.program(*found)
    inputs = random_inputs(program)
    assert gpu.results(program, inputs) == cpu.results(program, inputs)


@pytest.mark.parametrize("width", [100, 2 * CHUNK, 2 * CHUNK + 5])
def test_quotients_by_a_value_of_the_row_have_the_bits_of_the_cpu(width: int, gpu: _Side, cpu: _Side) -> None:
    """Divisors and dividends of all magnitudes, each with zeros, infinities and NaN."""
    writer = Writer()
    x = writer.input(512, width)
    program = writer.program(writer.divide(x, writer.max(x, axes=(1,), keepdims=True)))
    random = np.random.default_rng(4)
    with np.errstate(over="ignore"):
        numbers = np.ldexp(random.uniform(1, 2, (512, width)), random.integers(-160, 130, (512, width)))
        bounded = np.minimum(numbers, np.ldexp(1.0, np.arange(-160, 352))[:, np.newaxis])
        dividends = np.where(random.random(bounded.shape) < 0.3, -numbers, bounded).astype(np.float32)
    dividends[random.random(dividends.shape) < 0.01] = 0
    dividends[::100, 0] = np.nan
    assert gpu.results(program, [dividends]) == cpu.results(program, [dividends])


@pytest.mark.parametrize("elements", [31, 64 * CHUNK, 64 * CHUNK + 1, 70 * CHUNK, 1 << 20, 10**6])
@pytest.mark.parametrize("name", ["sum", "max", "argmax"])
def test_a_reduction_of_everything_has_the_bits_of_the_cpu(name: str, elements: int, gpu: _Side, cpu: _Side) -> None:
    writer = Writer()
    x = writer.tanh(writer.input(elements))
    program = writer.program(writer.op(name, x, attributes=((0,), False)))
    inputs = random_inputs(program)
    assert gpu.results(program, inputs) == cpu.results(program, inputs)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_functions_with_a_division_of_their_own_have_the_bits_of_the_cpu(name: str, gpu: _Side, cpu: _Side) -> None:
    """Every 64th float: all exponents, infinities and NaN among them."""
    writer = Writer()
    program = writer.program(writer.op(name, writer.input(1 << 26)))
    inputs = [np.arange(0, 1 << 32, 64, dtype=np.uint32).view(np.float32)]
    assert gpu.results(program, inputs) == cpu.results(program, inputs)
