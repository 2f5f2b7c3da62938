"""What an entry of the catalogue says of an op: its operands and attributes, its rules, and what it means.

An operand is an array or a scalar. A scalar is an array of rank 0, and its value is sent with the bindings. Attributes
are part of the structure of a program. Each attribute has a kind, which defines the legal values. Kernels of pointwise
ops take the numbers among the attributes as arguments, so one kernel serves all values of these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.reductions import Reduction
from fusewire_protos.ops.results import ResultsRule
from fusewire_protos.ops.shapes import Region, Shape
from fusewire_protos.ops.strided import Strided

Attributes = tuple[Any, ...]  # the values of an op's attributes, in the order of `Op.attributes`


class Category(Enum):
    """Says how the elements of an op's result depend on the elements of its operands. The compiler decides by this."""

    POINTWISE = "pointwise"  # computes element i from element i of each operand, once all operands are broadcast
    REDUCTION = "reduction"  # makes one element from many, along axes
    PRODUCT = "product"  # matrix product
    LINE = "line"  # computes each line along an axis from the same line of its operand
    VIEW = "view"  # the same elements under other indices
    MOVE = "move"  # copies elements to other indices, or takes them from indices that an operand gives
    CREATE = "create"  # its operands are scalars
    COMPOSITE = "composite"  # defined by other ops; the compiler expands it
    LIBRARY = "library"  # of matrices; if these are not small, a call of the device's array library for one row alone


class AttributeKind(Enum):
    """Says which values of an attribute are legal on the wire. The server checks values before any rule gets them."""

    AXIS = "axis"  # int, 0..MAX_RANK−1
    AXES = "axes"  # ascending list of such ints
    DIM = "dim"  # int, 0..MAX_DIM
    DIMS = "dims"  # list of such ints
    PERMUTATION = "permutation"  # list of axes, any order
    STEPS = "steps"  # list of non-zero ints, |step| ≤ MAX_DIM
    STRIDES = "strides"  # list of ints, |stride| ≤ MAX_ELEMENTS
    INTEGER = "integer"  # int, |value| ≤ MAX_DIM
    FLOAT = "float"  # finite float; −0.0 is illegal, because −0.0 equals 0.0 but has other bits
    FLAG = "flag"  # bool
    DTYPE = "dtype"  # dtype code


class Attribute(NamedTuple):
    """An attribute of an op.

    `default` is the default of the parameter in the client's function. If `default` is None, users must pass a value;
    for axes, though, None means that the default is all axes.
    """

    name: str
    kind: AttributeKind
    default: int | float | None = None


class DtypeSignature(NamedTuple):
    """Holds the dtypes in which an op computes. The operands are cast to the dtypes `operands` first."""

    operands: tuple[DType, ...]
    result: DType


ShapeRule = Callable[[tuple[Shape, ...], Attributes], Shape]
DtypeRule = Callable[[tuple[DType, ...], Attributes], DtypeSignature]


@dataclass(frozen=True, eq=False)
class Op:
    """One entry of the catalogue. Instances are compared by identity.

    `most_operands` is None if the number of operands has no limit.
    `is_exact` says that IEEE 754 or integer arithmetic allows only one result. So Fusewire's result has the same bits
    as NumPy's. The reductions min and max are not exact: of 0.0 and −0.0 they return the element that they meet first.
    `summary` describes the result. It becomes the docstring of the client's function made from the entry. The
    docstring names a single operand `x`, and several operands `x1`, `x2` and so on.
    `part` is what the attributes describe if they describe a part of the first operand. Its starts are bindings.
    `selects` says that a pointwise or creating op copies elements of its operands bit for bit. Views and moves always
    do so. All other ops compute their results, and every NaN that an op computes has the same bits.
    `copied_operands` is the number of leading operands whose elements a view or a move copies, None if it copies all.
    These operands have the dtype of the result.
    `reduction` is how elements are combined by a reduction, or by an op on lines that combines some of their elements.
    `results` says which arrays the result holds, if an op computes several. It is None for all other ops.
    `core_rank` is how many last axes of its operands a library op computes with: 2 for matrices, 1 for lines. The axes
    before them are a batch. It is 0 for all other ops.
    """

    name: str
    code: int
    category: Category
    least_operands: int
    most_operands: int | None
    attributes: tuple[Attribute, ...]
    shape_rule: ShapeRule
    dtype_rule: DtypeRule
    is_exact: bool
    summary: str
    part: type[Region | Strided] | None = None
    selects: bool = False
    copied_operands: int | None = 0
    reduction: Reduction | None = None
    results: ResultsRule | None = None
    core_rank: int = 0

    @property
    def takes_starts(self) -> bool:
        return self.part is not None

    def starts(self, attributes: Attributes) -> int:
        """Returns how many slice starts an op with these attributes has. Slice starts are bindings."""
        if self.part is Strided:
            return 1
        return len(attributes[0]) if self.takes_starts else 0

    def numbers(self, attributes: Attributes) -> tuple[int | float, ...]:
        """Returns the attributes that a pointwise or composite op computes with, and nothing for other ops.

        The definition of such an op takes these numbers after the operands. Each number is converted to the dtype of
        the last operand, as a scalar operand would be.
        """
        if self.category not in _COMPUTING_WITH_NUMBERS:
            return ()
        numbered = zip(self.attributes, attributes, strict=True)
        return tuple([value for attribute, value in numbered if attribute.kind in _NUMBERS])

    def __repr__(self) -> str:
        return f"Op({self.name})"


_COMPUTING_WITH_NUMBERS = (Category.POINTWISE, Category.COMPOSITE)
_NUMBERS = (AttributeKind.INTEGER, AttributeKind.FLOAT)


def passes_bits_on(op: Op, operands: tuple[DType, ...], result: DType) -> bool:
    """Returns whether the op, after casting the operands to its dtypes, copies its result bit for bit from them."""
    is_copy = op.name == "astype" and operands[0] is result
    return op.selects or op.category in (Category.VIEW, Category.MOVE) or is_copy
