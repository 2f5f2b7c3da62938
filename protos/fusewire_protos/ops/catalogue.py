"""Lists all ops as data, one entry for each op. Client and server take shape and dtype rules only from here.

To add an op, write three things: an entry here, a body in `fusewire_kernels` and a NumPy twin of the body. A body is
a scalar expression, or an expansion into other ops. The entry of a reduction is its body too. The client's functions
are made from the entries. Functions with other parameters than their entry are written by hand. Codes identify ops on
the wire and are never reused.

An operand is an array or a scalar. A scalar is an array of rank 0, and its value is sent with the bindings. Attributes
are part of the structure of a program. Each attribute has a kind, which defines the legal values. Kernels of pointwise
ops take the numbers among the attributes as arguments, so one kernel serves all values of these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, NamedTuple

from fusewire_protos.errors import ArgumentError, DtypeError, ShapeError
from fusewire_protos.ops import dtypes, linear_algebra, shapes, strided
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.reductions import ALL, ANY, ARGMAX, ARGMIN, MAX, MIN, PROD, SUM, Reduction
from fusewire_protos.ops.results import ResultsRule
from fusewire_protos.ops.shapes import Region, Shape, Spec
from fusewire_protos.ops.strided import Strided

_MOST_DESCRIBED = 8  # operands that an error message lists

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
    LIBRARY = "library"  # a call of the device's array library, which is never fused and computes for one row alone


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


def infer(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> Spec:
    """Returns the spec of the result.

    Raises ShapeError, DtypeError or ArgumentError, with a message that names the op and its operands.
    """
    check_arity(op, len(operands), attributes)
    try:
        result = op.dtype_rule(tuple(spec.dtype for spec in operands), attributes).result
        shape = op.shape_rule(tuple(spec.shape for spec in operands), attributes)
        return Spec(result, shapes.check(shape))
    except (ShapeError, DtypeError, ArgumentError) as error:
        raise type(error)(f"{op.name}({_described(operands)}): {error}") from None


def too_large(op: Op, operands: tuple[Spec, ...], result: Spec, limit_bytes: int) -> str:
    """Returns the error message for a result that is larger than an array may be. It names the setting of the limit."""
    return f"{op.name}({_described(operands)}): {size_beyond(result, limit_bytes)}"


def size_beyond(spec: Spec, limit_bytes: int) -> str:
    """Returns the part of the message of `too_large` that gives the size and the setting."""
    return f"{_described((spec,))} has {spec.size_bytes} bytes; limits.array_bytes = {limit_bytes}"


def _described(operands: tuple[Spec, ...]) -> str:
    """Returns the specs as text. If there are more than eight, the text has the first eight and the total number."""
    named = [f"{spec.dtype.name}{list(spec.shape)}" for spec in operands[:_MOST_DESCRIBED]]
    more = [f"… {len(operands)} in all"] if len(operands) > _MOST_DESCRIBED else []
    return ", ".join([*named, *more])


def check_arity(op: Op, operands: int, attributes: Attributes) -> None:
    """Raises ArgumentError unless the op takes that many operands and attributes."""
    too_many = op.most_operands is not None and operands > op.most_operands
    if operands < op.least_operands or too_many:
        wanted = op.least_operands if op.most_operands == op.least_operands else f"{op.least_operands} or more"
        raise ArgumentError(f"{op.name} takes {wanted} operands, not {operands}")
    if len(attributes) != len(op.attributes):
        raise ArgumentError(f"{op.name} takes {len(op.attributes)} attributes, not {len(attributes)}")


def region_of(attributes: Attributes) -> Region:
    """Returns the region that the attributes of `slice` or `assign_slice` describe."""
    return Region(*attributes)


def check_starts(op: Op, shape: Shape, attributes: Attributes, starts: Sequence[int]) -> None:
    """Raises ArgumentError unless the part of an array of `shape` that begins at `starts` lies inside the array."""
    if op.part is Strided:
        strided.check_start(shape, Strided(*attributes), *starts)
    else:
        shapes.check_starts(shape, region_of(attributes), starts)


# ---- shape rules ----


def _broadcast(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.broadcast(*operands)


def _same(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return operands[0]


def _reduce(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands[1:])
    return shapes.reduce(operands[0], attributes[0], keepdims=attributes[1])


def _reduce_to_some(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    """Is the rule of reductions without an identity, such as `max`. Raises ShapeError if it would reduce no element."""
    result = shapes.reduce(operands[0], attributes[0], keepdims=attributes[1])
    _require_elements(operands[0], attributes[0])
    return result


def _along_axes(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands[1:])
    shapes.reduce(operands[0], attributes[0], keepdims=True)
    return operands[0]


def _along_some_axes(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    """Is the rule of ops that need the greatest element along axes. Raises ShapeError if no element lies there."""
    result = _along_axes(operands, attributes)
    _require_elements(operands[0], attributes[0])
    return result


def _product(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.product(*operands)


def _given(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands)
    shape: Shape = attributes[0]
    return shape


def _vector(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands)
    return (attributes[0],)


def _matrix(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return (attributes[0], attributes[1])


def _reshape(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.reshape(operands[0], attributes[0])


def _transpose(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.transpose(operands[0], attributes[0])


def _broadcast_to(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.broadcast_to(operands[0], attributes[0])


def _slice(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.region(operands[0], region_of(attributes))


def _assign_slice(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    target, value = operands
    shapes.broadcast_to(value, shapes.region(target, region_of(attributes)))
    return target


def _strided(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    part = Strided(*attributes)
    strided.check(operands[0], part)
    return part.shape


def _assign_strided(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    target, value = operands
    shapes.broadcast_to(value, _strided((target,), attributes))
    strided.check_distinct(Strided(*attributes))
    return target


def _concatenate(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.concatenate(operands, attributes[0])


def _take(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.take(operands[0], operands[1], attributes[0])


def _one_hot(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return (*operands[0], attributes[0])


def _along_axis(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    shapes.reduce(operands[0], (attributes[0],), keepdims=True)
    return operands[0]


def _take_along(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    data, indices = operands
    (axis,) = attributes
    wanted = shapes.reduce(data, (axis,), keepdims=True)
    if len(indices) != len(data) or shapes.reduce(indices, (axis,), keepdims=True) != wanted:
        raise ShapeError(f"indices of shape {indices} do not lie along axis {axis} of {data}")
    if data[axis] == 0 and 0 not in indices:
        raise ShapeError(f"axis {axis} of {data} has no elements")
    return indices


def _segments(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    data, places = operands
    axis, segments = attributes
    shapes.reduce(data, (axis,), keepdims=True)
    if places != (data[axis],):
        raise ShapeError(f"places of shape {places} do not lie along axis {axis} of {data}")
    return (*data[:axis], segments, *data[axis + 1 :])


def _require_elements(shape: Shape, axes: Shape) -> None:
    if prod(shape[axis] for axis in axes) == 0:
        raise ShapeError(f"no identity to reduce the empty axes {axes} of {shape}")


def _require_scalars(operands: tuple[Shape, ...]) -> None:
    for shape in operands:
        if shape:
            raise ShapeError(f"a scalar is required, not an array of shape {shape}")


# ---- dtype rules: each maps operand dtypes and attributes to the dtypes of computation and result ----


def _all(dtype: DType, operands: tuple[DType, ...]) -> tuple[DType, ...]:
    return (dtype,) * len(operands)


def _promoting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    return DtypeSignature(_all(common, operands), common)


def _numeric(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Does the same as `_promoting`, but raises DtypeError for booleans, for which the op is not defined."""
    common = dtypes.promote_all(operands)
    if common.is_boolean:
        raise DtypeError("not defined for bool; cast with astype first")
    return DtypeSignature(_all(common, operands), common)


def _dividing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.quotient(dtypes.promote_all(operands))
    return DtypeSignature(_all(common, operands), common)


def _floating(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of functions such as exp. Of several integers each is a float, as NumPy finds the dtype."""
    has_float = any(dtype.is_floating for dtype in operands)
    common = dtypes.promote_all(operands if has_float else map(dtypes.to_floating, operands))
    return DtypeSignature(_all(common, operands), common)


def _counting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Does the same as `_promoting`, but turns booleans into int8."""
    common = dtypes.promote_all(operands)
    common = dtypes.int8 if common.is_boolean else common
    return DtypeSignature(_all(common, operands), common)


def _comparing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    return DtypeSignature(_all(common, operands), dtypes.bool_)


def _testing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of isnan, isinf and isfinite: the operand may have any dtype, and the result is boolean."""
    return DtypeSignature(operands, dtypes.bool_)


def _logical(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return DtypeSignature(_all(dtypes.bool_, operands), dtypes.bool_)


def _bitwise(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    if common.is_floating:
        raise DtypeError(f"not defined for {common.name}; only for bool and integers")
    return DtypeSignature(_all(common, operands), common)


def _shifting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    _bitwise(operands, attributes)
    return _counting(operands, attributes)


def _integral(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    _bitwise(operands, attributes)
    return _numeric(operands, attributes)


def _selecting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote(operands[1], operands[2])
    return DtypeSignature((dtypes.bool_, common, common), common)


def _casting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return DtypeSignature(operands, dtypes.from_code(attributes[0]))


def _accumulating(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of sum and prod: booleans and integers are accumulated in int64, unsigned integers in uint64."""
    (dtype,) = operands
    if not dtype.is_floating:
        dtype = dtypes.uint64 if dtype in dtypes.UNSIGNED else dtypes.int64
    return DtypeSignature((dtype,), dtype)


def _at_places(rule: DtypeRule) -> DtypeRule:
    """Returns the rule of ops whose second operand is places: integers, which are cast to int64."""

    def of_first(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
        data, places = operands
        if not places.is_integer:
            raise DtypeError(f"places have dtype {places.name}, not an integer one")
        computed = rule((data,), attributes)
        return DtypeSignature((*computed.operands, dtypes.int64), computed.result)

    return of_first


def _indexing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return DtypeSignature(operands, dtypes.int64)


def _multiplying(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    if common.is_boolean:
        raise DtypeError("matmul is not defined for bool; cast with astype first")
    return DtypeSignature((common, common), common)


def _gathering(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    data, indices = operands
    if not indices.is_integer:
        raise DtypeError(f"indices have dtype {indices.name}, not an integer one")
    return DtypeSignature((data, dtypes.int64), data)


def _encoding(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    if not operands[0].is_integer:
        raise DtypeError(f"one_hot takes integers, not {operands[0].name}")
    return DtypeSignature((dtypes.int64,), dtypes.from_code(attributes[1]))


def _replacing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of assignments: the assigned value is cast to the dtype of the array that receives the value."""
    return DtypeSignature(_all(operands[0], operands), operands[0])


def _from_bits(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of the ops that make float64 numbers of random bits, which are uint64."""
    if any(dtype is not dtypes.uint64 for dtype in operands):
        raise DtypeError(f"random bits are uint64, not {', '.join(dtype.name for dtype in operands)}")
    return DtypeSignature(operands, dtypes.float64)


def _drawn(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of random_bits: integers are cast to uint64, negative ones wrap around."""
    if not all(dtype.is_integer for dtype in operands):
        raise DtypeError("counters and keys are integers")
    return DtypeSignature(_all(dtypes.uint64, operands), dtypes.uint64)


def _of_matrices(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    dtype = linear_algebra.dtype_of(operands)
    return DtypeSignature(_all(dtype, operands), dtype)


def _created(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of most creating ops: the last attribute is the dtype, and scalars are cast to this dtype."""
    dtype = dtypes.from_code(attributes[-1])
    return DtypeSignature(_all(dtype, operands), dtype)


def _spaced(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of linspace: points are computed in float64, and the last attribute is the dtype of the result."""
    return DtypeSignature(_all(dtypes.float64, operands), dtypes.from_code(attributes[-1]))


# ---- the entries ----

_AXIS = Attribute("axis", AttributeKind.AXIS)
_AXES = (Attribute("axes", AttributeKind.AXES), Attribute("keepdims", AttributeKind.FLAG, False))
_ALONG = (Attribute("axes", AttributeKind.AXES, -1),)
_REGION = (
    Attribute("axes", AttributeKind.AXES),
    Attribute("lengths", AttributeKind.DIMS),
    Attribute("steps", AttributeKind.STEPS),
    Attribute("dropped", AttributeKind.AXES),
)
_SHAPE = Attribute("shape", AttributeKind.DIMS)
_STRIDED = (_SHAPE, Attribute("strides", AttributeKind.STRIDES))
_DTYPE = Attribute("dtype", AttributeKind.DTYPE)


def _pointwise(
    name: str,
    code: int,
    operands: int,
    dtype_rule: DtypeRule,
    summary: str,
    *attributes: Attribute,
    exact: bool,
    selects: bool = False,
) -> Op:
    category = Category.POINTWISE
    return Op(
        name, code, category, operands, operands, attributes, _broadcast, dtype_rule, exact, summary, selects=selects
    )


def _reduction(reduction: Reduction, code: int, dtype_rule: DtypeRule, summary: str, *, exact: bool) -> Op:
    name, category, rule = reduction.name, Category.REDUCTION, _reduce if reduction.takes_nothing else _reduce_to_some
    return Op(name, code, category, 1, 1, _AXES, rule, dtype_rule, exact, summary, reduction=reduction)


def _composite(
    name: str,
    code: int,
    operands: int,
    attributes: tuple[Attribute, ...],
    shape_rule: ShapeRule,
    dtype_rule: DtypeRule,
    summary: str,
) -> Op:
    category, is_exact = Category.COMPOSITE, False
    return Op(name, code, category, operands, operands, attributes, shape_rule, dtype_rule, is_exact, summary)


_POINTWISE = (
    _pointwise("add", 1, 2, _promoting, "`x1` + `x2`; of booleans, whether either is true.", exact=True),
    _pointwise("subtract", 2, 2, _numeric, "`x1` − `x2`.", exact=True),
    _pointwise("multiply", 3, 2, _promoting, "`x1` · `x2`; of booleans, whether both are true.", exact=True),
    _pointwise("divide", 4, 2, _dividing, "`x1` / `x2`, a float; integers are divided in float64.", exact=True),
    _pointwise("floor_divide", 5, 2, _counting, "`x1` / `x2` rounded down; of integers by 0, 0.", exact=True),
    _pointwise(
        "remainder",
        6,
        2,
        _counting,
        "The remainder of floor_divide, with the sign of `x2`; of integers by 0, 0.",
        exact=True,
    ),
    _pointwise(
        "power",
        7,
        2,
        _counting,
        "`x1` to the power of `x2`. For integers and a negative power in an array: 0, except for the bases 1 and −1.",
        exact=False,
    ),
    _pointwise("minimum", 8, 2, _promoting, "The lesser of two elements; NaN if either is NaN.", exact=True),
    _pointwise("maximum", 9, 2, _promoting, "The greater of two elements; NaN if either is NaN.", exact=True),
    _pointwise("atan2", 10, 2, _floating, "The angle of the point (`x2`, `x1`) in radians, from −π to π.", exact=False),
    _pointwise("clip", 11, 3, _promoting, "`x1` limited to values from `x2` to `x3`.", exact=True),
    _pointwise("where", 12, 3, _selecting, "`x2` where `x1` is true, else `x3`.", exact=True, selects=True),
    _pointwise("equal", 16, 2, _comparing, "Whether `x1` is equal to `x2`.", exact=True),
    _pointwise("not_equal", 17, 2, _comparing, "Whether `x1` differs from `x2`.", exact=True),
    _pointwise("less", 18, 2, _comparing, "Whether `x1` is less than `x2`.", exact=True),
    _pointwise("less_equal", 19, 2, _comparing, "Whether `x1` is less than `x2` or equal to it.", exact=True),
    _pointwise("greater", 20, 2, _comparing, "Whether `x1` is greater than `x2`.", exact=True),
    _pointwise("greater_equal", 21, 2, _comparing, "Whether `x1` is greater than `x2` or equal to it.", exact=True),
    _pointwise("logical_and", 22, 2, _logical, "Whether both are true; numbers other than 0 are true.", exact=True),
    _pointwise("logical_or", 23, 2, _logical, "Whether either is true; numbers other than 0 are true.", exact=True),
    _pointwise(
        "logical_xor", 24, 2, _logical, "Whether exactly one is true; numbers other than 0 are true.", exact=True
    ),
    _pointwise("logical_not", 25, 1, _logical, "Whether `x` is false or 0.", exact=True),
    _pointwise("bitwise_and", 26, 2, _bitwise, "The bits that are set in both integers.", exact=True),
    _pointwise("bitwise_or", 27, 2, _bitwise, "The bits that are set in either integer.", exact=True),
    _pointwise("bitwise_xor", 28, 2, _bitwise, "The bits that are set in exactly one of two integers.", exact=True),
    _pointwise(
        "bitwise_invert", 29, 1, _bitwise, "The bits that are not set; of a boolean, whether it is false.", exact=True
    ),
    _pointwise("bitwise_left_shift", 33, 2, _shifting, "`x1` · 2^`x2`, less the bits shifted out.", exact=True),
    _pointwise("bitwise_right_shift", 34, 2, _shifting, "`x1` / 2^`x2` rounded down.", exact=True),
    _pointwise(
        "gcd", 35, 2, _integral, "The greatest common divisor of two integers, without sign; of 0 and 0, 0.", exact=True
    ),
    _pointwise("isnan", 30, 1, _testing, "Whether `x` is NaN.", exact=True),
    _pointwise("isinf", 31, 1, _testing, "Whether `x` is infinite.", exact=True),
    _pointwise("isfinite", 32, 1, _testing, "Whether `x` is neither infinite nor NaN.", exact=True),
    _pointwise("negative", 40, 1, _numeric, "−`x`.", exact=True),
    _pointwise("abs", 41, 1, _promoting, "`x` without its sign; the least integer stays negative.", exact=True),
    _pointwise("sign", 42, 1, _numeric, "1, 0 or −1: the sign of `x`; of NaN, NaN.", exact=True),
    _pointwise("square", 43, 1, _counting, "`x` · `x`.", exact=True),
    _pointwise("round", 44, 1, _promoting, "The nearest whole number; of two equally near, the even one.", exact=True),
    _pointwise("floor", 45, 1, _promoting, "The greatest whole number that is not above `x`.", exact=True),
    _pointwise("ceil", 46, 1, _promoting, "The least whole number that is not below `x`.", exact=True),
    _pointwise("trunc", 47, 1, _promoting, "`x` without its fraction.", exact=True),
    _pointwise("sqrt", 48, 1, _floating, "The square root; NaN below 0.", exact=True),
    _pointwise("rsqrt", 49, 1, _floating, "1 divided by the square root.", exact=False),
    _pointwise("exp", 50, 1, _floating, "e to the power of `x`.", exact=False),
    _pointwise("expm1", 51, 1, _floating, "e to the power of `x`, minus 1; accurate near 0.", exact=False),
    _pointwise("log", 52, 1, _floating, "The natural logarithm; NaN below 0.", exact=False),
    _pointwise("log1p", 53, 1, _floating, "The natural logarithm of 1 + `x`; accurate near 0.", exact=False),
    _pointwise("exp2", 54, 1, _floating, "2 to the power of `x`.", exact=False),
    _pointwise("log2", 55, 1, _floating, "The logarithm to base 2; NaN below 0.", exact=False),
    _pointwise("log10", 56, 1, _floating, "The logarithm to base 10; NaN below 0.", exact=False),
    _pointwise("sin", 57, 1, _floating, "The sine of an angle in radians.", exact=False),
    _pointwise("cos", 58, 1, _floating, "The cosine of an angle in radians.", exact=False),
    _pointwise("tan", 59, 1, _floating, "The tangent of an angle in radians.", exact=False),
    _pointwise("tanh", 60, 1, _floating, "The hyperbolic tangent.", exact=False),
    _pointwise("sigmoid", 61, 1, _floating, "1 / (1 + exp(−`x`)).", exact=False),
    _pointwise("relu", 62, 1, _numeric, "`x` where it is positive, else 0.", exact=True),
    _pointwise("gelu", 63, 1, _floating, "`x` · Φ(`x`), Φ the normal distribution function, by erf.", exact=False),
    _pointwise("silu", 64, 1, _floating, "`x` times its sigmoid.", exact=False),
    _pointwise("softplus", 65, 1, _floating, "The logarithm of 1 + exp(`x`).", exact=False),
    _pointwise("erf", 66, 1, _floating, "The error function.", exact=False),
    _pointwise(
        "normal_of_bits", 67, 1, _from_bits, "The normal number of mean 0 and variance 1 at these bits.", exact=True
    ),
    _pointwise("exponential_of_bits", 68, 1, _from_bits, "The exponential number of mean 1 at these bits.", exact=True),
    Op(
        "astype",
        70,
        Category.POINTWISE,
        1,
        1,
        (_DTYPE,),
        _same,
        _casting,
        is_exact=True,
        summary="The same values in another dtype.",
    ),
)

_REDUCTIONS = (
    _reduction(SUM, 80, _accumulating, "The sum along `axis`.", exact=False),
    _reduction(PROD, 81, _accumulating, "The product along `axis`.", exact=False),
    _reduction(MIN, 82, _promoting, "The least element along `axis`; NaN if any element is.", exact=False),
    _reduction(MAX, 83, _promoting, "The greatest element along `axis`; NaN if any element is.", exact=False),
    _reduction(ANY, 84, _logical, "Whether any element along `axis` is true or not 0.", exact=True),
    _reduction(ALL, 85, _logical, "Whether every element along `axis` is true or not 0.", exact=True),
    _reduction(ARGMIN, 86, _indexing, "The index of the first least element along an axis.", exact=True),
    _reduction(ARGMAX, 87, _indexing, "The index of the first greatest element along an axis.", exact=True),
)

_COMPOSITES = (
    _composite("mean", 90, 1, _AXES, _reduce, _dividing, "The sum along `axis` divided by the number of elements."),
    # The second operand of var and std is the correction: these ops divide by n − correction.
    _composite("var", 91, 2, _AXES, _reduce, _dividing, "The mean squared distance from the mean."),
    _composite("std", 92, 2, _AXES, _reduce, _dividing, "The square root of the variance."),
    _composite(
        "logsumexp",
        93,
        1,
        _AXES,
        _reduce_to_some,
        _floating,
        "The logarithm of the sum of exponentials along `axis`, without overflow; of no elements, −∞.",
    ),
    _composite(
        "softmax", 94, 1, _ALONG, _along_some_axes, _floating, "exp(`x`) / its sum along `axis`, without overflow."
    ),
    _composite(
        "log_softmax", 95, 1, _ALONG, _along_some_axes, _floating, "The logarithm of softmax, without underflow."
    ),
    # The second operand of layer_norm is epsilon, added to the variance.
    _composite(
        "layer_norm", 96, 2, _ALONG, _along_axes, _floating, "(`x` − mean) / sqrt(variance + epsilon) along axes."
    ),
)

_PRODUCTS = (
    Op(
        "matmul",
        100,
        Category.PRODUCT,
        2,
        2,
        (),
        _product,
        _multiplying,
        is_exact=False,
        summary="The matrix product; vectors and batches as in NumPy.",
    ),
)


def _scan(name: str, code: int, reduction: Reduction, dtype_rule: DtypeRule, summary: str, *, exact: bool) -> Op:
    """Returns the op that gives, at each position along an axis, the reduction of the elements up to there."""
    category = Category.LINE
    return Op(name, code, category, 1, 1, (_AXIS,), _along_axis, dtype_rule, exact, summary, reduction=reduction)


def _segment(name: str, code: int, reduction: Reduction, dtype_rule: DtypeRule, summary: str) -> Op:
    """Returns a reduction of elements that have the same place. The places ascend along the axis."""
    category, attributes, is_exact = Category.LINE, (_AXIS, Attribute("segments", AttributeKind.DIM)), False
    rule = _at_places(dtype_rule)
    return Op(name, code, category, 2, 2, attributes, _segments, rule, is_exact, summary, reduction=reduction)


_LINES = (
    _scan("cumulative_sum", 140, SUM, _accumulating, "The sums of the first elements along `axis`.", exact=False),
    _scan("cumulative_prod", 141, PROD, _accumulating, "The products of the first elements along `axis`.", exact=False),
    _scan("cumulative_max", 142, MAX, _promoting, "The greatest of the first elements along `axis`.", exact=True),
    _scan("cumulative_min", 143, MIN, _promoting, "The least of the first elements along `axis`.", exact=True),
    Op(
        "argsort",
        144,
        Category.LINE,
        1,
        1,
        (_AXIS, Attribute("descending", AttributeKind.FLAG, False)),
        _along_axis,
        _indexing,
        is_exact=True,
        summary="The indices that sort `x` along `axis`, those of equal elements in order; NaN is greater than all "
        "numbers.",
    ),
    _segment(
        "segment_sum",
        145,
        SUM,
        _accumulating,
        "The sums of the elements of each place along `axis`; of no elements, 0.",
    ),
    _segment(
        "segment_prod",
        146,
        PROD,
        _accumulating,
        "The products of the elements of each place along `axis`; of no elements, 1.",
    ),
    _segment("segment_min", 147, MIN, _promoting, "The least element of each place along `axis`; of no elements, 0."),
    _segment(
        "segment_max", 148, MAX, _promoting, "The greatest element of each place along `axis`; of no elements, 0."
    ),
)

_VIEWS = (
    Op(
        "reshape",
        110,
        Category.VIEW,
        1,
        1,
        (_SHAPE,),
        _reshape,
        _promoting,
        is_exact=True,
        summary="The same elements in another shape.",
        copied_operands=1,
    ),
    Op(
        "transpose",
        111,
        Category.VIEW,
        1,
        1,
        (Attribute("permutation", AttributeKind.PERMUTATION),),
        _transpose,
        _promoting,
        is_exact=True,
        summary="The same elements with the axes in another order.",
        copied_operands=1,
    ),
    Op(
        "broadcast_to",
        112,
        Category.VIEW,
        1,
        1,
        (_SHAPE,),
        _broadcast_to,
        _promoting,
        is_exact=True,
        summary="The same elements, repeated along axes of length 1 and along new ones.",
        copied_operands=1,
    ),
    Op(
        "slice",
        113,
        Category.VIEW,
        1,
        1,
        _REGION,
        _slice,
        _promoting,
        is_exact=True,
        summary="A regular part of an array.",
        part=Region,
        copied_operands=1,
    ),
    Op(
        "strided",
        114,
        Category.VIEW,
        1,
        1,
        _STRIDED,
        _strided,
        _promoting,
        is_exact=True,
        summary="The elements of an array that strides lead to.",
        part=Strided,
        copied_operands=1,
    ),
)

_MOVES = (
    Op(
        "concat",
        120,
        Category.MOVE,
        1,
        None,
        (_AXIS,),
        _concatenate,
        _promoting,
        is_exact=True,
        summary="Arrays joined along an axis.",
        copied_operands=None,
    ),
    Op(
        "assign_slice",
        121,
        Category.MOVE,
        2,
        2,
        _REGION,
        _assign_slice,
        _replacing,
        is_exact=True,
        summary="An array with a regular part of it replaced.",
        part=Region,
        copied_operands=None,
    ),
    Op(
        "assign_strided",
        125,
        Category.MOVE,
        2,
        2,
        _STRIDED,
        _assign_strided,
        _replacing,
        is_exact=True,
        summary="An array with the elements that strides lead to replaced.",
        part=Strided,
        copied_operands=None,
    ),
    Op(
        "take",
        122,
        Category.MOVE,
        2,
        2,
        (_AXIS,),
        _take,
        _gathering,
        is_exact=True,
        summary="The elements at indices along an axis; an index out of range means the first or the last.",
        copied_operands=1,
    ),
    Op(
        "take_along_axis",
        124,
        Category.MOVE,
        2,
        2,
        (_AXIS,),
        _take_along,
        _gathering,
        is_exact=True,
        summary="The elements of each line along an axis at that line's indices; an index out of range is limited.",
        copied_operands=1,
    ),
    Op(
        "one_hot",
        123,
        Category.MOVE,
        1,
        1,
        (Attribute("classes", AttributeKind.DIM), _DTYPE),
        _one_hot,
        _encoding,
        is_exact=True,
        summary="A last axis with a one at each index, zeros elsewhere.",
    ),
)

_CREATES = (
    # The operand of full is one scalar: the value of all elements.
    Op(
        "full",
        130,
        Category.CREATE,
        1,
        1,
        (_SHAPE, _DTYPE),
        _given,
        _created,
        is_exact=True,
        summary="An array of one number.",
        selects=True,
    ),
    # The operands of arange are two scalars: start and step. Element i is start + i·step, computed in the dtype's
    # accumulator. It is rounded after the product, again after the sum, and at last to the dtype.
    Op(
        "arange",
        131,
        Category.CREATE,
        2,
        2,
        (Attribute("length", AttributeKind.DIM), _DTYPE),
        _vector,
        _created,
        is_exact=True,
        summary="Numbers from start on, each larger by step.",
    ),
    # The operands of linspace are two scalars: start and step. The elements are computed as those of arange, but
    # always in float64. They are converted to the dtype at the end.
    Op(
        "linspace",
        132,
        Category.CREATE,
        2,
        2,
        (Attribute("length", AttributeKind.DIM), _DTYPE),
        _vector,
        _spaced,
        is_exact=True,
        summary="Numbers from start on, each larger by step, computed in float64.",
    ),
    Op(
        "eye",
        133,
        Category.CREATE,
        0,
        0,
        (
            Attribute("rows", AttributeKind.DIM),
            Attribute("columns", AttributeKind.DIM),
            Attribute("diagonal", AttributeKind.INTEGER),
            _DTYPE,
        ),
        _matrix,
        _created,
        is_exact=True,
        summary="Ones on a diagonal, zeros elsewhere.",
    ),
    # The operands of random_bits are three scalars: start, stream and key. Element i, in row-major order, is the first
    # two words of Philox4x32-10 under the key, at the counter whose lower 64 bits are start + i, and whose upper ones
    # are stream.
    Op(
        "random_bits",
        134,
        Category.CREATE,
        3,
        3,
        (_SHAPE,),
        _given,
        _drawn,
        is_exact=True,
        summary="Random bits in uint64, which a key and counters determine.",
    ),
)


def _library(name: str, code: int, operands: int, shape_rule: ShapeRule, summary: str, *attributes: Attribute) -> Op:
    """Returns an op of matrices that has one result."""
    category, is_exact = Category.LIBRARY, False
    return Op(name, code, category, operands, operands, attributes, shape_rule, _of_matrices, is_exact, summary)


def _library_of_several(name: str, code: int, results: ResultsRule, summary: str, *attributes: Attribute) -> Op:
    """Returns an op of matrices that computes several arrays. Its result holds them."""

    def packed(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
        return results(operands, attributes).packed

    return replace(_library(name, code, 1, packed, summary, *attributes), results=results)


_UPPER = Attribute("upper", AttributeKind.FLAG, False)

_LIBRARY = (
    _library("cholesky", 150, 1, linear_algebra.same, "The triangular Cholesky factors of matrices.", _UPPER),
    _library("solve", 151, 2, linear_algebra.solution, "The solutions of linear equations with several right sides."),
    _library("inv", 152, 1, linear_algebra.same, "The inverses of matrices."),
    _library("det", 153, 1, linear_algebra.number, "The determinants of matrices."),
    _library_of_several(
        "slogdet", 154, linear_algebra.sign_and_logarithm, "The signs and the logarithms of determinants."
    ),
    _library_of_several(
        "qr",
        155,
        linear_algebra.orthogonal_and_triangular,
        "The QR decompositions of matrices.",
        Attribute("complete", AttributeKind.FLAG, False),
    ),
    _library_of_several(
        "eigh",
        156,
        linear_algebra.values_and_vectors,
        "The eigenvalues of symmetric matrices in ascending order, and the eigenvectors; one triangle is read.",
        _UPPER,
    ),
    _library("eigvalsh", 157, 1, linear_algebra.side, "The eigenvalues of symmetric matrices.", _UPPER),
    _library_of_several(
        "svd",
        158,
        linear_algebra.singular_values_and_vectors,
        "The singular value decompositions of matrices.",
        Attribute("full", AttributeKind.FLAG, False),
    ),
    _library("svdvals", 159, 1, linear_algebra.diagonal, "The singular values of matrices, in descending order."),
)

OPS: tuple[Op, ...] = (
    _POINTWISE + _REDUCTIONS + _COMPOSITES + _PRODUCTS + _LINES + _VIEWS + _MOVES + _CREATES + _LIBRARY
)
BY_CODE: dict[int, Op] = {op.code: op for op in OPS}
BY_NAME: dict[str, Op] = {op.name: op for op in OPS}
REDUCTIONS: dict[str, Reduction] = {op.reduction.name: op.reduction for op in OPS if op.reduction is not None}
