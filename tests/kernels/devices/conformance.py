"""What every device that computes must do: one set of tests, taken on by a class for each device.

The module of a subclass brings the fixture `machine`. Values are small integers in float32, so that no order of
summation matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.devices.base import Block, Device, Staged
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, Kernel, LoopKernel, Node, ProductKernel, Store, Stride
from fusewire_kernels.plan.plan import (
    ARENA_ALIGNMENT_BYTES,
    ARENA_COLUMN,
    ArenaColumn,
    Column,
    Cost,
    InputColumn,
    KernelSource,
    Launch,
    OperandRef,
    OutputColumn,
    Plan,
    ScalarColumn,
)
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from tests.kernels.launching import launch_slots
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]

MEMORY_BYTES = 1 << 27
ARENA_BYTES = 1 << 20

_VECTOR = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.UNIT,))
_SCALAR = Argument(ArgumentKind.SCALAR, dtypes.float32, ())
_ARENA, _X, _Y, _SCALE, _OUT = range(5)
_COLUMNS = (ArenaColumn(), InputColumn(0), InputColumn(1), ScalarColumn(0, dtypes.float32), OutputColumn(0))


class Machine(NamedTuple):
    """A device with MEMORY_BYTES and ARENA_BYTES, and the compiler of its dialect: sources in, paths out."""

    device: Device
    compile: Callable[[Sequence[KernelSource]], Sequence[str]]


class DeviceConformance:
    """Tests of one `machine`."""

    # ---- memory ----

    @pytest.mark.parametrize("size_bytes", [0, 1, 63, 4096, 1_000_003])
    def test_a_block_is_aligned_and_large_enough(self, machine: Machine, size_bytes: int) -> None:
        block = machine.device.allocate(size_bytes)
        assert block.size_bytes >= size_bytes
        assert block.address % 64 == 0

    def test_more_than_the_device_has_is_refused_and_less_still_given(self, machine: Machine) -> None:
        with pytest.raises(OutOfMemory, match=str(MEMORY_BYTES + 1)):
            machine.device.allocate(MEMORY_BYTES + 1)
        assert machine.device.allocate(MEMORY_BYTES // 2).size_bytes >= MEMORY_BYTES // 2

    def test_released_memory_is_given_again(self, machine: Machine) -> None:
        for _ in range(8):
            machine.device.release(machine.device.allocate(MEMORY_BYTES // 2))

    @pytest.mark.parametrize("size_bytes", [64, 192, 1000])
    def test_blocks_in_use_share_no_bytes(self, machine: Machine, size_bytes: int) -> None:
        blocks = [machine.device.allocate(size_bytes) for _ in range(300)]
        for number, block in enumerate(blocks):
            machine.device.write(block, memoryview(bytes([number % 256]) * size_bytes))
        readbacks = [machine.device.read(block, size_bytes) for block in blocks]
        machine.device.fence().wait()
        for number, readback in enumerate(readbacks):
            assert bytes(readback.data()) == bytes([number % 256]) * size_bytes

    def test_released_memory_counts_as_kept(self, machine: Machine) -> None:
        machine.device.release(machine.device.allocate(1 << 20))
        assert machine.device.pool_bytes() >= 1 << 20

    # ---- transfers ----

    @pytest.mark.parametrize("size_bytes", [0, 1, 1000, 1 << 18, (1 << 24) + 12345])
    def test_what_is_written_is_read(self, machine: Machine, size_bytes: int) -> None:
        data = np.random.default_rng(1).bytes(size_bytes)
        assert _read(machine.device, _filled(machine.device, data), size_bytes) == data

    def test_the_source_of_a_write_may_change_at_once(self, machine: Machine) -> None:
        source = bytearray(b"before" * 1000)
        block = _filled(machine.device, source)
        source[:] = bytes(len(source))
        assert _read(machine.device, block, len(source)) == b"before" * 1000

    @pytest.mark.parametrize("size_bytes", [0, 1, 1000, (1 << 24) + 12345])
    def test_what_is_staged_becomes_a_block(self, machine: Machine, size_bytes: int) -> None:
        data = np.random.default_rng(1).bytes(size_bytes)
        block = machine.device.put(_staged(machine.device, data))
        assert (block.size_bytes >= size_bytes, block.address % 64) == (True, 0)
        assert _read(machine.device, block, size_bytes) == data

    def test_what_is_staged_later_leaves_a_block_alone(self, machine: Machine) -> None:
        device = machine.device
        block = device.put(_staged(device, b"first" * 1000))
        _staged(device, b"later" * 1000)
        assert _read(device, block, 5000) == b"first" * 1000

    def test_staged_blocks_are_released_as_others_are(self, machine: Machine) -> None:
        for _ in range(8):
            machine.device.release(machine.device.put(machine.device.stage(MEMORY_BYTES // 2)))

    def test_staged_memory_counts_once_it_is_a_block(self, machine: Machine) -> None:
        device = machine.device
        staged = [device.stage(MEMORY_BYTES // 2) for _ in range(3)]
        block = device.put(staged[0])
        device.put(staged[1])
        with pytest.raises(OutOfMemory, match=str(MEMORY_BYTES // 2)):
            device.put(staged[2])
        device.release(block)
        assert device.put(staged[2]).size_bytes >= MEMORY_BYTES // 2

    def test_a_read_sees_what_was_there_when_it_was_asked_for(self, machine: Machine) -> None:
        device = machine.device
        block = _filled(device, b"old")
        readback = device.read(block, 3)
        device.release(block)
        _filled(device, b"new")
        device.fence().wait()
        assert bytes(readback.data()) == b"old"

    @pytest.mark.parametrize("size_bytes", [0, 3, 5000])
    def test_a_part_of_a_block_may_be_read(self, machine: Machine, size_bytes: int) -> None:
        device, data = machine.device, bytes(range(250)) * 40
        readback = device.read(_filled(device, data), size_bytes, 7)
        device.fence().wait()
        assert bytes(readback.data()) == data[7 : 7 + size_bytes]

    @pytest.mark.parametrize("size_bytes", [1, 5000, (1 << 21) + 7])
    def test_parts_of_a_block_are_read_to_staged_memory(self, machine: Machine, size_bytes: int) -> None:
        device, data = machine.device, np.random.default_rng(2).bytes(size_bytes)
        block, staged, middle = _filled(device, data), device.stage(size_bytes), size_bytes // 3
        readbacks = [device.read_part(block, staged, part) for part in (slice(middle, size_bytes), slice(0, middle))]
        device.fence().wait()
        for readback in readbacks:
            readback.data()
        assert bytes(staged.memory) == data

    def test_read_bytes_outlive_the_readback(self, machine: Machine) -> None:
        device = machine.device
        views = [device.read(_filled(device, bytes([number]) * 100), 100).data() for number in range(8)]
        device.fence().wait()
        assert [bytes(view) for view in views] == [bytes([number]) * 100 for number in range(8)]

    # ---- plans ----

    @pytest.mark.parametrize("rows", [1, 7, 64])
    def test_two_launches_with_instances_run_for_every_row(self, machine: Machine, rows: int) -> None:
        length = 1000
        device, loaded = machine.device, _load_scaled_sum(machine, length)
        arena_bytes = loaded.plan.arena_bytes
        assert rows <= device.rows_that_fit(arena_bytes)
        x, y = _integers((rows, length), seed=2), _integers((rows, length), seed=3)
        scales = np.arange(1, rows + 1, dtype=np.float32)
        inputs = [[_filled(device, array[row].tobytes()) for row in range(rows)] for array in (x, y)]
        outputs = [device.allocate(length * 4) for _ in range(rows)]
        table = np.zeros((rows, len(loaded.plan.columns)), np.int64)
        table[:, _ARENA] = [device.arena_address(arena_bytes, row) for row in range(rows)]
        table[:, _SCALE] = scales.view(np.int32)
        for column, blocks in zip((_X, _Y, _OUT), (*inputs, outputs), strict=True):
            table[:, column] = [block.address for block in blocks]
        launch_slots(device, loaded, table)
        results = [_floats(device, block, (length,)) for block in outputs]
        np.testing.assert_array_equal(results, (x + y) * scales[:, None])

    def test_a_plan_runs_again_over_other_buffers(self, machine: Machine) -> None:
        device, loaded = machine.device, _load_one(machine, _DOUBLING, (10,), arity=2)
        inputs = [_filled(device, np.full(10, number, np.float32).tobytes()) for number in range(100)]
        outputs = [device.allocate(40) for _ in inputs]
        for source, target in zip(inputs, outputs, strict=True):
            table = np.array([[[0, source.address, target.address]]], np.int64)
            device.launch(loaded, table, (1,))
            table[:] = 0
        results = [_floats(device, block, (10,)) for block in outputs]
        np.testing.assert_array_equal(results, np.repeat(np.arange(100)[:, None] * 2, 10, axis=1))

    def test_no_rows_and_no_points_are_no_work(self, machine: Machine) -> None:
        loaded = _load_one(machine, _DOUBLING, (0,), arity=2)
        launch_slots(machine.device, loaded, np.zeros((0, 3)))
        launch_slots(machine.device, loaded, np.zeros((1, 3)))
        machine.device.fence().wait()

    def test_a_plan_without_launches_is_no_work(self, machine: Machine) -> None:
        loaded = _load(machine, [], [], [ArenaColumn()])
        launch_slots(machine.device, loaded, np.zeros((1, 1)))
        machine.device.fence().wait()

    def test_more_rows_than_a_grid_holds(self, machine: Machine) -> None:
        device, rows = machine.device, 70_000
        x = _integers((rows,), seed=4)
        source, target = _filled(device, x.tobytes()), device.allocate(x.nbytes)
        table = np.zeros((rows, 3), np.int64)
        table[:, 1] = source.address + 4 * np.arange(rows)
        table[:, 2] = target.address + 4 * np.arange(rows)
        launch_slots(device, _load_one(machine, _DOUBLING, (1,), arity=2), table)
        np.testing.assert_array_equal(_floats(device, target, (rows,)), x * 2)

    def test_more_instances_than_a_grid_holds(self, machine: Machine) -> None:
        device, count = machine.device, 70_000
        x = _integers((count,), seed=5)
        source, target = _filled(device, x.tobytes()), device.allocate(x.nbytes)
        instances = tuple((OperandRef(1, 4 * number), OperandRef(2, 4 * number)) for number in range(count))
        loaded = _load(machine, [_DOUBLING], [Launch(0, (1,), instances)], _inputs(2))
        launch_slots(device, loaded, [[0, source.address, target.address]])
        np.testing.assert_array_equal(_floats(device, target, (count,)), x * 2)

    def test_the_launches_of_a_long_plan_run_in_order(self, machine: Machine) -> None:
        device, count = machine.device, 3000
        block = _filled(device, np.zeros(1, np.float32).tobytes())
        scale = int(np.float32(1).view(np.int32))
        launches = [Launch(0, (1,), ((OperandRef(1, 0), OperandRef(2, 0), OperandRef(1, 0)),))] * count
        loaded = _load(machine, [_ADDING_SCALAR], launches, _inputs(2))
        launch_slots(device, loaded, [[0, block.address, scale]])
        assert _floats(device, block, (1,)) == [count]

    @pytest.mark.parametrize("counts", [(1,), (3, 1), (1000, 500, 500, 7), (300,) * 5])
    def test_each_row_of_a_loop_runs_its_iterations_in_order(self, machine: Machine, counts: tuple[int, ...]) -> None:
        device = machine.device
        launches = [Launch(0, (1,), ((OperandRef(1, 0), OperandRef(2, 0), OperandRef(1, 0)),))]
        loaded = _load(machine, [_ADDING_SCALAR], launches, _inputs(2))
        blocks = [_filled(device, np.zeros(1, np.float32).tobytes()) for _ in counts]
        table = np.zeros((counts[0], len(counts), 3), np.int64)
        table[:, :, 1] = [block.address for block in blocks]
        # Each iteration adds its number, so that an iteration that is left out or comes twice changes the sum.
        table[:, :, 2] = np.arange(counts[0], dtype=np.float32).view(np.int32).reshape(-1, 1)
        for _ in range(4):
            device.launch(loaded, table, counts)
        assert [_floats(device, block, (1,))[0] for block in blocks] == [4 * sum(range(count)) for count in counts]

    def test_loops_of_many_numbers_of_rows_run_one_after_another(self, machine: Machine) -> None:
        device = machine.device
        launches = [Launch(0, (1,), ((OperandRef(1, 0), OperandRef(2, 0), OperandRef(1, 0)),))]
        loaded = _load(machine, [_ADDING_SCALAR], launches, _inputs(2))
        one = int(np.float32(1).view(np.int32))
        blocks = [_filled(device, np.zeros(1, np.float32).tobytes()) for _ in range(80)]
        for rows in (*range(1, 81), *range(80, 0, -1)):
            table = np.zeros((130, rows, 3), np.int64)
            table[:, :, 1] = [block.address for block in blocks[:rows]]
            table[:, :, 2] = one
            device.launch(loaded, table, (130,) * rows)
        assert [_floats(device, block, (1,))[0] for block in blocks] == [260 * (80 - number) for number in range(80)]

    @pytest.mark.parametrize("length", [1, 100, 40_000])
    def test_a_sum_takes_all_elements(self, machine: Machine, length: int) -> None:
        x = _integers((5, length), seed=6)
        result = _run(machine, _SUMMING, (5, length, length), [x], (5,))
        np.testing.assert_array_equal(result, x.sum(axis=1))

    @pytest.mark.parametrize("shape", [(1, 3, 2), (20, 16, 40), (70, 33, 200), (700, 40, 900)])
    def test_a_product_of_any_size(self, machine: Machine, shape: tuple[int, int, int]) -> None:
        height, depth, width = shape
        a, b = _integers((height, depth), seed=7), _integers((depth, width), seed=8)
        sizes = (height, width, depth, depth, 1, width, 1)
        np.testing.assert_array_equal(_run(machine, _PRODUCT, sizes, [a, b], (height, width)), a @ b)

    # ---- arenas ----

    def test_an_arena_larger_than_the_range_fits_no_row(self, machine: Machine) -> None:
        assert machine.device.rows_that_fit(ARENA_BYTES + 1) == 0
        with pytest.raises(OutOfMemory, match=r"device\.arena_bytes"):
            machine.device.arena_address(ARENA_BYTES + 1, 0)

    def test_arenas_are_aligned(self, machine: Machine) -> None:
        addresses = [machine.device.arena_address(1000, row) for row in range(4)]
        assert all(address % ARENA_ALIGNMENT_BYTES == addresses[0] % ARENA_ALIGNMENT_BYTES for address in addresses)
        assert addresses[0] % 64 == 0

    # ---- library ops ----

    def test_the_array_library_computes_over_blocks_after_earlier_work(self, machine: Machine) -> None:
        device = machine.device
        matrices = np.stack([np.diag([2.0, 4.0]), np.zeros((2, 2))]).astype(np.float32)
        block, result = _filled(device, b"\0" * matrices.nbytes), device.allocate(matrices.nbytes)
        device.write(block, memoryview(matrices.tobytes()))
        call = OneOpCall(BY_NAME["inv"], (Spec(dtypes.float32, matrices.shape),), ())
        device.library_twin(call)([block.address], result.address, ())
        readback = device.read(result, matrices.nbytes)
        device.fence().wait()
        found = np.frombuffer(bytes(readback.data()), np.float32).reshape(matrices.shape)
        np.testing.assert_array_equal(found[0], np.diag([0.5, 0.25]))
        assert_same_bytes(found[1], np.full((2, 2), np.nan, np.float32))

    def test_the_array_library_transforms_lines(self, machine: Machine) -> None:
        device = machine.device
        real, imaginary = np.random.default_rng(0).standard_normal((2, 3, 100)).astype(np.float32)
        blocks = [_filled(device, each.tobytes()) for each in (real, imaginary)]
        result = device.allocate(2 * real.nbytes)
        call = OneOpCall(BY_NAME["fft"], (Spec(dtypes.float32, real.shape),) * 2, (False,))
        device.library_twin(call)([block.address for block in blocks], result.address, ())
        readback = device.read(result, 2 * real.nbytes)
        device.fence().wait()
        found = np.frombuffer(bytes(readback.data()), np.float32).reshape(3, 200)
        expected = np.fft.fft(real + np.complex64(1j) * imaginary)
        np.testing.assert_allclose(found, np.concatenate([expected.real, expected.imag], 1), rtol=1e-4, atol=1e-4)

    # ---- fences ----

    def test_a_fence_waited_for_is_reached_and_stays_so(self, machine: Machine) -> None:
        _filled(machine.device, bytes(1 << 20))
        fence = machine.device.fence()
        fence.wait()
        assert fence.is_reached()
        fence.wait()


def _pointwise(op: str, first: Argument, second: Argument) -> LoopKernel:
    node = Node(op, (0, 1), dtypes.float32, dtypes.float32, is_inner=True)
    return LoopKernel(1, False, (first, second), (node,), (Store(2, _VECTOR),))


def _load_scaled_sum(machine: Machine, length: int) -> Any:
    """x · scale + y · scale, the two products as instances of one launch, in the arena."""
    offset = length * 4
    scaled_x, scaled_y = OperandRef(ARENA_COLUMN, 0), OperandRef(ARENA_COLUMN, offset)
    scale = OperandRef(_SCALE, 0)
    products = ((OperandRef(_X, 0), scale, scaled_x), (OperandRef(_Y, 0), scale, scaled_y))
    launches = [
        Launch(0, (length,), products),
        Launch(1, (length,), ((scaled_x, scaled_y, OperandRef(_OUT, 0)),)),
    ]
    return _load(machine, [_SCALING, _ADDING], launches, _COLUMNS, arena_bytes=2 * offset)


class _ScaledSum(NamedTuple):
    """The operands of `_load_scaled_sum` for one row, with a scale of 3."""

    x: Block
    y: Block
    output: Block
    expected: Array

    def table(self, arena_address: int) -> Array:
        table = np.zeros((1, len(_COLUMNS)), np.int64)
        table[0, [_ARENA, _X, _Y, _OUT]] = arena_address, self.x.address, self.y.address, self.output.address
        table[0, _SCALE] = np.float32(3).view(np.int32)
        return table


def _scaled_sum(device: Device, seed: int, length: int = 1000) -> _ScaledSum:
    x, y = _integers((length,), seed), _integers((length,), seed + 100)
    output = device.allocate(length * 4)
    return _ScaledSum(_filled(device, x.tobytes()), _filled(device, y.tobytes()), output, (x + y) * 3)


def _load_one(machine: Machine, kernel: Kernel, sizes: tuple[int, ...], arity: int) -> Any:
    """One launch of one instance whose operands are the columns behind the arena's."""
    instance = tuple(OperandRef(column + 1, 0) for column in range(arity))
    return _load(machine, [kernel], [Launch(0, sizes, (instance,))], _inputs(arity))


def _load(
    machine: Machine,
    kernels: Sequence[Kernel],
    launches: Sequence[Launch],
    columns: Sequence[Column],
    arena_bytes: int = 0,
) -> Any:
    dialect = machine.device.info.dialect
    assert dialect is not None
    sources = [generate(kernel, dialect) for kernel in kernels]
    first = list(accumulate(map(len, sources), initial=0))
    placed = tuple(launch._replace(kernel=first[launch.kernel]) for launch in launches)
    flat = tuple(chain.from_iterable(sources))
    plan = Plan(flat, placed, tuple(columns), arena_bytes, (), Cost(0, 0))
    return machine.device.load(plan, machine.compile(flat))


def _inputs(count: int) -> tuple[Column, ...]:
    return (ArenaColumn(), *(InputColumn(number) for number in range(count)))


def _run(
    machine: Machine, kernel: Kernel, sizes: tuple[int, ...], inputs: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """A kernel's float32 result."""
    device = machine.device
    blocks = [_filled(device, array.tobytes()) for array in inputs]
    blocks.append(device.allocate(math.prod(shape) * 4))
    loaded = _load_one(machine, kernel, sizes, arity=len(blocks))
    launch_slots(device, loaded, [[0, *(block.address for block in blocks)]])
    return _floats(device, blocks[-1], shape)


def _integers(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def _staged(device: Device, data: bytes) -> Staged:
    staged = device.stage(len(data))
    staged.memory[:] = data
    return staged


def _filled(device: Device, data: bytes | bytearray) -> Block:
    block = device.allocate(len(data))
    device.write(block, memoryview(data))
    return block


def _read(device: Device, block: Block, size_bytes: int) -> bytes:
    readback = device.read(block, size_bytes)
    device.fence().wait()
    return bytes(readback.data())


def _floats(device: Device, block: Block, shape: tuple[int, ...]) -> Array:
    return np.frombuffer(_read(device, block, math.prod(shape) * 4), np.float32).reshape(shape)


_DOUBLING = LoopKernel(
    1, False, (_VECTOR,), (Node("add", (0, 0), dtypes.float32, dtypes.float32, is_inner=True),), (Store(1, _VECTOR),)
)
_SCALING = _pointwise("multiply", _VECTOR, _SCALAR)
_ADDING = _pointwise("add", _VECTOR, _VECTOR)
_ADDING_SCALAR = _pointwise("add", _VECTOR, _SCALAR)
_SUMMING = LoopKernel(
    1,
    True,
    (Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.ANY, Stride.UNIT)),),
    (Node("reduce", (0,), dtypes.float32, dtypes.float32, is_inner=False, detail="sum"),),
    (Store(1, Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.UNIT, Stride.ZERO))),),
)
_PRODUCT = ProductKernel(dtypes.float32, batch_rank=0, b_is_unit=True)
