"""A program as a graph of primitive values. Each value is computed once, from values before it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fusewire_kernels.graph.views import Layout
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


class Form(Enum):
    """The kinds of primitive values. The table at the top of `op_builder` says which op becomes which."""

    INPUT = "input"
    SCALAR = "scalar"
    CONSTANT = "constant"
    POINTWISE = "pointwise"
    INDEX = "index"
    GATHER = "gather"
    REDUCTION = "reduction"
    PRODUCT = "product"
    LINE = "line"
    MATRICES = "matrices"
    ASSEMBLY = "assembly"
    STORE = "store"


# Python 3.11 takes longer to look up a member of an enum than to make a tuple.
INPUT, SCALAR, CONSTANT, POINTWISE, INDEX, GATHER, REDUCTION, PRODUCT, LINE, MATRICES, ASSEMBLY, STORE = Form

WHOLE = (LINE, MATRICES)  # what is computed of whole buffers, by a kernel that computes nothing else
SLOTS = (SCALAR, CONSTANT)  # what stands in the slot table itself
LEAVES = (INPUT, *SLOTS)  # what is not computed


class Operand(NamedTuple):
    """A view of a value's buffer."""

    value: int
    layout: Layout


class Gathered(NamedTuple):
    """The axis of a gather's data along which the index picks: its length, and its stride in elements."""

    extent: int
    stride: int


class Lines(NamedTuple):
    """The lines of a dense array of shape [before, length, behind].

    `run` is the number of elements of a run, for lines that are sorted; `segments` that of the segments of a line.
    """

    before: int
    length: int
    behind: int
    run: int
    segments: int = 0


class Matrices(NamedTuple):
    """The sizes of a batch of matrices: those of a `MatrixKernel`."""

    batch: int
    rows: int
    columns: int
    others: int
    is_upper: int


class Value(NamedTuple):
    """One primitive value; `shape` is the shape of its dense buffer, if it gets one.

    The operands of a POINTWISE or GATHER value are views that have the value's shape. `body` names the scalar body,
    the reduction, the work on lines or matrices, or "cast". The operands of a GATHER are the data and the index, and
    those of a LINE or of MATRICES are whole dense buffers. If a PRODUCT has `inner_axes`, no two strides express its
    right operand: of the axes of this, so many lie along k, behind those of the batch, and the others along columns.
    `scratch` is the assembly in which a LINE keeps what it needs. `origin` is the op's index in the program. Values of
    equal `kind` differ only in their origin and in the values that their operands view; the viewed values have equal
    dtypes, and are slots or not alike. If `kind` is None, nothing is known of equal ones.
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
    axes: Shape = ()  # that a reduction reduces
    gathered: Gathered | None = None
    lines: Lines | None = None
    matrices: Matrices | None = None
    scratch: int | None = None
    inner_axes: int = 0
    target: Operand | None = None  # what a store fills
    after: tuple[int, ...] = ()  # of a store: values that must be computed before, because it overwrites what they need
    kind: int | None = None

    @property
    def domain(self) -> Shape:
        """The shape of the set of points at which this value's work is done."""
        return self.operands[0].layout.shape if self.axes else self.shape


class Graph(NamedTuple):
    """The values of a program. `outputs[position]` is the value whose buffer is that live result.

    `is_needed[value]` tells whether an output depends on the value. (A value that is not needed is a cast without
    elements.) `uses[value]` counts how often needed values read the value, plus one if the value is live.
    `results[op]` is the value that the op's result is a view of, or a part of it; None if no live result depends on it.
    """

    values: tuple[Value, ...]
    outputs: tuple[int, ...]
    is_needed: tuple[bool, ...]
    uses: tuple[int, ...]
    results: tuple[int | None, ...]


def with_stores_beside_reads(graph: Graph) -> Graph:
    """Returns the graph in which stores wait for stores only: a kernel may then read what it overwrites."""
    values = [
        value._replace(after=tuple([each for each in value.after if graph.values[each].target is not None]))
        for value in graph.values
    ]
    return graph._replace(values=tuple(values))


def needs_and_uses(values: list[Value], outputs: tuple[int, ...]) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    """Returns `Graph.is_needed` and `Graph.uses`."""
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
