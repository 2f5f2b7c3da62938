"""The groups of a loop's body as matrices of the same rows, of which a cluster computes the elements. Pure."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.fusion.persistent.loop_body import LoopBody, Obstacle, require, require_known_places
from fusewire_kernels.graph.graph import Operand
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, LoopKernel, ProductKernel, Store, Stride
from fusewire_kernels.ir.persistent import Place
from fusewire_protos.ops import dtypes

Strides = tuple[tuple[int, ...], ...]  # of some arguments, along the dimensions of a kernel

_LEFT, _RIGHT = 0, 1  # the operands of a product
_FIRST_OF_EPILOGUE = 2
_ELEMENT = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.ANY, Stride.ANY))
_STORE = LoopKernel(2, has_inner=False, inputs=(_ELEMENT,), nodes=(), stores=(Store(0, _ELEMENT),))  # stores a product


class Placed(NamedTuple):
    """Where a thread is along the dimensions of a kernel, which computes `columns` columns, or 0 (see `Stage`)."""

    places: tuple[Place, ...]
    columns: int

    def strides(self, strides: tuple[int, ...]) -> tuple[int, int]:
        """Returns by how many elements an argument moves along rows and along columns."""
        along = {place: stride for stride, place in zip(strides, self.places, strict=False)}
        point = along.get(Place.POINT, 0)
        return along.get(Place.ROW, point * self.columns), along.get(Place.COLUMN, point)


def _placed(extents: tuple[int, ...], rows: int) -> Placed:
    """Returns where a thread is along the dimensions of a pointwise kernel."""
    axes, elements = [extent for extent in extents if extent != 1], prod(extents)
    if axes == [rows] or elements == rows == 1:
        return Placed(_with_ones(extents, Place.ROW), 0)
    is_matrix = elements > 0 and elements % rows == 0 and (len(axes) == 1 or (len(axes) == 2 and axes[0] == rows))
    require("an iteration computes arrays of different rows", is_met=is_matrix)
    found = (Place.POINT,) if len(axes) == 1 else (Place.ROW, Place.COLUMN)
    return Placed(_with_ones(extents, *found), elements // rows)


def _with_ones(extents: tuple[int, ...], *places: Place) -> tuple[Place, ...]:
    """Returns the places of dimensions, of which those that are longer than 1 have these places."""
    of_others = iter(places)
    return tuple([Place.ONE if extent == 1 else next(of_others) for extent in extents])


def rows_of(body: LoopBody, instances: list[Instance]) -> int:
    """Returns the rows of the first product of what is computed, or else of what is reduced first."""
    for instance in instances:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, ProductKernel):
            *_, rows, columns, _ = sizes[: kernel.batch_rank + 3]
            left = _left_of(body, instance)
            if left is not None:
                return rows if left == _LEFT else columns
    for instance in instances:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, LoopKernel) and kernel.has_inner:
            return prod(sizes[: kernel.rank])
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
    placed: Placed
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

    def is_one_a_row(self, store: int) -> bool:
        """Returns whether a store writes one element for each row, which all threads of the row compute."""
        is_reduced = self.body.has_inner and self.store_strides[store][-1] == 0
        return self.placed.columns == 0 or is_reduced

    @property
    def _first_input(self) -> int:
        return 0 if self.product is None else _FIRST_OF_EPILOGUE


def group_of(body: LoopBody, rows: int, instance: Instance) -> MatrixGroup:
    """Returns a group of a body whose matrices have so many rows. Raises Obstacle if no cluster can run it."""
    require("it has no rows", is_met=rows > 0)
    kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
    if isinstance(kernel, ProductKernel):
        return _product_group(body, rows, instance, kernel)
    if not isinstance(kernel, LoopKernel):
        raise Obstacle("an iteration computes lines or small matrices")
    require_known_places(kernel)
    outer = sizes[: kernel.rank]
    if not kernel.has_inner:
        return MatrixGroup(instance, kernel, _placed(outer, rows), None)
    is_along = prod(outer) == rows and sum(extent != 1 for extent in outer) <= 1 and sizes[kernel.rank] > 1
    require("an iteration reduces along other dimensions", is_met=is_along)
    places = (*_with_ones(outer, Place.ROW), Place.COLUMN)
    return MatrixGroup(instance, kernel, Placed(places, sizes[kernel.rank]), None)


def _product_group(body: LoopBody, rows: int, instance: Instance, kernel: ProductKernel) -> MatrixGroup:
    require("a product is not of float32", is_met=kernel.dtype is dtypes.float32)
    require("it has a product of several matrices", is_met=kernel.batch_rank == 0)
    require("it has a product by windows of an array", is_met=kernel.walks is None)
    epilogue = kernel.epilogue or _STORE
    require_known_places(epilogue)
    down, across, inner, a_row, a_inner, b_inner, b_column = instance.lowered.sizes[:7]
    left = _left_of(body, instance)
    is_turned = down != rows if left is None else left == _RIGHT
    require("a product has results of other rows", is_met=rows == (across if is_turned else down))
    require("a product has no elements", is_met=min(down, across, inner) > 0)
    if is_turned:
        turned = Multiplied(_RIGHT, inner, (b_column, b_inner), (a_inner, a_row))
        return MatrixGroup(instance, epilogue, Placed((Place.COLUMN, Place.ROW), down), turned)
    product = Multiplied(_LEFT, inner, (a_row, a_inner), (b_inner, b_column))
    return MatrixGroup(instance, epilogue, Placed((Place.ROW, Place.COLUMN), across), product)


def _left_of(body: LoopBody, instance: Instance) -> int | None:
    """Returns which operand of a product the loop computes, None if none."""
    computed = [body.computes(instance.operands[number].value) for number in (_LEFT, _RIGHT)]
    return computed.index(True) if any(computed) else None
