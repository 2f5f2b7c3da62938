"""A program as a graph of primitive values, each computed once from values before it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fusewire_kernels.graph.views import Layout
from fusewire_protos import dtypes
from fusewire_protos.dtypes import DType
from fusewire_protos.shapes import Shape


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


# Python 3.11 takes longer to look up a member of an enum than to make a tuple.
INPUT, SCALAR, CONSTANT, POINTWISE, INDEX, GATHER, REDUCTION, PRODUCT, ASSEMBLY, STORE = Form

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
    axes: Shape = ()  # that a reduction reduces
    gathered: Gathered | None = None
    target: Operand | None = None  # what a store fills
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
