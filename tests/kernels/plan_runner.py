"""A slow interpreter of plans, in NumPy over one simulated memory: what a plan computes, without a compiler.

Kernels are evaluated from their objects, buffers are addresses in a byte array, and rows go through a real slot table,
so columns, offsets, views and shared memory are all exercised. Memory begins as rubbish.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.build import Design, design, write
from fusewire_kernels.ir.kernel import (
    Argument,
    ArgumentKind,
    Kernel,
    LineKernel,
    LoopKernel,
    MatrixKernel,
    Node,
    ProductKernel,
    Stride,
)
from fusewire_kernels.ops.conversions import cast
from fusewire_kernels.ops.random_numbers import bits_at
from fusewire_kernels.ops.reference import twin
from fusewire_kernels.plan.plan import Donation, KernelSource, Launch, Plan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.program import Program
from tests.kernels.separate import design_separately

Array = npt.NDArray[Any]

_ALIGNMENT_BYTES = 256
_RUBBISH = 0xA5


def plan_without_text(plan: Design) -> Plan:
    """The plan, its kernels' sources left empty."""
    return write(plan, tuple((KernelSource(key, ""),) for key in plan.kernels))


def run_program(
    program: Program,
    inputs: Sequence[Array],
    scalars: Sequence[int | float] = (),
    starts: Sequence[int] = (),
    *,
    fuse: bool = True,
    for_gpu: bool = False,
    donated: Sequence[Donation] = (),
) -> list[Array]:
    """The live results of a program, by its plan. `donated` results are written over their inputs."""
    made = design(program, for_gpu=for_gpu) if fuse else design_separately(program)
    return run_plan(made, plan_without_text(made), inputs, scalars, starts, donated)


def run_plan(
    made: Design,
    plan: Plan,
    inputs: Sequence[Array],
    scalars: Sequence[int | float],
    starts: Sequence[int],
    donated: Sequence[Donation] = (),
) -> list[Array]:
    program = made.program
    memory = _Memory()
    input_addresses = [memory.add(array) for array in inputs]
    heirs = {donation.position: input_addresses[donation.input] for donation in donated}
    outputs = [program.result_spec(index) for index in program.live]
    output_addresses = [
        heirs[position] if position in heirs else memory.reserve(spec.size_bytes)
        for position, spec in enumerate(outputs)
    ]
    arena_address = memory.reserve(plan.arena_bytes)
    memory.begin()
    table = np.zeros((1, len(plan.columns)), np.int64)
    SlotLayout(plan).fill(table, 0, arena_address, input_addresses, output_addresses, scalars, starts)
    for launch in plan.launches:
        kernel = made.kernels[plan.kernels[launch.kernel].key]
        for instance in reversed(range(len(launch.instances))):
            _Instance(kernel, launch, instance, table[0], memory).run()
    return [
        memory.values(address, spec.dtype, spec.elements).reshape(spec.shape)
        for address, spec in zip(output_addresses, outputs, strict=True)
    ]


class _Memory:
    """Bytes at addresses from 256 on. Everything is reserved before `begin`."""

    def __init__(self) -> None:
        self._size_bytes = _ALIGNMENT_BYTES
        self._contents: list[tuple[int, bytes]] = []
        self._bytes = np.zeros(0, np.uint8)

    def reserve(self, size_bytes: int) -> int:
        address = self._size_bytes
        self._size_bytes += -(-max(size_bytes, 1) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        return address

    def add(self, array: Array) -> int:
        address = self.reserve(array.nbytes)
        self._contents.append((address, np.ascontiguousarray(array).tobytes()))
        return address

    def begin(self) -> None:
        self._bytes = np.full(self._size_bytes, _RUBBISH, np.uint8)
        for address, content in self._contents:
            self._bytes[address : address + len(content)] = np.frombuffer(content, np.uint8)

    def typed(self, dtype: DType) -> Array:
        return self._bytes.view(dtypes.to_numpy(dtype))

    def values(self, address: int, dtype: DType, elements: int) -> Array:
        first = address // dtype.itemsize_bytes
        return self.typed(dtype)[first : first + elements].copy()


class _Instance:
    """One instance of a launch."""

    def __init__(self, kernel: Kernel, launch: Launch, instance: int, row: npt.NDArray[np.int64], memory: _Memory):
        self._kernel, self._sizes, self._row, self._memory = kernel, list(launch.sizes), row, memory
        self._refs = launch.instances[instance]

    def run(self) -> None:
        if isinstance(self._kernel, ProductKernel):
            self._run_product(self._kernel)
        elif isinstance(self._kernel, LineKernel):
            self._run_lines(self._kernel)
        elif isinstance(self._kernel, MatrixKernel):
            self._run_matrices(self._kernel)
        else:
            self._run_loops(self._kernel)

    def _first(self, argument: int, dtype: DType) -> int:
        column, byte_offset = self._refs[argument]
        address = int(self._row[column]) + byte_offset
        assert address % dtype.itemsize_bytes == 0
        return address // dtype.itemsize_bytes

    def _run_product(self, kernel: ProductKernel) -> None:
        rank = kernel.batch_rank
        sizes = self._sizes
        batch, (rows, columns, inner) = sizes[:rank], sizes[rank : rank + 3]
        strides_a, rest = sizes[rank + 3 : 2 * rank + 5], sizes[2 * rank + 5 :]
        assert strides_a[-2] == 1 or not kernel.a_is_transposed
        memory = self._memory.typed(kernel.dtype)
        shape_a, shape_b = [*batch, rows, inner], [*batch, inner, columns]
        a = memory[np.broadcast_to(self._first(0, kernel.dtype) + _walk(shape_a, strides_a), shape_a)]
        places, rest = self._places_of_right(kernel, shape_b, rest)
        b = memory[self._first(1, kernel.dtype) + places]
        result = twin(catalogue.BY_NAME["matmul"])(np, [a, b], (), ())
        if kernel.epilogue is not None:
            self._run_epilogue(kernel, kernel.epilogue, result, [*batch, rows, columns], rest)
            return
        assert not rest
        out = self._first(2, kernel.dtype)
        memory[out : out + result.size] = result.reshape(-1)

    def _places_of_right(self, kernel: ProductKernel, shape: list[int], rest: list[int]) -> tuple[Array, list[int]]:
        """Where the elements of the right operand of a product lie, and the sizes behind those of the operand."""
        rank = kernel.batch_rank
        of_batch, rest = rest[:rank], rest[rank:]
        if kernel.walks is None:
            assert rest[1] == 1 or not kernel.b_is_unit
            return np.broadcast_to(_walk(shape, [*of_batch, *rest[:2]]), shape), rest[2:]
        extents, strides = [*shape[:rank]], of_batch
        for axes in kernel.walks:
            extents, strides, rest = [*extents, *rest[:axes]], [*strides, *rest[axes : 2 * axes]], rest[2 * axes :]
        return np.broadcast_to(_walk(extents, strides), extents).reshape(shape), rest

    def _run_lines(self, kernel: LineKernel) -> None:
        before, length, behind, run, segments = self._sizes
        shape = (before, length, behind)
        if kernel.reduces_segments:
            self._run_segments(kernel, shape, segments)
            return
        *read, result = [
            self._memory.typed(dtype)[self._first(number, dtype) :][: before * length * behind].reshape(shape)
            for number, dtype in enumerate(kernel.argument_dtypes[: 2 + kernel.body.startswith("merge")])
        ]
        body, _, suffix = kernel.body.partition("_")
        if not kernel.sorts:
            result[...] = twin(catalogue.BY_NAME[f"cumulative_{body}"])(np, read[:1], (1,), ())
            return
        piece = run if body == "argsort" else 2 * run
        for begin in range(0, length, max(piece, 1)):
            part = read[0][:, begin : begin + piece]
            result[:, begin : begin + piece] = begin + twin(catalogue.BY_NAME["argsort"])(
                np, [part], (1, bool(suffix)), ()
            )

    def _run_segments(self, kernel: LineKernel, shape: tuple[int, int, int], segments: int) -> None:
        before, length, behind = shape
        shapes = (shape, (length,), (before, segments, behind))
        data, places, result = [
            self._memory.typed(dtype)[self._first(number, dtype) :][: np.prod(each)].reshape(each)
            for number, (dtype, each) in enumerate(zip(kernel.argument_dtypes, shapes, strict=True))
        ]
        result[...] = twin(catalogue.BY_NAME[kernel.body])(np, [data, places], (1, segments), ())

    def _run_matrices(self, kernel: MatrixKernel) -> None:
        count, rows, columns, others, is_upper = self._sizes
        op = catalogue.BY_NAME[kernel.body]
        flags = {"upper": bool(is_upper), "complete": others == rows}
        attributes = tuple([flags[attribute.name] for attribute in op.attributes])
        shapes = ((count, rows, columns), *[(count, rows, others)] * (op.least_operands - 1))
        *operands, result = [
            self._memory.typed(kernel.dtype)[self._first(number, kernel.dtype) :][: np.prod(shape)].reshape(shape)
            for number, shape in enumerate((*shapes, op.shape_rule(shapes, attributes)))
        ]
        result[...] = twin(op)(np, operands, attributes, ())

    def _run_epilogue(
        self, kernel: ProductKernel, epilogue: LoopKernel, product: Array, extents: list[int], rest: list[int]
    ) -> None:
        """Computes an epilogue at all points of the product. `rest` are the sizes behind those of the product."""
        arrays = [number for number, argument in enumerate(kernel.arguments) if argument.strides]
        moves = {number: [rest.pop(0) for _ in extents] for number in arrays}
        where = {
            number: self._first(2 + number, kernel.arguments[number].dtype) + _walk(extents, moves[number])
            for number in arrays
        }
        values: list[Any] = [product]
        for number, argument in enumerate(epilogue.inputs[1:]):
            if argument.strides:
                assert _strides(argument, rest) == moves[number][-2:]
                values.append(self._memory.typed(argument.dtype)[where[number]])
            else:
                values.append(self._scalar(2 + number, argument.dtype).reshape((1,) * len(extents)))
        for node in epilogue.nodes:
            values.append(self._evaluate(node, values, {}, extents, epilogue))
        for number, (value, argument) in enumerate(epilogue.stores, len(epilogue.inputs) - 1):
            assert _strides(argument, rest) == moves[number][-2:]
            self._memory.typed(argument.dtype)[where[number]] = values[value]
        assert not rest

    def _run_loops(self, kernel: LoopKernel) -> None:
        rank = kernel.rank + kernel.has_inner
        extents = self._sizes[:rank]
        rest = self._sizes[rank:]
        values: list[Any] = []
        gathered: dict[int, tuple[Array, int, int, DType]] = {}
        for number, argument in enumerate(kernel.inputs):
            if argument.kind is ArgumentKind.SCALAR:
                values.append(self._scalar(number, argument.dtype))
                continue
            where = self._first(number, argument.dtype) + _walk(extents, _strides(argument, rest))
            if argument.kind is ArgumentKind.GATHERED:
                gathered[number] = (where, rest.pop(0), rest.pop(0), argument.dtype)
                values.append(None)
            else:
                values.append(self._memory.typed(argument.dtype)[where])
        for node in kernel.nodes:
            values.append(self._evaluate(node, values, gathered, extents, kernel))
        for number, (value, argument) in enumerate(kernel.stores):
            where = self._first(len(kernel.inputs) + number, argument.dtype) + _walk(extents, _strides(argument, rest))
            stored = values[value]
            is_inner_store = kernel.has_inner and argument.strides[-1] is not Stride.ZERO
            assert stored.ndim == len(extents)
            assert is_inner_store or not kernel.has_inner or stored.shape[-1] == 1 or extents[-1] == 1
            target = where if is_inner_store or not kernel.has_inner else where[..., :1]
            self._memory.typed(argument.dtype)[target] = stored
        assert not rest

    def _scalar(self, number: int, dtype: DType) -> Array:
        column, byte_offset = self._refs[number]
        assert byte_offset == 0
        raw = self._row[column : column + 1].tobytes()[: dtype.itemsize_bytes]
        rank = self._kernel.rank + self._kernel.has_inner if isinstance(self._kernel, LoopKernel) else 0
        return np.frombuffer(raw, dtypes.to_numpy(dtype)).reshape((1,) * rank)

    def _evaluate(
        self,
        node: Node,
        values: list[Any],
        gathered: dict[int, tuple[Array, int, int, DType]],
        extents: list[int],
        kernel: LoopKernel,
    ) -> Array:
        operands = [values[number] for number in node.operands]
        if node.op == "index":
            assert isinstance(node.detail, int)
            assert node.is_inner == (node.detail == kernel.rank)
            shape = [1] * len(extents)
            shape[node.detail] = extents[node.detail]
            return np.arange(extents[node.detail], dtype=np.int64).reshape(shape)
        if node.op == "gather":
            assert isinstance(node.detail, int)
            where, extent, stride, dtype = gathered[node.detail]
            picked = where + np.clip(operands[0], 0, extent - 1) * stride
            return np.asarray(self._memory.typed(dtype)[picked])
        if node.op == "reduce":
            return self._reduce(node, operands[0], extents)
        if node.op == "cast":
            result = cast(np, operands[0], node.operand_dtype, node.dtype)
            if node.operand_dtype is node.dtype and node.is_inner:
                result = np.broadcast_to(result, (*result.shape[:-1], extents[-1]))
            return np.asarray(result)
        expected = dtypes.to_numpy(node.operand_dtype)
        assert all(o.dtype == expected for o in operands[1 if node.op == "where" else 0 :])
        if node.op == "random_bits":  # whose op has positions in place of the first operand
            return np.asarray(bits_at(*operands))
        result = np.asarray(twin(catalogue.BY_NAME[node.op])(np, operands, (), ()))
        assert result.dtype == dtypes.to_numpy(node.dtype)
        return result

    def _reduce(self, node: Node, operand: Array, extents: list[int]) -> Array:
        assert isinstance(node.detail, str)
        assert operand.shape[-1] in (1, extents[-1])  # what is repeated along the inner dimension has a stride of 0
        rank = len(extents)
        whole = np.broadcast_to(operand, extents) if operand.size else operand
        return np.asarray(twin(catalogue.BY_NAME[node.detail])(np, [whole], ((rank - 1,), True), ()))


def _strides(argument: Argument, rest: list[int]) -> list[int]:
    """The element strides of an array argument; those known at run time only are taken from `rest`."""
    known = {Stride.ZERO: 0, Stride.UNIT: 1}
    return [known[kind] if kind in known else rest.pop(0) for kind in argument.strides]


def _walk(extents: Sequence[int], strides: Sequence[int]) -> npt.NDArray[np.int64]:
    """The element offset at every point; dimensions without a move have length 1."""
    total = np.zeros((1,) * len(extents), np.int64)
    for axis, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
        shape = [1] * len(extents)
        shape[axis] = extent if stride else 1
        total = total + (np.arange(extent if stride else 1, dtype=np.int64) * stride).reshape(shape)
    return total
