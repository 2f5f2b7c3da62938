"""Launches in pieces: those that take long have them, and whatever a piece takes, the bytes are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire_kernels.build import build_plan, design
from fusewire_kernels.compile.c_compiler import Toolchain, compile_kernels
from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.fusion import slicing as divide
from fusewire_kernels.ops.order import CHUNK
from fusewire_kernels.ops.reference import twin
from fusewire_kernels.plan.plan import Division, Launch, OperandRef, Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos import dtypes
from fusewire_protos.catalogue import Op
from fusewire_protos.program import Program
from tests import strategies
from tests.kernels import plan_runner
from tests.kernels.divided import divided_finely
from tests.kernels.plan_runner import plan_without_text, run_plan
from tests.kernels.problems import toolchain_in
from tests.kernels.programs import Writer, random_inputs, random_program

Array = npt.NDArray[Any]

_FUZZING = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def pieces_of(launch: Launch) -> Iterator[Launch]:
    """A launch for each piece."""
    division = launch.division
    if division is None:
        yield launch
        return
    extent = launch.sizes[division.dimension]
    for first in range(0, extent, division.steps):
        sizes = [*launch.sizes]
        sizes[division.dimension] = min(division.steps, extent - first)
        yield Launch(
            launch.kernel, tuple(sizes), tuple(_moved(instance, division, first) for instance in launch.instances)
        )


def _moved(instance: Sequence[OperandRef], division: Division, steps: int) -> tuple[OperandRef, ...]:
    return tuple(
        OperandRef(column, byte_offset + steps * move_bytes)
        for (column, byte_offset), move_bytes in zip(instance, division.moves_bytes, strict=True)
    )


def _twin_in_order(op: Op) -> Callable[..., Array]:
    """The twin of an op; of a product one whose bits, as those of kernels, do not depend on how many rows there are."""
    return _product if op.name == "matmul" else twin(op)


def _product(_: object, operands: Sequence[Array], *__: object) -> Array:
    a, b = operands
    terms = (a[..., k, np.newaxis] * b[..., np.newaxis, k, :] for k in range(a.shape[-1]))
    zeros = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)
    total: Array = sum(terms, zeros)
    return total


def assert_pieces_mean_the_same(
    program: Program, inputs: Sequence[Array], scalars: Sequence[int | float], starts: Sequence[int]
) -> None:
    made = design(program)
    with divided_finely():
        whole = plan_without_text(made)
    divided = replace(whole, launches=tuple(piece for launch in whole.launches for piece in pieces_of(launch)))
    with np.errstate(all="ignore"), mock.patch.object(plan_runner, "twin", _twin_in_order):
        for donated in ((), *[(donation,) for donation in whole.donations]):
            one, other = (run_plan(made, plan, inputs, scalars, starts, donated) for plan in (whole, divided))
            assert [array.tobytes() for array in one] == [array.tobytes() for array in other]


@_FUZZING
@given(st.integers(0, 2**32))
def test_pieces_of_random_programs_mean_the_same(seed: int) -> None:
    program, scalars, starts = random_program(seed)
    assert_pieces_mean_the_same(program, random_inputs(program, seed), scalars, starts)


@_FUZZING
@given(strategies.programs())
def test_pieces_of_programs_of_all_ops_and_dtypes_mean_the_same(work: strategies.Work) -> None:
    assert_pieces_mean_the_same(work.program, work.inputs, work.scalars, work.starts)


def _tanh(*shape: int) -> Program:
    writer = Writer()
    return writer.program(writer.tanh(writer.input(*shape)))


def _division(program: Program) -> Division | None:
    (launch,) = plan_without_text(design(program)).launches
    return launch.division


def test_a_short_launch_has_no_pieces() -> None:
    assert _division(_tanh(1000)) is None


def test_the_pieces_of_a_long_launch_take_whole_vectors_and_as_long_as_is_meant() -> None:
    division = _division(_tanh(1 << 22))
    assert division is not None
    assert division.steps % divide.VECTORS == 0
    assert division.moves_bytes == (4, 4)
    assert 30 < (1 << 22) / division.steps < 60


def test_what_broadcasts_along_the_first_dimension_does_not_move() -> None:
    writer = Writer()
    x, b = writer.input(4096, 1024), writer.input(1024)
    division = _division(writer.program(writer.add(x, b)))
    assert division is not None
    assert division.dimension == 0
    assert division.moves_bytes == (4096, 0, 4096)


@pytest.mark.parametrize(("rows", "dimension"), [(1, 0), (3, 1)])
def test_few_long_rows_are_divided_along_themselves(rows: int, dimension: int) -> None:
    writer = Writer()
    x, b = writer.input(rows, 1 << 22), writer.input(1 << 22)
    division = _division(writer.program(writer.add(x, b)))
    assert division is not None
    assert division.dimension == dimension, "so few pieces would each take longer than is meant"
    assert division.moves_bytes == (4, 4, 4)
    assert division.steps % divide.VECTORS == 0


def test_a_kernel_that_asks_where_along_the_dimension_it_is_has_no_pieces() -> None:
    writer = Writer()
    start, step = writer.scalar(), writer.scalar()
    program = writer.program(writer.arange(start, step, length=64, dtype=dtypes.float32.code))
    with divided_finely():
        assert _division(program) is None


def test_it_has_pieces_along_another_dimension() -> None:
    writer = Writer()
    x, start, step = writer.input(64, 3), writer.scalar(), writer.scalar()
    rows = writer.reshape(writer.arange(start, step, length=64, dtype=dtypes.float32.code), shape=(64, 1))
    with divided_finely():
        division = _division(writer.program(writer.multiply(x, rows)))
    assert division is not None
    assert (division.dimension, division.steps) == (1, 1)


def _sum(*shape: int, axis: int) -> Program:
    writer = Writer()
    return writer.program(writer.sum(writer.input(*shape), axes=(axis,), keepdims=False))


def test_a_reduction_of_few_long_rows_is_divided_by_row() -> None:
    division = _division(_sum(16, 1 << 20, axis=1))
    assert division == Division(0, 1, (4 << 20, 4))


def test_a_reduction_of_everything_is_divided_by_chunk() -> None:
    first, last = plan_without_text(design(_sum(1 << 23, axis=0))).launches
    assert first.division is not None
    assert first.division.moves_bytes == (4 * CHUNK, 4)
    assert last.division is None


def test_a_reduction_of_columns_is_divided_by_whole_vectors_of_them() -> None:
    division = _division(_sum(1 << 14, 256, axis=0))
    assert division == Division(0, divide.VECTORS, (4, 4))
    assert _division(_sum(1 << 18, divide.VECTORS, axis=0)) is None


def _matmul(a: tuple[int, ...], b: tuple[int, ...]) -> Program:
    writer = Writer()
    return writer.program(writer.matmul(writer.input(*a), writer.input(*b)))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1024, 512), (512, 256), Division(0, 128, (4 * 512, 0, 4 * 256))),
        ((30, 256, 512), (30, 512, 256), Division(0, 1, (4 * 256 * 512, 4 * 512 * 256, 4 * 256 * 256))),
        ((30, 256, 512), (512, 256), Division(0, 128, (4 * 512, 0, 4 * 256))),
        ((256, 512), (30, 512, 256), Division(0, 1, (0, 4 * 512 * 256, 4 * 256 * 256))),
        ((20, 1, 64, 512), (1, 30, 512, 256), Division(0, 1, (4 * 64 * 512, 0, 30 * 4 * 64 * 256))),
        ((1, 8192, 64), (1, 64, 64), Division(0, 1024, (4 * 64, 0, 4 * 64))),
        ((64, 64), (64, 64), None),
    ],
)
def test_a_long_product_is_divided_by_its_batch_or_else_by_its_rows(
    a: tuple[int, ...], b: tuple[int, ...], expected: Division | None
) -> None:
    assert _division(_matmul(a, b)) == expected


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("axis", [0, 1])
def test_compiled_pieces_give_the_bytes_of_whole_launches(dtype: dtypes.DType, axis: int, toolchain: Toolchain) -> None:
    writer = Writer()
    x, b = writer.input(70, 130, dtype=dtype), writer.input(130, dtype=dtype)
    soft = writer.softmax(writer.tanh(writer.add(x, b)), axes=(axis,))
    shifted = writer.transpose(writer.exp(soft), permutation=(1, 0))
    program = writer.program(soft, shifted, writer.sum(shifted, axes=(axis,), keepdims=False))
    _assert_slices_give_the_bytes_of_whole_launches(program, toolchain)


@pytest.mark.parametrize(
    "dtype", [dtypes.float32, dtypes.float16, dtypes.float64, dtypes.int32, dtypes.uint8], ids=lambda dtype: dtype.name
)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((70, 300), (300, 41)),
        ((9, 5, 33), (9, 33, 18)),
        ((9, 5, 33), (33, 18)),
        ((5, 33), (9, 33, 18)),
        ((3, 1, 5, 33), (1, 4, 33, 18)),
    ],
    ids=str,
)
def test_compiled_pieces_of_products_give_the_bytes_of_whole_launches(
    dtype: dtypes.DType, a: tuple[int, ...], b: tuple[int, ...], toolchain: Toolchain
) -> None:
    writer = Writer()
    x, y = writer.input(*a, dtype=dtype), writer.input(*b, dtype=dtype)
    turned = (*range(len(a) - 2), len(a) - 1, len(a) - 2)
    other = writer.input(*[a[axis] for axis in turned], dtype=dtype)
    program = writer.program(writer.matmul(x, y), writer.matmul(writer.transpose(other, permutation=turned), y))
    _assert_slices_give_the_bytes_of_whole_launches(program, toolchain)


def _assert_slices_give_the_bytes_of_whole_launches(program: Program, toolchain: Toolchain) -> None:
    with divided_finely():
        plan = build_plan(program, "c")
    assert any(launch.division is not None for launch in plan.launches)
    device = CpuDevice(find=lambda: toolchain)
    loaded = device.load(plan, compile_kernels(plan.kernels, toolchain))
    inputs = [_block(device, array) for array in random_inputs(program, seed=3)]
    whole, sliced = (_Outputs(device, program) for _ in range(2))
    device.launch(loaded, whole.table(plan, device.arena_address(plan.arena_bytes, 0), inputs))
    assert device.in_slices is not None
    table = sliced.table(plan, device.in_slices.arena_address(plan.arena_bytes), inputs)
    under_way, slices = device.in_slices.begin(loaded, table[0]), 1
    while not under_way.go_on(0):
        slices += 1
    assert slices == sum(sum(len(piece.instances) for piece in pieces_of(launch)) for launch in plan.launches)
    assert sliced.read() == whole.read()
    device.close()


class _Outputs:
    """Buffers for a program's results."""

    def __init__(self, device: CpuDevice, program: Program) -> None:
        self._device = device
        self._sizes_bytes = [program.result_spec(index).size_bytes for index in program.live]
        self._blocks = [device.allocate(size_bytes) for size_bytes in self._sizes_bytes]

    def table(self, plan: Plan, arena_address: int, inputs: Sequence[Block]) -> npt.NDArray[np.int64]:
        table = np.zeros((1, len(plan.columns)), np.int64)
        input_addresses, output_addresses = ([block.address for block in blocks] for blocks in (inputs, self._blocks))
        SlotLayout(plan).fill(table[0], arena_address, input_addresses, output_addresses, (), ())
        return table

    def read(self) -> list[bytes]:
        sizes = zip(self._blocks, self._sizes_bytes, strict=True)
        return [bytes(self._device.read(block, size_bytes).data()) for block, size_bytes in sizes]


def _block(device: CpuDevice, array: Array) -> Block:
    block = device.allocate(array.nbytes)
    device.write(block, memoryview(array.tobytes()))
    return block
