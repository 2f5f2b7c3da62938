"""The groups of a loop's body as matrices of one shape, of which a cluster computes the elements. Pure."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from fusewire_kernels.codegen.kernel import (
    Argument,
    ArgumentKind,
    LoopKernel,
    Place,
    ProductKernel,
    Store,
    Stride,
)
from fusewire_kernels.fusion.loop_body import LoopBody, Obstacle, require, require_known_places
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import Operand
from fusewire_protos.ops import dtypes

Strides = tuple[tuple[int, ...], ...]  # of some arguments, along the dimensions of a kernel

_LEFT, _RIGHT = 0, 1  # the operands of a product
_FIRST_OF_EPILOGUE = 2
_ELEMENT = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.ANY, Stride.ANY))
_STORE = LoopKernel(2, has_inner=False, inputs=(_ELEMENT,), nodes=(), stores=(Store(0, _ELEMENT),))  # stores a product


class Matrices(NamedTuple):
    """The shape of all matrices of a cluster kernel."""

    rows: int
    columns: int

    def places(self, extents: tuple[int, ...]) -> tuple[Place, ...]:
        """Returns where a thread is along the dimensions of a pointwise kernel."""
        told = tuple([extent for extent in extents if extent != 1])
        shapes: dict[tuple[int, ...], list[Place]] = {
            () if self.rows == 1 else (self.rows,): [Place.ROW],
            (self.rows * self.columns,): [Place.POINT],
            (self.rows, self.columns): [Place.ROW, Place.COLUMN],
        }
        found = shapes.get(told)
        require("an iteration computes arrays of different shapes", is_met=found is not None)
        of_others = iter(found or ())
        return tuple([Place.ONE if extent == 1 else next(of_others) for extent in extents])

    def outer_places(self, extents: tuple[int, ...]) -> tuple[Place, ...]:
        """Returns where a thread is along the outer dimensions of a kernel that reduces along the columns."""
        require("an iteration computes arrays of different shapes", is_met=prod(extents) == self.rows)
        require("rows are of several dimensions", is_met=sum(extent != 1 for extent in extents) <= 1)
        return tuple([Place.ONE if extent == 1 else Place.ROW for extent in extents])

    def without_ones(self, strides: tuple[int, int]) -> tuple[int, int]:
        """Returns strides along rows and columns, 0 along dimensions of length 1."""
        return strides[0] if self.rows > 1 else 0, strides[1] if self.columns > 1 else 0

    def strides(self, strides: tuple[int, ...], places: tuple[Place, ...]) -> tuple[int, int]:
        """Returns by how many elements an argument moves along rows and along columns."""
        along = {place: stride for stride, place in zip(strides, places, strict=False)}
        point = along.get(Place.POINT, 0)
        of_row, of_column = along.get(Place.ROW, point * self.columns), along.get(Place.COLUMN, point)
        return self.without_ones((of_row, of_column))


def matrices_of(body: LoopBody, instances: list[Instance]) -> Matrices:
    """Returns the rows and columns of the first product of what is computed, or else of what is reduced first."""
    for instance in instances:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, ProductKernel):
            *_, rows, columns, _ = sizes[: kernel.batch_rank + 3]
            left = _left_of(body, instance)
            if left is not None:
                return Matrices(rows, columns) if left == _LEFT else Matrices(columns, rows)
    for instance in instances:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, LoopKernel) and kernel.has_inner:
            return Matrices(prod(sizes[: kernel.rank]), sizes[kernel.rank])
    raise Obstacle("an iteration takes several pointwise groups")


class Multiplied(NamedTuple):
    """The operands of a product: what is sent to all blocks, and a matrix that stays the same.

    `left` is the number of the first among the operands of the group. `left_strides` are its strides along rows and k,
    and `right_strides` are those of the other along k and columns. k has `inner` steps.
    """

    left: int
    inner: int
    left_strides: tuple[int, int]
    right_strides: tuple[int, int]

    @property
    def right(self) -> int:
        return 1 - self.left


class MatrixGroup(NamedTuple):
    """A group of the body, the body of its kernel, and where a thread is along the dimensions of that."""

    instance: Instance
    body: LoopKernel
    places: tuple[Place, ...]
    product: Multiplied | None

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The inputs of the body but the product."""
        return self.instance.read()[self._first_input :]

    @property
    def input_strides(self) -> Strides:
        return self.instance.lowered.strides[self._first_input :][: len(self.inputs)]

    @property
    def store_strides(self) -> Strides:
        kernel = self.instance.lowered.kernel
        if isinstance(kernel, ProductKernel) and kernel.epilogue is None:
            rows, columns = self.instance.lowered.sizes[:2]
            return ((columns if rows > 1 else 0, 1 if columns > 1 else 0),)
        return self.instance.lowered.strides[len(self.instance.read()) :]

    @property
    def _first_input(self) -> int:
        return 0 if self.product is None else _FIRST_OF_EPILOGUE


def group_of(body: LoopBody, matrices: Matrices, instance: Instance) -> MatrixGroup:
    """Returns a group of the body. Raises Obstacle if no cluster can run it."""
    kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
    if isinstance(kernel, ProductKernel):
        return _product_group(body, matrices, instance, kernel)
    require_known_places(kernel)
    if not kernel.has_inner:
        return MatrixGroup(instance, kernel, matrices.places(sizes[: kernel.rank]), None)
    is_along = sizes[kernel.rank] == matrices.columns
    require("an iteration reduces along other dimensions", is_met=is_along)
    return MatrixGroup(instance, kernel, (*matrices.outer_places(sizes[: kernel.rank]), Place.COLUMN), None)


def _product_group(body: LoopBody, matrices: Matrices, instance: Instance, kernel: ProductKernel) -> MatrixGroup:
    require("a product is not of float32", is_met=kernel.dtype is dtypes.float32)
    require("it has a product of several matrices", is_met=kernel.batch_rank == 0)
    epilogue = kernel.epilogue or _STORE
    require_known_places(epilogue)
    rows, columns, inner, a_row, a_inner, b_inner, b_column = instance.lowered.sizes[:7]
    left = _left_of(body, instance)
    is_turned = (rows, columns) != matrices if left is None else left == _RIGHT
    shape = (columns, rows) if is_turned else (rows, columns)
    is_known = shape == matrices and inner <= matrices.columns
    require("a product has results of another shape, or more of k than of columns", is_met=is_known)
    if is_turned:
        turned = Multiplied(_RIGHT, inner, (b_column, b_inner), (a_inner, a_row))
        return MatrixGroup(instance, epilogue, (Place.COLUMN, Place.ROW), turned)
    product = Multiplied(_LEFT, inner, (a_row, a_inner), (b_inner, b_column))
    return MatrixGroup(instance, epilogue, (Place.ROW, Place.COLUMN), product)


def _left_of(body: LoopBody, instance: Instance) -> int | None:
    """Returns which operand of a product the loop computes, None if none."""
    computed = [body.computes(instance.operands[number].value) for number in (_LEFT, _RIGHT)]
    return computed.index(True) if any(computed) else None
