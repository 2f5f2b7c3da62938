"""Appends primitive values to a graph: constants, casts, pointwise values, and assemblies with their stores."""

from __future__ import annotations

from math import prod

from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import (
    ASSEMBLY,
    CONSTANT,
    GATHER,
    INDEX,
    POINTWISE,
    SLOTS,
    STORE,
    Form,
    Gathered,
    Operand,
    Value,
)
from fusewire_kernels.graph.views import Layout
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


class ValueBuilder:
    """The values that have been added so far. Each constant, index and cast is added only once.

    `origin` is the index of the program's present op; values that are added get this origin.
    """

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.origin = 0
        self.stores_of: dict[int, list[int]] = {}  # number of an assembly -> the numbers of its stores
        self.copied: dict[int, Operand] = {}  # number of an assembly -> the view that it holds in C order, for good
        self._casts: dict[tuple[Operand, DType], Operand] = {}
        self._leaves: dict[tuple[Form, int | float, type, DType], Operand] = {}

    def add(self, value: Value) -> Operand:
        """Appends a value. Returns an operand that views the whole value."""
        self.values.append(value)
        return Operand(len(self.values) - 1, views.dense(value.shape))

    def point(
        self, body: str, operands: tuple[Operand, ...], operand_dtype: DType, dtype: DType, shape: Shape
    ) -> Operand:
        """Appends a POINTWISE value. Its operands have its shape and `operand_dtype`; "where" takes a bool first."""
        return self.add(Value(POINTWISE, dtype, shape, self.origin, operands, body, operand_dtype))

    def gather(self, walked: Operand, position: Operand, picked: Gathered) -> Operand:
        """Appends a GATHER of the elements at positions, int64, along an axis that `walked` leaves out."""
        dtype, shape = self.values[walked.value].dtype, walked.layout.shape
        picks = (walked, position)
        return self.add(Value(GATHER, dtype, shape, self.origin, picks, "gather", dtype, gathered=picked))

    def cast(self, operand: Operand, dtype: DType) -> Operand:
        """Returns the operand cast to `dtype`. An operand that has this dtype is returned as it is."""
        source = self.values[operand.value].dtype
        if source is dtype:
            return operand
        if prod(operand.layout.shape) == 0:
            return self.add(Value(ASSEMBLY, dtype, operand.layout.shape, self.origin))
        known = self._casts.get((operand, dtype))
        if known is None:
            known = self._casts[operand, dtype] = self.point("cast", (operand,), source, dtype, operand.layout.shape)
        return known

    def fit(self, operand: Operand, dtype: DType, shape: Shape) -> Operand:
        """The operand cast to a dtype and broadcast to a shape.

        A slot is cast before it is broadcast. An array is broadcast first: the cast then has the same shape as the
        value that uses it, and the two fuse into one kernel.
        """
        number, layout = operand
        if self.is_slot(operand):
            number, layout = self.cast(Operand(number, views.dense(())), dtype)
            return Operand(number, views.broadcast_to(layout, shape))
        if layout.shape != shape:
            operand = Operand(number, views.broadcast_to(layout, shape))
        return self.cast(operand, dtype)

    def constant(self, value: int | float, dtype: DType) -> Operand:
        """A constant that the plan holds, of shape ()."""
        return self._leaf(Value(CONSTANT, dtype, (), self.origin, constant=value), value)

    def index(self, shape: Shape, axis: int) -> Operand:
        """The position along an axis, at every point of `shape`."""
        extent = shape[axis]
        if extent == 1:
            return self.fit(self.constant(0, dtypes.int64), dtypes.int64, shape)
        vector = self._leaf(Value(INDEX, dtypes.int64, (extent,), self.origin, body="index"), extent)
        return Operand(vector.value, views.before_axes(vector.layout, shape, len(shape) - axis - 1))

    def _leaf(self, value: Value, name: int | float) -> Operand:
        key = (value.form, name, type(name), value.dtype)  # 300 == 300.0, but their bytes in the plan differ
        known = self._leaves.get(key)
        if known is None:
            known = self._leaves[key] = self.add(value)
        return known

    def viewed(self, operand: Operand, shape: Shape) -> Operand:
        """The same elements in the same order under another shape. They are copied if no strides express this."""
        layout = views.reshape(operand.layout, shape)
        if layout is not None:
            return Operand(operand.value, layout)
        copy = self.copy(operand)
        self.copied[copy.value] = self._behind_copy(operand)
        return self.viewed(copy, shape)

    def _behind_copy(self, operand: Operand) -> Operand:
        """The operand, or if it shows a copy of a view, this view with its axes in the order of the operand's."""
        source = self.copied.get(operand.value)
        walks = None if source is None else views.behind_copy(source.layout, operand.layout)
        if source is None or walks is None:
            return operand
        return Operand(source.value, views.of_axes(source.layout, [axis for walk in walks for axis in walk]))

    def assembly(self, dtype: DType, shape: Shape) -> Operand:
        """Appends an empty buffer. `store` fills it."""
        result = self.add(Value(ASSEMBLY, dtype, shape, self.origin))
        self.stores_of[result.value] = []
        return result

    def store(self, source: Operand, assembly: int, region: Layout, *, after: tuple[int, ...] = ()) -> None:
        """Fills a region of an assembly, once the values `after` are computed."""
        if prod(region.shape) == 0:
            return
        self.stores_of[assembly].append(len(self.values))
        dtype, target = self.values[assembly].dtype, Operand(assembly, region)
        self.add(Value(STORE, dtype, region.shape, self.origin, (source,), target=target, after=after))

    def copy(self, operand: Operand) -> Operand:
        """A new buffer that holds the elements of a view in C order."""
        result = self.assembly(self.values[operand.value].dtype, operand.layout.shape)
        self.store(operand, result.value, result.layout)
        return result

    def is_slot(self, operand: Operand) -> bool:
        """Whether the operand's value itself stands in the slot table."""
        return self.values[operand.value].form in SLOTS

    def in_memory(self, operand: Operand) -> Operand:
        """The operand, or a copy in memory if the operand stands in the slot table."""
        return self.copy(operand) if self.is_slot(operand) else operand
