"""Builds the graph of a program: primitive values, with casts written out, composites expanded, views as addressing.

Every value is computed once, from values before it. Each op of the program becomes:

    pointwise      a POINTWISE value, its operands cast as the catalogue says and broadcast to its shape; the numbers
                   among its attributes are CONSTANT operands behind the others
    composite      its expansion
    reduction      a REDUCTION that keeps its axes at length 1; operands whose reduced axes are not one strided
                   dimension are first copied, so the order of elements is row-major whatever the view
    product        a PRODUCT over [batch…, rows, inner] and [batch…, inner, columns]
    view           no value: a layout over another value's buffer, copied only where no strides express it
    concat, assign_slice, copies   an ASSEMBLY, a buffer without a computation, and STORE values that fill its regions
    take           a GATHER;   one_hot, arange, eye …: pointwise work on INDEX values

Ops that no live result depends on are left out. Every live result is a whole buffer in C order.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

from fusewire_kernels.graph import views
from fusewire_kernels.graph.views import Layout
from fusewire_kernels.ops.expand import expand
from fusewire_protos import catalogue, dtypes, shapes
from fusewire_protos.catalogue import Attributes, Category, DtypeSignature, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.program import Program, ProgramOp
from fusewire_protos.shapes import Shape, Spec


class Form(Enum):
    """The kinds of primitive values; the table at the top of this file says which op becomes which."""

    INPUT = "input"
    SCALAR = "scalar"
    CONSTANT = "constant"
    POINTWISE = "pointwise"
    INDEX = "index"
    GATHER = "gather"
    REDUCTION = "reduction"
    PRODUCT = "product"
    ASSEMBLY = "assembly"
    STORE = "store"


# Python 3.11 takes longer to operand_type up a member of an enum than to make a tuple.
INPUT, SCALAR, CONSTANT, POINTWISE, INDEX, GATHER, REDUCTION, PRODUCT, ASSEMBLY, STORE = Form

SLOTS = (SCALAR, CONSTANT)  # values that stand in the slot table itself
LEAVES = (INPUT, *SLOTS)  # values that are not computed


class Operand(NamedTuple):
    """A view of a value's buffer."""

    value: int
    layout: Layout


class Gathered(NamedTuple):
    """The axis of a gather's data along which the index picks: its length, and its stride in elements."""

    extent: int
    stride: int


class Value(NamedTuple):
    """One primitive value; `shape` is the shape of its dense buffer, if it gets one.

    Operands of POINTWISE and GATHER values are views of the value's own shape; `body` names the scalar body, the
    reduction, or "cast". A GATHER's operands are the data and the index. `origin` is the op's index in the program.
    Values of equal `kind` differ only in their origin and in the values that their operands view; those viewed values
    are equal in dtype and in whether they are slots. A `kind` of None says nothing.
    """

    form: Form
    dtype: DType
    shape: Shape
    origin: int
    operands: tuple[Operand, ...] = ()
    body: str = ""
    operand_dtype: DType = dtypes.bool_
    number: int = 0  # of an input or scalar, in the program
    constant: int | float = 0
    axes: Shape = ()  # the axes that a reduction reduces
    gathered: Gathered | None = None
    target: Operand | None = None  # the region that a store fills
    after: tuple[int, ...] = ()  # stores that must come before this one
    kind: int | None = None

    @property
    def domain(self) -> Shape:
        """The shape of the points at which this value's work is done."""
        return self.operands[0].layout.shape if self.axes else self.shape


class Graph(NamedTuple):
    """The values of a program. `outputs[position]` is the value whose buffer is that live result.

    `is_needed[value]`: an output depends on the value. (Values that are not needed are casts without elements.)
    `uses[value]`: how often needed values read the value; being live counts as one use more.
    """

    values: tuple[Value, ...]
    outputs: tuple[int, ...]
    is_needed: tuple[bool, ...]
    uses: tuple[int, ...]


def build_graph(program: Program) -> Graph:
    builder = _Builder(program, needed_ops(program))
    builder.add_ops()
    outputs = builder.outputs()
    return Graph(tuple(builder.values), outputs, *_needs_and_uses(builder.values, outputs))


def needed_ops(program: Program) -> list[bool]:
    """For each op, whether a live result depends on it."""
    first = program.first_result
    needed = [False] * len(program.ops)
    for index in program.live:
        needed[index] = True
    for index in range(len(program.ops) - 1, -1, -1):
        if needed[index]:
            for operand in program.ops[index].operands:
                if operand >= first:
                    needed[operand - first] = True
    return needed


class _Template(NamedTuple):
    """The one value that an op became, to be copied for equal ops over operands of equal types.

    `layouts[i]` is the value's layout over operand i, or None if it uses the operand's own layout; `constants` are the
    value's operands behind these. `layout` is the layout of the op's result over the value, and `result_type` the
    number of the result's operand type.
    """

    value: Value
    layouts: tuple[Layout | None, ...]
    constants: tuple[Operand, ...]
    layout: Layout
    result_type: int


class _Builder:
    """Appends the values of one op after another. `_numbered[n]` is the view that stands for the program's operand n.

    The *type* of an operand is its dtype, its layout, and whether it is a slot. Loop bodies repeat a few ops over
    operands of equal types; the value that such an op becomes is copied from a template.
    """

    def __init__(self, program: Program, needed: list[bool]) -> None:
        self.values: list[Value] = []
        self._program = program
        self._origin = 0
        self._first_start = 0  # the number of the first slice start of the op that is being added
        self._casts: dict[tuple[Operand, DType], Operand] = {}
        self._leaves: dict[tuple[Form, int | float, type, DType], Operand] = {}
        self._stores_of: dict[int, list[int]] = {}  # by assembly
        self._needed = needed
        self._owner: dict[int, int] = {}  # by assembly: the one operand number that stands for all of it
        self._operand_types: dict[tuple[DType, Layout, bool], int] = {}
        self._templates: dict[tuple[Any, ...], _Template] = {}  # by op, attributes and operand types
        leaves = [Value(INPUT, spec.dtype, spec.shape, 0, number=number) for number, spec in enumerate(program.inputs)]
        leaves += [Value(SCALAR, dtype, (), 0, number=number) for number, dtype in enumerate(program.scalars)]
        self._numbered = {number: self._add(leaf) for number, leaf in enumerate(leaves)}
        self._type_of = {number: self._operand_type(operand) for number, operand in self._numbered.items()}

    # ---- the ops of the program ----

    def add_ops(self) -> None:
        """Adds the values of each op that a live result depends on."""
        numbered, type_of = self._numbered, self._type_of
        number = self._program.first_result
        for index, op in enumerate(self._program.ops):
            if self._needed[index]:
                self._origin = index
                entry, read, attributes = op
                operands = [numbered[operand] for operand in read]
                key = (entry, attributes, *[type_of[operand] for operand in read])
                template = self._templates.get(key)
                if template is None:
                    self._add_first(number, op, operands, key)
                else:
                    numbered[number] = self._from_template(template, operands)
                    type_of[number] = template.result_type
            number += 1
            if op.op.has_region:
                self._first_start += op.op.starts(op.attributes)

    def outputs(self) -> tuple[int, ...]:
        """One value for each live result. A result that is not a whole buffer, or is live twice, is copied."""
        found: list[int] = []
        for index in self._program.live:
            self._origin = index
            operand = self._numbered[self._program.first_result + index]
            if operand.value in found or not self._is_whole_result(operand):
                operand = self._copy(operand)
            found.append(operand.value)
        return tuple(found)

    def _add_first(self, number: int, op: ProgramOp, operands: list[Operand], key: tuple[Any, ...]) -> None:
        """Adds the values of an op for which there is no template, and keeps a template if they are one value."""
        given, first = tuple(operands), len(self.values)
        result = self._numbered[number] = self._result(op, operands, self._program.specs[number])
        result_type = self._type_of[number] = self._operand_type(result)
        if result.value == first == len(self.values) - 1:
            self._keep_template(key, given, result, result_type)

    def _keep_template(
        self, key: tuple[Any, ...], given: tuple[Operand, ...], result: Operand, result_type: int
    ) -> None:
        """Keeps the one value that an op became as a template, if it reads the op's operands and constants alone."""
        value = self.values[result.value]
        viewed, constants = value.operands[: len(given)], value.operands[len(given) :]
        is_of_given = given and [base for base, _ in viewed] == [base for base, _ in given]
        is_of_constants = all(self.values[base].form is CONSTANT for base, _ in constants)
        if (
            is_of_given and is_of_constants and value.body != "cast"
        ):  # two casts of one operand are one value, so none is copied
            value = self.values[result.value] = value._replace(kind=len(self._templates))
            views_of = zip(viewed, given, strict=True)
            layouts = tuple([None if view == whole else view.layout for view, whole in views_of])
            self._templates[key] = _Template(value, layouts, constants, result.layout, result_type)

    def _from_template(self, template: _Template, operands: list[Operand]) -> Operand:
        """Adds a copy of a template over other operands of the same types."""
        for position, view in enumerate(template.layouts):
            if view is not None:
                operands[position] = Operand(operands[position][0], view)
        self.values.append(template.value._replace(origin=self._origin, operands=(*operands, *template.constants)))
        return Operand(len(self.values) - 1, template.layout)

    def _operand_type(self, operand: Operand) -> int:
        """The number of the operand's type; equal types have equal numbers."""
        value = self.values[operand.value]
        return self._operand_types.setdefault(
            (value.dtype, operand.layout, value.form in SLOTS), len(self._operand_types)
        )

    def _result(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        if 0 in spec.shape:
            return self._add(Value(ASSEMBLY, spec.dtype, spec.shape, self._origin))
        return _MAKER_OF[op.op](self, op, operands, spec)

    # ---- one kind of op each ----

    def pointwise(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        wanted, result = self._dtype_signature(op, operands)
        name, shape = op.op.name, spec.shape
        if name == "astype":
            return self._cast(operands[0], result)
        values = self.values
        for position, (number, layout) in enumerate(operands):
            if layout.shape != shape or values[number].dtype is not wanted[position]:
                operands[position] = self._fit(operands[position], wanted[position], shape)
        if op.attributes:
            constants = [self._constant(number, wanted[-1]) for number in op.op.numbers(op.attributes)]
            operands = operands + [self._fit(constant, wanted[-1], shape) for constant in constants]
        return self._point(name, tuple(operands), wanted[-1], result, shape)

    def composite(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        specs = tuple([Spec(self.values[operand.value].dtype, operand.layout.shape) for operand in operands])
        part, constants = expand(op.op, specs, op.attributes)
        numbered = list(operands)
        for value, dtype in zip(constants, part.scalars, strict=True):
            numbered.append(self._constant(value, dtype))
        for index, inner in enumerate(part.ops):
            numbered.append(self._result(inner, [numbered[n] for n in inner.operands], part.result_spec(index)))
        return numbered[-1]

    def reduction(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        axes: Shape = op.attributes[0]
        wanted, result = self._dtype_signature(op, operands)
        operand = self._cast(operands[0], wanted[0])
        shape = operand.layout.shape
        if prod(shape) == 0:
            return self._fit(self._constant(_IDENTITIES[op.op.name], result), result, spec.shape)
        if not _reduces_one_walk(operand.layout, axes):
            kept = tuple([axis for axis in range(len(shape)) if axis not in axes])
            operand = self._copy(Operand(operand.value, views.transpose(operand.layout, kept + axes)))
            axes = tuple(range(len(kept), len(shape)))
        kept_shape = shapes.reduce(operand.layout.shape, axes, keepdims=True)
        value = Value(REDUCTION, result, kept_shape, self._origin, (operand,), op.op.name, wanted[0], axes=axes)
        return self._viewed(self._add(value), spec.shape)

    def product(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        wanted, result = self._dtype_signature(op, operands)
        a, b = [self._in_memory(self._cast(operand, wanted[i])) for i, operand in enumerate(operands)]
        walked_a, walked_b = _as_matrices(a.layout, b.layout)
        if walked_a.shape[-1] == 0:
            return self._fit(self._constant(0, result), result, spec.shape)
        matrices = (Operand(a.value, walked_a), Operand(b.value, walked_b))
        return self._add(Value(PRODUCT, result, spec.shape, self._origin, matrices, "matmul", result))

    def reshape(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self._viewed(operands[0], spec.shape)

    def view(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return Operand(operands[0].value, views.VIEWS[op.op.name](operands[0].layout, *op.attributes))

    def slice(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        part = catalogue.region_of(op.attributes)
        return Operand(operands[0].value, views.region(operands[0].layout, part, self._first_start))

    def concat(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        axis: int = op.attributes[0]
        result = self._assembly(spec.dtype, spec.shape)
        position = 0
        for operand in operands:
            shape = operand.layout.shape
            region = views.region_along_axis(result.layout, axis, position, shape)
            self._store(self._cast(operand, spec.dtype), result.value, region)
            position += shape[axis]
        self._owner[result.value] = self._program.first_result + self._origin
        return result

    def assign_slice(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        target, value = operands
        result = target if self._may_write_in_place(target, op.operands[0]) else self._copy(target)
        region = views.region(result.layout, catalogue.region_of(op.attributes), self._first_start)
        source = self._fit(value, spec.dtype, region.shape)
        self._store(source, result.value, region, after=tuple(self._stores_of[result.value]))
        self._owner[result.value] = self._program.first_result + self._origin
        return result

    def take(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        (data, indices), axis = operands, op.attributes[0]
        shape, strides, offset, moves = data.layout
        still = (0,) * len(indices.layout.shape)
        walked = Operand(data.value, Layout(spec.shape, strides[:axis] + still + strides[axis + 1 :], offset, moves))
        if self._is_slot(data):
            return walked
        position = Operand(indices.value, views.before_axes(indices.layout, spec.shape, len(shape) - axis - 1))
        position = self._cast(position, dtypes.int64)
        picked = Gathered(shape[axis], strides[axis])
        picks = (walked, position)
        return self._add(
            Value(GATHER, spec.dtype, spec.shape, self._origin, picks, "gather", spec.dtype, gathered=picked)
        )

    def one_hot(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        (indices,) = operands
        wanted = Operand(indices.value, views.before_axes(indices.layout, spec.shape, 1))
        return self._matches(self._cast(wanted, dtypes.int64), self._index(spec.shape, len(spec.shape) - 1), spec)

    def full(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self._fit(operands[0], spec.dtype, spec.shape)

    def arange(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self._progression(operands, spec, spec.dtype)

    def linspace(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self._progression(operands, spec, dtypes.float64)

    def eye(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        diagonal = self._fit(self._constant(op.attributes[2], dtypes.int64), dtypes.int64, spec.shape)
        row = self._index(spec.shape, 0)
        shifted = self._point("add", (row, diagonal), dtypes.int64, dtypes.int64, spec.shape)
        return self._matches(shifted, self._index(spec.shape, 1), spec)

    # ---- the values that ops become ----

    def _add(self, value: Value) -> Operand:
        self.values.append(value)
        return Operand(len(self.values) - 1, views.dense(value.shape))

    def _point(
        self, body: str, operands: tuple[Operand, ...], operand_dtype: DType, dtype: DType, shape: Shape
    ) -> Operand:
        return self._add(Value(POINTWISE, dtype, shape, self._origin, operands, body, operand_dtype))

    def _dtype_signature(self, op: ProgramOp, operands: list[Operand]) -> DtypeSignature:
        values = self.values
        return _dtype_signature(op.op, tuple([values[number].dtype for number, _ in operands]), op.attributes)

    def _cast(self, operand: Operand, dtype: DType) -> Operand:
        source = self.values[operand.value].dtype
        if source is dtype:
            return operand
        if prod(operand.layout.shape) == 0:
            return self._add(Value(ASSEMBLY, dtype, operand.layout.shape, self._origin))
        known = self._casts.get((operand, dtype))
        if known is None:
            known = self._casts[operand, dtype] = self._point("cast", (operand,), source, dtype, operand.layout.shape)
        return known

    def _fit(self, operand: Operand, dtype: DType, shape: Shape) -> Operand:
        """The operand cast to a dtype and broadcast to a shape.

        A slot is cast before it is broadcast. An array is cast afterwards: the cast is then computed at the points of
        the value that needs it, and fuses with that value.
        """
        number, layout = operand
        if self._is_slot(operand):
            number, layout = self._cast(Operand(number, views.dense(())), dtype)
            return Operand(number, views.broadcast_to(layout, shape))
        if layout.shape != shape:
            operand = Operand(number, views.broadcast_to(layout, shape))
        return self._cast(operand, dtype)

    def _constant(self, value: int | float, dtype: DType) -> Operand:
        return self._leaf(Value(CONSTANT, dtype, (), self._origin, constant=value), value)

    def _index(self, shape: Shape, axis: int) -> Operand:
        """The position along an axis, at every point of `shape`."""
        extent = shape[axis]
        if extent == 1:
            return self._fit(self._constant(0, dtypes.int64), dtypes.int64, shape)
        vector = self._leaf(Value(INDEX, dtypes.int64, (extent,), self._origin, body="index"), extent)
        return Operand(vector.value, views.before_axes(vector.layout, shape, len(shape) - axis - 1))

    def _leaf(self, value: Value, name: int | float) -> Operand:
        key = (value.form, name, type(name), value.dtype)  # 300 and 300.0 are equal in Python and differ in bytes
        known = self._leaves.get(key)
        if known is None:
            known = self._leaves[key] = self._add(value)
        return known

    def _matches(self, a: Operand, b: Operand, spec: Spec) -> Operand:
        hits = self._point("equal", (a, b), dtypes.int64, dtypes.bool_, spec.shape)
        return self._cast(hits, spec.dtype)

    def _progression(self, scalars: list[Operand], spec: Spec, given: DType) -> Operand:
        """start + position · step: the scalars cast to `given`, the work in its accumulator dtype, the result cast."""
        computed = given.accumulator
        start, step = [self._fit(self._cast(scalar, given), computed, spec.shape) for scalar in scalars]
        position = self._cast(self._index(spec.shape, 0), computed)
        ramp = self._point("multiply", (position, step), computed, computed, spec.shape)
        return self._cast(self._point("add", (start, ramp), computed, computed, spec.shape), spec.dtype)

    def _viewed(self, operand: Operand, shape: Shape) -> Operand:
        layout = views.reshape(operand.layout, shape)
        if layout is not None:
            return Operand(operand.value, layout)
        return self._viewed(self._copy(operand), shape)

    def _assembly(self, dtype: DType, shape: Shape) -> Operand:
        result = self._add(Value(ASSEMBLY, dtype, shape, self._origin))
        self._stores_of[result.value] = []
        return result

    def _store(self, source: Operand, assembly: int, region: Layout, *, after: tuple[int, ...] = ()) -> None:
        """Fills a region of an assembly, once the stores `after` are done."""
        if prod(region.shape) == 0:
            return
        self._stores_of[assembly].append(len(self.values))
        dtype, target = self.values[assembly].dtype, Operand(assembly, region)
        self._add(Value(STORE, dtype, region.shape, self._origin, (source,), target=target, after=after))

    def _copy(self, operand: Operand) -> Operand:
        """A new buffer that holds the elements of a view in C order."""
        result = self._assembly(self.values[operand.value].dtype, operand.layout.shape)
        self._store(operand, result.value, result.layout)
        return result

    def _is_slot(self, operand: Operand) -> bool:
        return self.values[operand.value].form in SLOTS

    def _in_memory(self, operand: Operand) -> Operand:
        return self._copy(operand) if self._is_slot(operand) else operand

    def _is_whole_result(self, operand: Operand) -> bool:
        value = self.values[operand.value]
        is_computed = value.form not in LEAVES
        return is_computed and operand.layout.is_dense and prod(value.shape) == prod(operand.layout.shape)

    def _may_write_in_place(self, target: Operand, number: int) -> bool:
        """Whether an assembly may be written in place: operand `number` is all of it, and this op is its one reader."""
        return self._owner.get(target.value) == number and self._uses[number] == 1

    @cached_property
    def _uses(self) -> list[int]:
        return _count_uses(self._program, self._needed)


def _count_uses(program: Program, needed: list[bool]) -> list[int]:
    """For each operand number, how often needed ops read it; being live counts as one use more."""
    uses = [0] * len(program.specs)
    for op, is_needed in zip(program.ops, needed, strict=True):
        if is_needed:
            for number in op.operands:
                uses[number] += 1
    for index in program.live:
        uses[program.first_result + index] += 1
    return uses


def _needs_and_uses(values: list[Value], outputs: tuple[int, ...]) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    """`Graph.is_needed` and `Graph.uses`."""
    is_needed = [False] * len(values)
    uses = [0] * len(values)
    for number in outputs:
        uses[number] += 1
    for number in range(len(values) - 1, -1, -1):
        value = values[number]
        if uses[number if value.target is None else value.target.value]:
            is_needed[number] = True
            for base, _ in value.operands:
                uses[base] += 1
    return tuple(is_needed), tuple(uses)


@lru_cache(1024)
def _dtype_signature(op: Op, operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return op.dtype_rule(operands, attributes)


@lru_cache(1024)
def _reduces_one_walk(layout: Layout, axes: Shape) -> bool:
    """Whether the reduced axes are one strided dimension, both in memory and in the row-major order of all axes."""
    shape = tuple([layout.shape[axis] for axis in axes])
    return all(
        views.is_one_walk(shape, tuple([strides[axis] for axis in axes]))
        for strides in (layout.strides, views.dense_strides(layout.shape))
    )


@lru_cache(1024)
def _as_matrices(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """The operands of a product as batches of matrices: a vector a becomes one row, a vector b one column."""
    rows = a if len(a.shape) > 1 else Layout((1, *a.shape), (0, *a.strides), a.offset, a.moves)
    columns = b if len(b.shape) > 1 else Layout((*b.shape, 1), (*b.strides, 0), b.offset, b.moves)
    batch = shapes.broadcast(rows.shape[:-2], columns.shape[:-2])
    return views.broadcast_to(rows, batch + rows.shape[-2:]), views.broadcast_to(columns, batch + columns.shape[-2:])


_IDENTITIES: dict[str, int] = {"sum": 0, "prod": 1, "any": 0, "all": 1}

_Maker = Callable[[_Builder, ProgramOp, list[Operand], Spec], Operand]

_MAKER_OF_CATEGORY: dict[Category, _Maker] = {
    Category.POINTWISE: _Builder.pointwise,
    Category.COMPOSITE: _Builder.composite,
    Category.REDUCTION: _Builder.reduction,
    Category.PRODUCT: _Builder.product,
    Category.VIEW: _Builder.view,
}

_MAKER_OF_OP: dict[str, _Maker] = {
    "reshape": _Builder.reshape,
    "slice": _Builder.slice,
    "concat": _Builder.concat,
    "assign_slice": _Builder.assign_slice,
    "take": _Builder.take,
    "one_hot": _Builder.one_hot,
    "full": _Builder.full,
    "arange": _Builder.arange,
    "linspace": _Builder.linspace,
    "eye": _Builder.eye,
}

_MAKER_OF: dict[Op, _Maker] = {op: _MAKER_OF_OP.get(op.name) or _MAKER_OF_CATEGORY[op.category] for op in catalogue.OPS}
