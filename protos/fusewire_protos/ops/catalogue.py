"""Lists all ops as data, one entry for each op. Client and server know ops only from here.

To add an op, write three things: an entry here, a body in `fusewire_kernels` and a NumPy twin of the body. A body is
a scalar expression, or an expansion into other ops. The entry of a reduction is its body too. The client's functions
are made from the entries. Functions with other parameters than their entry are written by hand. Codes identify ops on
the wire and are never reused.

`op` says what an entry consists of; `shape_rules` and `dtype_rules` have the rules.
"""

from __future__ import annotations

from fusewire_protos.ops.library_ops import LIBRARY_OPS
from fusewire_protos.ops.op import Attribute, AttributeKind, Category, DtypeRule, Op, ShapeRule
from fusewire_protos.ops.reductions import ALL, ANY, ARGMAX, ARGMIN, MAX, MIN, PROD, SUM, Reduction
from fusewire_protos.ops.rules.dtype_rules import (
    accumulating,
    at_places,
    bitwise,
    casting,
    comparing,
    counting,
    created,
    dividing,
    drawn,
    encoding,
    floating,
    from_bits,
    gathering,
    indexing,
    integral,
    logical,
    multiplying,
    numeric,
    promoting,
    replacing,
    seen_as_floats,
    seen_as_integers,
    selecting,
    shifting,
    spaced,
    testing,
)
from fusewire_protos.ops.rules.shape_rules import (
    along_axes,
    along_axis,
    along_some_axes,
    assign_slice,
    assign_strided,
    broadcast,
    broadcast_to,
    concatenate,
    given,
    matrix,
    one_hot,
    part,
    product,
    reduce,
    reduce_to_some,
    reshape,
    same,
    segments,
    strided,
    take,
    take_along,
    transpose,
    vector,
)
from fusewire_protos.ops.shapes import Region
from fusewire_protos.ops.strided import Strided

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
        name,
        code,
        category,
        operands,
        operands,
        attributes,
        broadcast,
        dtype_rule,
        exact,
        summary,
        selects=selects,
    )


def _reduction(reduction: Reduction, code: int, dtype_rule: DtypeRule, summary: str, *, exact: bool) -> Op:
    name, category, rule = (
        reduction.name,
        Category.REDUCTION,
        reduce if reduction.takes_nothing else reduce_to_some,
    )
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
    _pointwise("add", 1, 2, promoting, "`x1` + `x2`; of booleans, whether either is true.", exact=True),
    _pointwise("subtract", 2, 2, numeric, "`x1` − `x2`.", exact=True),
    _pointwise("multiply", 3, 2, promoting, "`x1` · `x2`; of booleans, whether both are true.", exact=True),
    _pointwise("divide", 4, 2, dividing, "`x1` / `x2`, a float; integers are divided in float64.", exact=True),
    _pointwise("floor_divide", 5, 2, counting, "`x1` / `x2` rounded down; of integers by 0, 0.", exact=True),
    _pointwise(
        "remainder",
        6,
        2,
        counting,
        "The remainder of floor_divide, with the sign of `x2`; of integers by 0, 0.",
        exact=True,
    ),
    _pointwise(
        "power",
        7,
        2,
        counting,
        "`x1` to the power of `x2`. For integers and a negative power in an array: 0, except for the bases 1 and −1.",
        exact=False,
    ),
    _pointwise("minimum", 8, 2, promoting, "The lesser of two elements; NaN if either is NaN.", exact=True),
    _pointwise("maximum", 9, 2, promoting, "The greater of two elements; NaN if either is NaN.", exact=True),
    _pointwise("atan2", 10, 2, floating, "The angle of the point (`x2`, `x1`) in radians, from −π to π.", exact=False),
    _pointwise("clip", 11, 3, promoting, "`x1` limited to values from `x2` to `x3`.", exact=True),
    _pointwise("where", 12, 3, selecting, "`x2` where `x1` is true, else `x3`.", exact=True, selects=True),
    _pointwise("equal", 16, 2, comparing, "Whether `x1` is equal to `x2`.", exact=True),
    _pointwise("not_equal", 17, 2, comparing, "Whether `x1` differs from `x2`.", exact=True),
    _pointwise("less", 18, 2, comparing, "Whether `x1` is less than `x2`.", exact=True),
    _pointwise("less_equal", 19, 2, comparing, "Whether `x1` is less than `x2` or equal to it.", exact=True),
    _pointwise("greater", 20, 2, comparing, "Whether `x1` is greater than `x2`.", exact=True),
    _pointwise("greater_equal", 21, 2, comparing, "Whether `x1` is greater than `x2` or equal to it.", exact=True),
    _pointwise("logical_and", 22, 2, logical, "Whether both are true; numbers other than 0 are true.", exact=True),
    _pointwise("logical_or", 23, 2, logical, "Whether either is true; numbers other than 0 are true.", exact=True),
    _pointwise(
        "logical_xor", 24, 2, logical, "Whether exactly one is true; numbers other than 0 are true.", exact=True
    ),
    _pointwise("logical_not", 25, 1, logical, "Whether `x` is false or 0.", exact=True),
    _pointwise("bitwise_and", 26, 2, bitwise, "The bits that are set in both integers.", exact=True),
    _pointwise("bitwise_or", 27, 2, bitwise, "The bits that are set in either integer.", exact=True),
    _pointwise("bitwise_xor", 28, 2, bitwise, "The bits that are set in exactly one of two integers.", exact=True),
    _pointwise(
        "bitwise_invert", 29, 1, bitwise, "The bits that are not set; of a boolean, whether it is false.", exact=True
    ),
    _pointwise("bitwise_left_shift", 33, 2, shifting, "`x1` · 2^`x2`, less the bits shifted out.", exact=True),
    _pointwise("bitwise_right_shift", 34, 2, shifting, "`x1` / 2^`x2` rounded down.", exact=True),
    _pointwise(
        "gcd", 35, 2, integral, "The greatest common divisor of two integers, without sign; of 0 and 0, 0.", exact=True
    ),
    _pointwise("isnan", 30, 1, testing, "Whether `x` is NaN.", exact=True),
    _pointwise("isinf", 31, 1, testing, "Whether `x` is infinite.", exact=True),
    _pointwise("isfinite", 32, 1, testing, "Whether `x` is neither infinite nor NaN.", exact=True),
    _pointwise("negative", 40, 1, numeric, "−`x`.", exact=True),
    _pointwise("abs", 41, 1, promoting, "`x` without its sign; the least integer stays negative.", exact=True),
    _pointwise("sign", 42, 1, numeric, "1, 0 or −1: the sign of `x`; of NaN, NaN.", exact=True),
    _pointwise("square", 43, 1, counting, "`x` · `x`.", exact=True),
    _pointwise("round", 44, 1, promoting, "The nearest whole number; of two equally near, the even one.", exact=True),
    _pointwise("floor", 45, 1, promoting, "The greatest whole number that is not above `x`.", exact=True),
    _pointwise("ceil", 46, 1, promoting, "The least whole number that is not below `x`.", exact=True),
    _pointwise("trunc", 47, 1, promoting, "`x` without its fraction.", exact=True),
    _pointwise("sqrt", 48, 1, floating, "The square root; NaN below 0.", exact=True),
    _pointwise("rsqrt", 49, 1, floating, "1 divided by the square root.", exact=False),
    _pointwise("exp", 50, 1, floating, "e to the power of `x`.", exact=False),
    _pointwise("expm1", 51, 1, floating, "e to the power of `x`, minus 1; accurate near 0.", exact=False),
    _pointwise("log", 52, 1, floating, "The natural logarithm; NaN below 0.", exact=False),
    _pointwise("log1p", 53, 1, floating, "The natural logarithm of 1 + `x`; accurate near 0.", exact=False),
    _pointwise("exp2", 54, 1, floating, "2 to the power of `x`.", exact=False),
    _pointwise("log2", 55, 1, floating, "The logarithm to base 2; NaN below 0.", exact=False),
    _pointwise("log10", 56, 1, floating, "The logarithm to base 10; NaN below 0.", exact=False),
    _pointwise("sin", 57, 1, floating, "The sine of an angle in radians.", exact=False),
    _pointwise("cos", 58, 1, floating, "The cosine of an angle in radians.", exact=False),
    _pointwise("tan", 59, 1, floating, "The tangent of an angle in radians.", exact=False),
    _pointwise("tanh", 60, 1, floating, "The hyperbolic tangent.", exact=False),
    _pointwise("sigmoid", 61, 1, floating, "1 / (1 + exp(−`x`)).", exact=False),
    _pointwise("relu", 62, 1, numeric, "`x` where it is positive, else 0.", exact=True),
    _pointwise("gelu", 63, 1, floating, "`x` · Φ(`x`), Φ the normal distribution function, by erf.", exact=False),
    _pointwise("silu", 64, 1, floating, "`x` times its sigmoid.", exact=False),
    _pointwise("softplus", 65, 1, floating, "The logarithm of 1 + exp(`x`).", exact=False),
    _pointwise("erf", 66, 1, floating, "The error function.", exact=False),
    _pointwise(
        "normal_of_bits", 67, 1, from_bits, "The normal number of mean 0 and variance 1 at these bits.", exact=True
    ),
    _pointwise("exponential_of_bits", 68, 1, from_bits, "The exponential number of mean 1 at these bits.", exact=True),
    Op(
        "astype",
        70,
        Category.POINTWISE,
        1,
        1,
        (_DTYPE,),
        same,
        casting,
        is_exact=True,
        summary="The same values in another dtype.",
    ),
    _pointwise("bits_of_float", 71, 1, seen_as_integers, "The bits of a float.", exact=True, selects=True),
    _pointwise("float_of_bits", 72, 1, seen_as_floats, "The float of these bits.", exact=True, selects=True),
)

_REDUCTIONS = (
    _reduction(SUM, 80, accumulating, "The sum along `axis`.", exact=False),
    _reduction(PROD, 81, accumulating, "The product along `axis`.", exact=False),
    _reduction(MIN, 82, promoting, "The least element along `axis`; NaN if any element is.", exact=False),
    _reduction(MAX, 83, promoting, "The greatest element along `axis`; NaN if any element is.", exact=False),
    _reduction(ANY, 84, logical, "Whether any element along `axis` is true or not 0.", exact=True),
    _reduction(ALL, 85, logical, "Whether every element along `axis` is true or not 0.", exact=True),
    _reduction(ARGMIN, 86, indexing, "The index of the first least element along an axis.", exact=True),
    _reduction(ARGMAX, 87, indexing, "The index of the first greatest element along an axis.", exact=True),
)

_COMPOSITES = (
    _composite("mean", 90, 1, _AXES, reduce, dividing, "The sum along `axis` divided by the number of elements."),
    # The second operand of var and std is the correction: these ops divide by n − correction.
    _composite("var", 91, 2, _AXES, reduce, dividing, "The mean squared distance from the mean."),
    _composite("std", 92, 2, _AXES, reduce, dividing, "The square root of the variance."),
    _composite(
        "logsumexp",
        93,
        1,
        _AXES,
        reduce_to_some,
        floating,
        "The logarithm of the sum of exponentials along `axis`, without overflow; of no elements, −∞.",
    ),
    _composite(
        "softmax", 94, 1, _ALONG, along_some_axes, floating, "exp(`x`) / its sum along `axis`, without overflow."
    ),
    _composite("log_softmax", 95, 1, _ALONG, along_some_axes, floating, "The logarithm of softmax, without underflow."),
    # The second operand of layer_norm is epsilon, added to the variance.
    _composite(
        "layer_norm", 96, 2, _ALONG, along_axes, floating, "(`x` − mean) / sqrt(variance + epsilon) along axes."
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
        product,
        multiplying,
        is_exact=False,
        summary="The matrix product; vectors and batches as in NumPy.",
    ),
)


def _scan(name: str, code: int, reduction: Reduction, dtype_rule: DtypeRule, summary: str, *, exact: bool) -> Op:
    """Returns the op that gives, at each position along an axis, the reduction of the elements up to there."""
    category = Category.LINE
    return Op(name, code, category, 1, 1, (_AXIS,), along_axis, dtype_rule, exact, summary, reduction=reduction)


def _segment(name: str, code: int, reduction: Reduction, dtype_rule: DtypeRule, summary: str) -> Op:
    """Returns a reduction of elements that have the same place. The places ascend along the axis."""
    category, attributes, is_exact = Category.LINE, (_AXIS, Attribute("segments", AttributeKind.DIM)), False
    rule = at_places(dtype_rule)
    return Op(name, code, category, 2, 2, attributes, segments, rule, is_exact, summary, reduction=reduction)


_LINES = (
    _scan("cumulative_sum", 140, SUM, accumulating, "The sums of the first elements along `axis`.", exact=False),
    _scan("cumulative_prod", 141, PROD, accumulating, "The products of the first elements along `axis`.", exact=False),
    _scan("cumulative_max", 142, MAX, promoting, "The greatest of the first elements along `axis`.", exact=True),
    _scan("cumulative_min", 143, MIN, promoting, "The least of the first elements along `axis`.", exact=True),
    Op(
        "argsort",
        144,
        Category.LINE,
        1,
        1,
        (_AXIS, Attribute("descending", AttributeKind.FLAG, False)),
        along_axis,
        indexing,
        is_exact=True,
        summary="The indices that sort `x` along `axis`, those of equal elements in order; NaN is greater than all "
        "numbers.",
    ),
    _segment(
        "segment_sum", 145, SUM, accumulating, "The sums of the elements of each place along `axis`; of no elements, 0."
    ),
    _segment(
        "segment_prod",
        146,
        PROD,
        accumulating,
        "The products of the elements of each place along `axis`; of no elements, 1.",
    ),
    _segment("segment_min", 147, MIN, promoting, "The least element of each place along `axis`; of no elements, 0."),
    _segment("segment_max", 148, MAX, promoting, "The greatest element of each place along `axis`; of no elements, 0."),
)

_VIEWS = (
    Op(
        "reshape",
        110,
        Category.VIEW,
        1,
        1,
        (_SHAPE,),
        reshape,
        promoting,
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
        transpose,
        promoting,
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
        broadcast_to,
        promoting,
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
        part,
        promoting,
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
        strided,
        promoting,
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
        concatenate,
        promoting,
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
        assign_slice,
        replacing,
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
        assign_strided,
        replacing,
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
        take,
        gathering,
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
        take_along,
        gathering,
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
        one_hot,
        encoding,
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
        given,
        created,
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
        vector,
        created,
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
        vector,
        spaced,
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
        matrix,
        created,
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
        given,
        drawn,
        is_exact=True,
        summary="Random bits in uint64, which a key and counters determine.",
    ),
)

OPS: tuple[Op, ...] = (
    *(_POINTWISE + _REDUCTIONS + _COMPOSITES + _PRODUCTS + _LINES + _VIEWS + _MOVES + _CREATES),
    *LIBRARY_OPS,
)
BY_CODE: dict[int, Op] = {op.code: op for op in OPS}
BY_NAME: dict[str, Op] = {op.name: op for op in OPS}
REDUCTIONS: dict[str, Reduction] = {op.reduction.name: op.reduction for op in OPS if op.reduction is not None}
