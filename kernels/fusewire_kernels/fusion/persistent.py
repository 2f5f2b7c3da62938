"""Decides whether one persistent kernel can run all iterations of a loop. Pure.

It can if each value that an iteration takes from the one before is known where it is needed:

- The body of the loop is one pointwise group, and each carried value is needed at the point at which it is computed.
  Then it stays in a register.
- The groups of the body, or of its rotated body (see `rotation`), are a few products with epilogues. Their left
  operands are carried values, or results of earlier products: their elements are sent to the blocks that multiply by
  them. All else that is carried, or that one group takes from another, must be needed at the point at which it is
  computed.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.codegen.cluster_shape import cluster_shape
from fusewire_kernels.codegen.kernel import (
    Argument,
    ArgumentKind,
    CarriedInput,
    Exchanged,
    LoopKernel,
    PersistentKernel,
    PersistentPoints,
    PersistentProducts,
    ProductKernel,
    Source,
    Stage,
    StageInput,
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
_MOST_STAGES = 8  # a thread has few registers for the columns of more products


_ELEMENT = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.ANY, Stride.ANY))
_STORE = LoopKernel(2, has_inner=False, inputs=(_ELEMENT,), nodes=(), stores=(Store(0, _ELEMENT),))  # stores a product

_Strides = tuple[tuple[int, ...], ...]  # of some arguments, along rows and columns


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


ROTATED_LAUNCHES = 2  # of a body that may be rotated (see `rotation`): the left operand, then the product


def left_operand_of(instances: list[Instance], launches: list[GroupedLaunch]) -> int | None:
    """Returns the value that the first of two launches computes as the left operand of the second, a product.

    Returns None if the launches are others.
    """
    first, second = launches
    if len(first.groups) != 1 or len(second.groups) != 1 or not isinstance(second.lowered.kernel, ProductKernel):
        return None
    value, layout = instances[second.groups[0]].operands[_LEFT]
    written = [operand.value for operand in instances[first.groups[0]].written()]
    return value if value in written and layout.is_dense else None


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
        if len(groups) == 1 and isinstance(groups[0].lowered.kernel, LoopKernel):
            return _points(_Carrying(program, graph, groups), groups[0], groups[0].lowered.kernel)
        return _Products(_Carrying(program, graph, groups)).found(groups)
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

    def now(self, value: int) -> Source | None:
        """Returns what writes a value in this iteration. None if no group does."""
        if value not in self.written:
            return None
        _require("several groups write parts of a value that another takes", is_met=value in self._whole)
        return self._whole[value]


def _points(carrying: _Carrying, instance: Instance, kernel: LoopKernel) -> Persistent:
    _require("an iteration reduces", is_met=not kernel.has_inner)
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


class _Products:
    """Builds the persistent kernel of a body of products."""

    def __init__(self, carrying: _Carrying) -> None:
        self._carrying = carrying
        self._operands: list[Operand] = []
        self._numbers: dict[object, int] = {}  # of operands that are read, by all that the kernel knows of them
        self._carried = set[int]()
        self._outputs: list[Operand] = []
        self._exchanged: dict[Source, int | None] = {}  # the operand that is initial, if any
        self._store_strides: list[_Strides] = []  # of each stage

    def found(self, groups: list[Instance]) -> Persistent:
        kernels = [each.lowered.kernel for each in groups]
        products = [each for each in kernels if isinstance(each, ProductKernel)]
        _require("an iteration takes several groups, not all of them products", is_met=len(products) == len(kernels))
        _require(f"an iteration takes more than {_MOST_STAGES} products", is_met=len(products) <= _MOST_STAGES)
        rows, _, inner = groups[0].lowered.sizes[:3]
        for instance, kernel in zip(groups, products, strict=True):
            _require_square(instance, kernel, rows, inner)
            self._store_strides.append(_store_strides(instance, kernel, rows, inner))
        stages = [self._stage(*each) for each in zip(groups, products, self._store_strides, strict=True)]
        _require("no value is carried", is_met=bool(self._carried))
        exchanged = tuple([Exchanged(*each) for each in self._exchanged.items()])
        _require(
            "a graph is faster for products of this size, or they do not fit clusters",
            is_met=cluster_shape(rows, inner, len(stages), len(exchanged)) is not None,
        )
        reads = len(self._operands)
        _require_few(reads + len(self._outputs))
        return Persistent(
            PersistentProducts(rows, inner, tuple(stages), exchanged, reads),
            (rows, inner, inner),
            (*self._operands, *self._outputs),
            len(self._outputs),
            tuple(sorted(self._carried)),
            tuple(sorted({stage.right for stage in stages})),
        )

    def _stage(self, instance: Instance, kernel: ProductKernel, store_strides: _Strides) -> Stage:
        left, is_new = self._left(instance)
        right = instance.operands[_RIGHT]
        is_still = right.value not in self._carrying.written and self._carrying.before(right.value) is None
        _require("the right operand of a product is computed by the loop", is_met=is_still)
        along, across = instance.lowered.sizes[5:7]
        epilogue = kernel.epilogue or _STORE
        _require_known_places(epilogue)
        reads = instance.read()[_FIRST_OF_EPILOGUE:]
        strides = instance.lowered.strides[_FIRST_OF_EPILOGUE:][: len(reads)]
        return Stage(
            left,
            is_new,
            self._number(right),
            (along, across),
            epilogue,
            (*strides, *store_strides),
            tuple(map(self._input, reads, strides, epilogue.inputs[1:])),
            tuple(map(self._output, instance.written())),
        )

    def _left(self, instance: Instance) -> tuple[int, bool]:
        """Returns the number of the exchanged value that a product takes, and whether it is of the same iteration."""
        operand = instance.operands[_LEFT]
        rows, _, inner, along_rows, along_inner = instance.lowered.sizes[:5]
        is_whole = not operand.layout.offset and not operand.layout.moves
        is_dense = (along_inner == 1 or inner == 1) and (along_rows == inner or rows == 1)
        source = self._carrying.now(operand.value)
        is_new = source is not None
        source = source or self._carrying.before(operand.value)
        _require("the left operand of a product is not computed by the loop", is_met=source is not None)
        assert source is not None
        _require("the left operand is not the whole computed value", is_met=is_whole and is_dense)
        written = self._store_strides[source.stage][source.store]
        _require("the left operand is written in another order", is_met=written == _dense_strides(rows, inner))
        initial = self._exchanged.setdefault(source, None)
        if not is_new and initial is None:
            self._exchanged[source] = number = self._number(operand)
            self._carried.add(number)
        return [*self._exchanged].index(source), is_new

    def _input(self, operand: Operand, strides: tuple[int, ...], argument: Argument) -> StageInput:
        source, number = self._carrying.now(operand.value), None
        if source is None:
            number = self._number(operand, strides, argument)
            source = self._carrying.before(operand.value)
            if source is not None:
                self._carried.add(number)
        if source is not None:
            _require_in_place(operand, strides, self._store_strides[source.stage][source.store])
        return StageInput(number, source)

    def _output(self, operand: Operand) -> int | None:
        if operand.value not in self._carrying.stored:
            return None
        self._outputs.append(operand)
        return len(self._outputs) - 1

    def _number(self, operand: Operand, strides: tuple[int, ...] = (), argument: Argument | None = None) -> int:
        """Returns the number of an operand that is read. Equal ones that move alike have one number."""
        known = (operand, strides, argument)
        number = self._numbers.setdefault(known, len(self._operands))
        if number == len(self._operands):
            self._operands.append(operand)
        return number


def _require_square(instance: Instance, kernel: ProductKernel, rows: int, inner: int) -> None:
    _require("a product is not of float32", is_met=kernel.dtype is dtypes.float32)
    _require("it has a product of several matrices", is_met=kernel.batch_rank == 0)
    is_square = instance.lowered.sizes[:3] == (rows, inner, inner)
    _require("the results of a product have another shape than its left operand", is_met=is_square)


def _store_strides(instance: Instance, kernel: ProductKernel, rows: int, inner: int) -> _Strides:
    """Returns by how many elements each store of a product moves along rows and columns."""
    if kernel.epilogue is None:
        return (_dense_strides(rows, inner),)
    return instance.lowered.strides[len(instance.read()) :]


def _dense_strides(rows: int, columns: int) -> tuple[int, int]:
    """Returns the strides of a matrix in C order, 0 along dimensions of length 1."""
    return columns if rows > 1 else 0, 1 if columns > 1 else 0
