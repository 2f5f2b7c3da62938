"""Kernels with the arrays they run on, built from NumPy views, and one translation unit to run many of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile.c_compiler import Toolchain, compile_kernels, find_compiler
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, Kernel, LoopKernel, Node, ProductKernel, Store, Stride
from fusewire_kernels.plan.plan import ArenaColumn, Cost, Launch, OperandRef, Plan
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.launching import launch_slots

Array = npt.NDArray[Any]


class Scalar(NamedTuple):
    """A scalar input of a kernel."""

    value: Any
    dtype: DType


class Gathered(NamedTuple):
    """An input of which the body chooses a position along `axis`; `walked` broadcasts what is left."""

    array: Array
    axis: int
    walked: Array  # the element at position 0 of the axis, for every point


class Problem(NamedTuple):
    """A kernel, its sizes and its operands. `outputs` are written in place."""

    kernel: Kernel
    sizes: tuple[int, ...]
    inputs: tuple[Array | Scalar, ...]
    outputs: tuple[Array, ...]


def loop_problem(
    dims: Sequence[int],
    inputs: Sequence[Array | Scalar | Gathered],
    nodes: Sequence[Node],
    outputs: Sequence[tuple[int, Array]],
    *,
    has_inner: bool = False,
) -> Problem:
    """A loop kernel over `dims` (the inner one last). Arrays are broadcast to `dims`; an output is (value, array), and
    has extent 1 along the inner dimension if it is an outer one.
    """
    sizes = list(dims)
    arguments = [_argument(given, tuple(dims), sizes) for given in inputs]
    stores = [Store(value, _argument(array, tuple(dims), sizes)) for value, array in outputs]
    rank = len(dims) - has_inner
    kernel = LoopKernel(rank, has_inner, tuple(arguments), tuple(nodes), tuple(stores))
    operands = tuple(given.array if isinstance(given, Gathered) else given for given in inputs)
    return Problem(kernel, tuple(sizes), operands, tuple(array for _, array in outputs))


def product_problem(a: Array, b: Array) -> Problem:
    """The product of two stacks of matrices, into a new array."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    wide_a, wide_b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    strides = [stride // a.itemsize for stride in (*wide_a.strides, *wide_b.strides)]
    is_unit = strides[-1] == 1
    is_transposed = wide_a.strides[-2] == a.itemsize != wide_a.strides[-1]
    along_a, along_b = -2 if is_transposed else -1, -1 if is_unit else -2
    is_in_fours = _is_in_fours(wide_a, along_a) and _is_in_fours(wide_b, along_b)
    kernel = ProductKernel(dtypes.from_numpy(a.dtype), len(batch), is_unit, is_transposed, is_in_fours)
    sizes = (*batch, a.shape[-2], b.shape[-1], a.shape[-1], *strides)
    return Problem(kernel, sizes, (a, b), (out,))


def windows(x: Array, window: tuple[int, int], stride: int) -> Array:
    """The view [batch, channels, *window, *places] of an array [batch, channels, rows, columns]."""
    places = [(dim - extent) // stride + 1 for dim, extent in zip(x.shape[2:], window, strict=True)]
    strides = (*x.strides, *[stride * each for each in x.strides[2:]])
    return np.ndarray((*x.shape[:2], *window, *places), x.dtype, x, strides=strides)


def walked_problem(a: Array, b: Array, inner_axes: int) -> Problem:
    """The product of matrices and a view, whose axes are those of the batch, so many along k, and those of columns."""
    rank = a.ndim - 2
    inner, columns = (range(rank, rank + inner_axes), range(rank + inner_axes, b.ndim))
    out = np.empty((*a.shape[:-1], prod(b.shape[axis] for axis in columns)), a.dtype)
    strides = [stride // b.itemsize for stride in b.strides]
    is_unit = b.strides[-1] == b.itemsize
    is_transposed = a.strides[-2] == a.itemsize != a.strides[-1]
    walks = (len(inner), len(columns))
    is_in_fours = _is_in_fours(a, -2 if is_transposed else -1)
    kernel = ProductKernel(dtypes.from_numpy(a.dtype), rank, is_unit, is_transposed, is_in_fours, walks=walks)
    walked = [
        n for axes in (inner, columns) for of_view in (b.shape, strides) for n in (of_view[axis] for axis in axes)
    ]
    of_a = [stride // a.itemsize for stride in a.strides]
    sizes = (*a.shape[:-1], out.shape[-1], a.shape[-1], *of_a, *strides[:rank], *walked)
    return Problem(kernel, sizes, (a, b), (out,))


def _is_in_fours(x: Array, axis: int) -> bool:
    """Whether four neighbours along an axis lie side by side. The array is a view of one that begins at a block."""
    strides = [stride // x.itemsize for stride in x.strides]
    along = strides.pop(axis)
    whole = x
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    offset = (x.ctypes.data - whole.ctypes.data) // x.itemsize
    return along == 1 and not any(distance % 4 for distance in (x.shape[axis], offset, *strides))


def node(op: str, operands: tuple[int, ...], dtype: DType, **more: Any) -> Node:
    """A node whose operands have the dtype of its result unless `operand_dtype` says otherwise."""
    is_inner = more.get("is_inner", op != "reduce")
    return Node(op, operands, more.get("operand_dtype", dtype), dtype, is_inner, more.get("detail"))


def run(problems: Sequence[Problem], toolchain: Toolchain) -> None:
    """Compiles all kernels together and runs each problem once on the CPU."""
    sources = [generate(problem.kernel, "c")[0] for problem in problems]
    binaries = compile_kernels(sources, toolchain)
    device = CpuDevice(find=lambda: toolchain)
    for problem, source, binary in zip(problems, sources, binaries, strict=True):
        operands = (*problem.inputs, *problem.outputs)
        instance = tuple(OperandRef(column + 1, 0) for column in range(len(operands)))
        columns = (ArenaColumn(),) * (len(operands) + 1)
        launches = (Launch(0, problem.sizes, (instance,)),)
        plan = Plan((source,), launches, columns, 0, (), Cost(0, 0))
        launch_slots(device, device.load(plan, [binary]), [[0, *map(_slot, operands)]])
    device.close()


def toolchain_in(folder: Path) -> Toolchain:
    """The machine's C compiler with a cache in `folder`; skips the test without one."""
    toolchain = find_compiler(folder)
    if toolchain is None:
        pytest.skip("no C compiler")
    return toolchain


def _argument(given: Array | Scalar | Gathered, dims: tuple[int, ...], sizes: list[int]) -> Argument:
    """Describes an argument and appends its strides to `sizes`."""
    if isinstance(given, Scalar):
        return Argument(ArgumentKind.SCALAR, given.dtype, ())
    array = given.walked if isinstance(given, Gathered) else given
    strides = [stride // array.itemsize for stride in np.broadcast_to(array, dims).strides]
    classes = tuple(_stride_class(stride) for stride in strides)
    sizes.extend(stride for stride, kind in zip(strides, classes, strict=True) if kind is Stride.ANY)
    if not isinstance(given, Gathered):
        return Argument(ArgumentKind.ARRAY, dtypes.from_numpy(array.dtype), classes)
    sizes += [given.array.shape[given.axis], given.array.strides[given.axis] // array.itemsize]
    return Argument(ArgumentKind.GATHERED, dtypes.from_numpy(array.dtype), classes)


def _stride_class(stride: int) -> Stride:
    return {0: Stride.ZERO, 1: Stride.UNIT}.get(stride, Stride.ANY)


def _slot(operand: Array | Scalar) -> int:
    if isinstance(operand, Scalar):
        raw = np.array(operand.value, dtypes.to_numpy(operand.dtype)).tobytes()
        return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)
    return operand.ctypes.data
