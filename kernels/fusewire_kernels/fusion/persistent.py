"""Decides whether one persistent kernel can run all iterations of a loop. Pure.

It can if each value that an iteration takes from the one before is known where it is needed:

- The body of the loop is one pointwise group, and each carried value is needed at the point at which it is computed.
  Then it stays in a register.
- The groups of the body compute matrices of the same rows and columns, or one element for each row. They are products
  of float32 with a matrix that stays the same, pointwise ops, and reductions along the columns. What a product
  multiplies by that matrix, and what is reduced, is sent to all blocks of a cluster. All else that is carried, or that
  one group takes from another, must be needed at the point at which it is computed.

A product `w @ h` with a carried h is the product of the transposed matrices: each of its elements is the same chain of
fused multiply-adds. Then rows are the columns of h.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from fusewire_kernels.codegen.cluster_shape import cluster_shape
from fusewire_kernels.codegen.kernel import (
    Argument,
    ArgumentKind,
    CarriedInput,
    Exchanged,
    LoopKernel,
    PersistentCluster,
    PersistentKernel,
    PersistentPoints,
    Place,
    ProductKernel,
    ReducedValue,
    Source,
    Stage,
    StageInput,
    StageProduct,
    Store,
    Stride,
)
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import Graph, Operand
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program

_LEFT, _RIGHT = 0, 1  # the operands of a product
_FIRST_OF_EPILOGUE = 2
_MOST_OPERANDS = 64  # each has a bit that tells whether it moves from iteration to iteration
_MOST_PRODUCTS = 8  # a thread has few registers for the columns of more products
_MOST_STAGES = 32
_REDUCTIONS = ("sum", "prod", "min", "max")
_ELEMENT = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.ANY, Stride.ANY))
_STORE = LoopKernel(2, has_inner=False, inputs=(_ELEMENT,), nodes=(), stores=(Store(0, _ELEMENT),))  # stores a product

_Strides = tuple[tuple[int, ...], ...]  # of some arguments, along the dimensions of a kernel


class Persistent(NamedTuple):
    """A persistent kernel and its operands, of which it writes the last `outputs`.

    `sizes` are those of the body. `carried` and `fixed` are numbers of operands (see `PersistentLaunch`).
    """

    kernel: PersistentKernel
    sizes: tuple[int, ...]
    operands: tuple[Operand, ...]
    outputs: int
    carried: tuple[int, ...]
    fixed: tuple[int, ...]


class _Obstacle(Exception):
    """Says why there is no persistent kernel."""


def persistent_of(
    program: Program, graph: Graph, instances: list[Instance], launches: list[GroupedLaunch]
) -> Persistent | str:
    """Returns the persistent kernel of a loop's body, or the reason why there is none. Empty if it is no loop."""
    if not program.carried:
        return ""
    groups = [instances[group] for launch in launches for group in launch.groups]
    try:
        carrying = _Carrying(program, graph, groups)
        kernel = groups[0].lowered.kernel
        if len(groups) == 1 and isinstance(kernel, LoopKernel) and not kernel.has_inner:
            return _points(carrying, groups[0], kernel)
        return _Cluster(carrying, groups).found()
    except _Obstacle as obstacle:
        return str(obstacle)


def _require(reason: str, *, is_met: bool) -> None:
    if not is_met:
        raise _Obstacle(reason)


class _Carrying:
    """Which groups of a body write which values, and what is carried to the next iteration."""

    def __init__(self, program: Program, graph: Graph, groups: list[Instance]) -> None:
        self._program = program
        self._graph = graph
        written = [
            (operand, Source(group, store))
            for group, instance in enumerate(groups)
            for store, operand in enumerate(instance.written())
        ]
        self.written = frozenset([operand.value for operand, _ in written])
        self._whole = {operand.value: source for operand, source in written if operand.layout.is_dense}
        self.stored = frozenset(graph.outputs)

    def before(self, value: int) -> Source | None:
        """Returns what wrote, in the iteration before, what a value is in this one. None if it is not carried."""
        origin = self._program.origins.get(value)  # the inputs of a program are the first values of its graph
        if origin is None:
            return None
        _require("a value is carried over more than one iteration", is_met=len(origin.initial) == 1)
        is_computed = origin.source >= self._program.first_result
        _require("an input takes what another input had in the iteration before", is_met=is_computed)
        position = self._program.live_positions[origin.source - self._program.first_result]
        source = self.now(self._graph.outputs[position])
        assert source is not None, "a live result is computed"
        return source

    def computes(self, value: int) -> bool:
        """Returns whether the loop computes a value, in this iteration or in the one before."""
        return value in self.written or value in self._program.origins

    def now(self, value: int) -> Source | None:
        """Returns what writes a value in this iteration. None if no group does."""
        if value not in self.written:
            return None
        _require("several groups write parts of a value that another takes", is_met=value in self._whole)
        return self._whole[value]


def _points(carrying: _Carrying, instance: Instance, kernel: LoopKernel) -> Persistent:
    _require_few(len(instance.operands))
    _require_known_places(kernel)
    strides, inputs = instance.lowered.strides, len(instance.read())
    carried = []
    for number, operand in enumerate(instance.read()):
        source = carrying.before(operand.value)
        if source is not None:
            _require_in_place(operand, strides[number], strides[inputs + source.store])
            carried.append(CarriedInput(number, source.store))
    _require("no value is carried", is_met=bool(carried))
    found = PersistentPoints(kernel, tuple(carried))
    numbers = tuple([each.input for each in carried])
    return Persistent(found, instance.lowered.sizes, instance.operands, instance.outputs, numbers, ())


def _require_few(operands: int) -> None:
    _require(f"it has more than {_MOST_OPERANDS} operands", is_met=operands <= _MOST_OPERANDS)


def _require_known_places(kernel: LoopKernel) -> None:
    gathers = any(argument.kind is ArgumentKind.GATHERED for argument in kernel.inputs)
    _require("it reads at places that it computes", is_met=not gathers)


def _require_in_place(read: Operand, strides: tuple[int, ...], written: tuple[int, ...]) -> None:
    """Raises unless an operand that moves by `strides` is read at the points at which the same value is written."""
    _require("it reads a part of a computed value", is_met=not read.layout.offset and not read.layout.moves)
    _require("it reads a computed value at other points than it writes it", is_met=strides == written)


class _Matrices(NamedTuple):
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
        _require("an iteration computes arrays of different shapes", is_met=found is not None)
        of_others = iter(found or ())
        return tuple([Place.ONE if extent == 1 else next(of_others) for extent in extents])

    def outer_places(self, extents: tuple[int, ...]) -> tuple[Place, ...]:
        """Returns where a thread is along the outer dimensions of a kernel that reduces along the columns."""
        _require("an iteration computes arrays of different shapes", is_met=prod(extents) == self.rows)
        _require("rows are of several dimensions", is_met=sum(extent != 1 for extent in extents) <= 1)
        return tuple([Place.ONE if extent == 1 else Place.ROW for extent in extents])

    def without_ones(self, steps: tuple[int, int]) -> tuple[int, int]:
        """Returns strides along rows and columns, 0 along dimensions of length 1."""
        return steps[0] if self.rows > 1 else 0, steps[1] if self.columns > 1 else 0

    def steps(self, strides: tuple[int, ...], places: tuple[Place, ...]) -> tuple[int, int]:
        """Returns by how many elements an argument moves along rows and along columns."""
        along = {place: stride for stride, place in zip(strides, places, strict=False)}
        point = along.get(Place.POINT, 0)
        of_row, of_column = along.get(Place.ROW, point * self.columns), along.get(Place.COLUMN, point)
        return self.without_ones((of_row, of_column))


class _Group(NamedTuple):
    """A group of the body: its kernel's body, and where the parts of a product are, if it is one.

    `left` and `right` are numbers of operands, of which `left` is computed by the loop. `left_steps` are its strides
    along rows and k, and `right_strides` are those of the right operand along k and columns.
    """

    instance: Instance
    body: LoopKernel
    places: tuple[Place, ...]
    first_input: int  # the number of the operand that is the first input of the body but the product
    left: int | None
    left_steps: tuple[int, int]
    right_strides: tuple[int, int]

    @property
    def right(self) -> int:
        return 1 - (self.left or 0)

    def reads(self) -> tuple[Operand, ...]:
        return self.instance.read()[self.first_input :]


class _Cluster:
    """Builds the persistent kernel of a body whose groups become the stages of a cluster."""

    def __init__(self, carrying: _Carrying, instances: list[Instance]) -> None:
        _require(f"an iteration takes more than {_MOST_STAGES} groups", is_met=len(instances) <= _MOST_STAGES)
        self._carrying = carrying
        self._matrices = _matrices_of(carrying, instances)
        self._groups = [self._group(instance) for instance in instances]
        self._store_strides = [_store_strides(group) for group in self._groups]
        self._operands: list[Operand] = []
        self._numbers: dict[object, int] = {}  # of operands that are read, by all that the kernel knows of them
        self._carried = set[int]()
        self._outputs: list[Operand] = []
        self._exchanged: dict[Source | ReducedValue | Operand, Exchanged] = {}

    def found(self) -> Persistent:
        products = sum(group.left is not None for group in self._groups)
        _require(f"an iteration takes more than {_MOST_PRODUCTS} products", is_met=products <= _MOST_PRODUCTS)
        stages = [self._stage(number, group) for number, group in enumerate(self._groups)]
        _require("no value is carried", is_met=bool(self._carried))
        _require("an iteration takes several pointwise groups", is_met=bool(self._exchanged))
        rows, columns = self._matrices
        _require(
            "a graph is faster for matrices of this size, or they do not fit clusters",
            is_met=cluster_shape(rows, columns, products, len(self._exchanged)) is not None,
        )
        reads = len(self._operands)
        _require_few(reads + len(self._outputs))
        return Persistent(
            PersistentCluster(rows, columns, tuple(stages), tuple(self._exchanged.values()), reads),
            (rows, columns),
            (*self._operands, *self._outputs),
            len(self._outputs),
            tuple(sorted(self._carried)),
            tuple(sorted({stage.product.right for stage in stages if stage.product is not None})),
        )

    def _group(self, instance: Instance) -> _Group:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, ProductKernel):
            return self._product_group(instance, kernel)
        _require_known_places(kernel)
        if not kernel.has_inner:
            return _Group(instance, kernel, self._matrices.places(sizes[: kernel.rank]), 0, None, (0, 0), (0, 0))
        is_along = sizes[kernel.rank] == self._matrices.columns
        _require("an iteration reduces along other dimensions", is_met=is_along)
        places = (*self._matrices.outer_places(sizes[: kernel.rank]), Place.COLUMN)
        return _Group(instance, kernel, places, 0, None, (0, 0), (0, 0))

    def _product_group(self, instance: Instance, kernel: ProductKernel) -> _Group:
        _require("a product is not of float32", is_met=kernel.dtype is dtypes.float32)
        _require("it has a product of several matrices", is_met=kernel.batch_rank == 0)
        body = kernel.epilogue or _STORE
        _require_known_places(body)
        rows, columns, inner, a_row, a_inner, b_inner, b_column = instance.lowered.sizes[:7]
        left = _left_of(self._carrying, instance)
        if left is None:
            left = _LEFT if (rows, columns) == self._matrices else _RIGHT
        shape = (rows, columns) if left == _LEFT else (columns, rows)
        is_known = shape == self._matrices and inner <= self._matrices.columns
        _require("a product has results of another shape, or more of k than of columns", is_met=is_known)
        if left == _LEFT:
            places = (Place.ROW, Place.COLUMN)
            return _Group(instance, body, places, _FIRST_OF_EPILOGUE, left, (a_row, a_inner), (b_inner, b_column))
        places = (Place.COLUMN, Place.ROW)
        return _Group(instance, body, places, _FIRST_OF_EPILOGUE, left, (b_column, b_inner), (a_inner, a_row))

    def _stage(self, number: int, group: _Group) -> Stage:
        product = None if group.left is None else self._product(group, group.left)
        reads = group.reads()
        strides = group.instance.lowered.strides[group.first_input :][: len(reads)]
        body_inputs = group.body.inputs[0 if product is None else 1 :]
        inputs = tuple([self._input(group, *each) for each in zip(reads, strides, body_inputs, strict=True)])
        for node in group.body.nodes:
            if node.op == "reduce":
                is_known = node.operand_dtype is dtypes.float32 and node.detail in _REDUCTIONS
                _require("an iteration reduces other values than float32, or to positions", is_met=is_known)
                source = ReducedValue(number, node.operands[0])
                self._exchanged[source] = Exchanged(source, self._matrices.columns, None, (0, 0))
        outputs = tuple(map(self._output, group.instance.written()))
        return Stage(product, group.body, group.places, (*strides, *self._store_strides[number]), inputs, outputs)

    def _product(self, group: _Group, left: int) -> StageProduct:
        operand, right = group.instance.operands[left], group.instance.operands[group.right]
        _require("both operands of a product are computed by the loop", is_met=not self._carrying.computes(right.value))
        is_new = operand.value in self._carrying.written
        known = (
            self._left_computed(group, operand, is_new=is_new) if self._carrying.computes(operand.value) else operand
        )
        if isinstance(known, Operand):
            number, inner = self._number(operand), group.instance.lowered.sizes[2]
            self._exchanged[known] = Exchanged(None, inner, number, self._matrices.without_ones(group.left_steps))
        number = [*self._exchanged].index(known)
        return StageProduct(number, is_new, self._number(right), group.right_strides)

    def _left_computed(self, group: _Group, operand: Operand, *, is_new: bool) -> Source:
        """Returns what writes the left operand of a product, which is exchanged then."""
        source = self._carrying.now(operand.value) if is_new else self._carrying.before(operand.value)
        assert source is not None, "a product multiplies what the loop computes"
        is_whole = not operand.layout.offset and not operand.layout.moves
        _require("a product multiplies a part of a computed value", is_met=is_whole)
        steps = self._matrices.without_ones(group.left_steps)
        is_same = steps == self._written_steps(source) and group.instance.lowered.sizes[2] == self._matrices.columns
        _require("a product multiplies a computed value in another order", is_met=is_same)
        known = self._exchanged.setdefault(source, Exchanged(source, self._matrices.columns, None, steps))
        if not is_new and known.initial is None:
            self._exchanged[source] = known._replace(initial=self._number(operand))
            self._carried.add(self._number(operand))
        return source

    def _input(self, group: _Group, operand: Operand, strides: tuple[int, ...], argument: Argument) -> StageInput:
        source, number = self._carrying.now(operand.value), None
        if source is None:
            number = self._number(operand, strides, argument, group.places)
            source = self._carrying.before(operand.value)
            if source is not None:
                self._carried.add(number)
        if source is not None:
            steps = self._matrices.steps(strides, group.places)
            _require_in_place(operand, steps, self._written_steps(source))
        return StageInput(number, source)

    def _written_steps(self, source: Source) -> tuple[int, int]:
        """Returns by how many elements a written value moves along rows and columns."""
        return self._matrices.steps(self._store_strides[source.stage][source.store], self._groups[source.stage].places)

    def _output(self, operand: Operand) -> int | None:
        if operand.value not in self._carrying.stored:
            return None
        self._outputs.append(operand)
        return len(self._outputs) - 1

    def _number(self, operand: Operand, *known: object) -> int:
        """Returns the number of an operand that is read. Equal ones of which the same is `known` have one number."""
        number = self._numbers.setdefault((operand, *known), len(self._operands))
        if number == len(self._operands):
            self._operands.append(operand)
        return number


def _left_of(carrying: _Carrying, instance: Instance) -> int | None:
    """Returns which operand of a product the loop computes, None if none."""
    computed = [carrying.computes(instance.operands[number].value) for number in (_LEFT, _RIGHT)]
    return computed.index(True) if any(computed) else None


def _matrices_of(carrying: _Carrying, instances: list[Instance]) -> _Matrices:
    """Returns the rows and columns of the first product of what is computed, or else of what is reduced first."""
    for instance in instances:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, ProductKernel):
            *_, rows, columns, _ = sizes[: kernel.batch_rank + 3]
            left = _left_of(carrying, instance)
            if left is not None:
                return _Matrices(rows, columns) if left == _LEFT else _Matrices(columns, rows)
    for instance in instances:
        kernel, sizes = instance.lowered.kernel, instance.lowered.sizes
        if isinstance(kernel, LoopKernel) and kernel.has_inner:
            return _Matrices(prod(sizes[: kernel.rank]), sizes[kernel.rank])
    raise _Obstacle("an iteration takes several pointwise groups")


def _store_strides(group: _Group) -> _Strides:
    """Returns by how many elements each store of a group moves along the dimensions of its body."""
    instance, kernel = group.instance, group.instance.lowered.kernel
    if isinstance(kernel, ProductKernel) and kernel.epilogue is None:
        rows, columns = instance.lowered.sizes[:2]
        return ((columns if rows > 1 else 0, 1 if columns > 1 else 0),)
    return instance.lowered.strides[len(instance.read()) :]
