"""Defines what each op means, as a rule in NumPy or a library with its interface. `reference` makes twins of the rules.

The rule of an exact op gives the same bits that a kernel must give. Any other rule computes in float64 and rounds once
to the op's dtype; kernels must agree with it within stated tolerances.

Defined results where NumPy warns or varies: integer division and remainder by zero give 0; an integer to a negative
power gives 0, except for the bases 1 and −1; a shift by a negative count, or by as many bits as there are, shifts all
bits out; integers wrap; of two equal operands (+0 and −0) minimum and maximum return the second, in float16 the first;
clip returns its operand where it equals a bound; min and max combine zeros in the one order of reductions; relu and
sign of −0 are +0. Conversions are those of `conversions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from fusewire_kernels.ops import fourier, linear_algebra, move_twins, order, random_numbers
from fusewire_kernels.ops.conversions import cast, narrow, widen
from fusewire_kernels.ops.written_parts import Twin, part_of
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.reductions import MAX, MIN, PROD, SUM, Reduction
from fusewire_protos.ops.shapes import Shape

Prepared = Callable[..., Any]  # (*operands) → the result; of an op with slice starts, (*operands, starts=starts)
Rule = Twin  # a twin whose operands already have the dtypes that the op computes in

# float32 sin, cos and tan take larger angles as 0: neighbouring float32 values are then more than a turn apart.
_ANGLE_LIMIT = 2.0**52


def rule_of(op: Op) -> Rule:
    """The rule of `op`. Raises LookupError if it has no twin."""
    return part_of(op.name, _RULES, "NumPy twin: add it to _RULES in ops/twin_rules.py")


def plain_function(rule: Rule, library: Any, *, has_rank: bool) -> Prepared | None:
    """The function of a rule that computes in the dtype of its operands; None if the rule does more than that."""
    if not isinstance(rule, _Computed):
        return None
    body = rule.body
    function: Prepared = getattr(library, body.name) if isinstance(body, _Named) else partial(body, library)
    if has_rank:
        return function
    return lambda *operands: library.asarray(function(*operands))  # of rank 0 NumPy gives scalars, not arrays


# ---- kinds of rules ----


@dataclass(frozen=True)
class _Computed:
    """The rule of an exact elementwise function: halves are computed in float32 and rounded once.

    For other dtypes the result is that of `body(library, *operands)`. `of_float16` is the body for float16, if it is
    another one.
    """

    body: Callable[..., Any]
    of_float16: Callable[..., Any] | None = None

    def __call__(self, library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        dtype = _dtype_of(operands[0])
        widened = [widen(library, operand, _dtype_of(operand)) for operand in operands]
        body = self.of_float16 if dtype is dtypes.float16 and self.of_float16 is not None else self.body
        result = library.asarray(body(library, *widened))
        return narrow(library, result, dtype) if result.dtype == np.float32 else result


def _accurate(body: Callable[..., Any]) -> Rule:
    """The rule of an elementwise function that is computed in float64 and rounded once."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        dtype = _dtype_of(operands[0])
        exact = [cast(library, operand, dtype, dtypes.float64) for operand in operands]
        return cast(library, library.asarray(body(library, *exact)), dtypes.float64, dtype)

    return rule


def _reducing(body: Callable[..., Any]) -> Rule:
    """The rule of an exact reduction: `body(library, rows)` reduces the last axis of rows[results, elements]."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        (array,) = operands
        dtype = _dtype_of(array)
        axes, keepdims = attributes
        result = body(library, _rows(library, widen(library, array, dtype), axes))
        narrowed = narrow(library, result, dtype) if result.dtype == np.float32 else result
        return narrowed.reshape(shapes.reduce(array.shape, axes, keepdims=keepdims))

    return rule


def _accumulating(body: Callable[..., Any]) -> Rule:
    """The rule of a reduction in float64, or of integers in their dtype; further operands are scalars of the op."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        array, *scalars = operands
        dtype = _dtype_of(array)
        wide = dtypes.float64 if dtype.is_floating else dtype
        axes, keepdims, *_ = attributes
        rows = _rows(library, cast(library, array, dtype, wide), axes)
        result = library.asarray(body(library, rows, *(cast(library, scalar, dtype, wide) for scalar in scalars)))
        return cast(library, result, wide, dtype).reshape(shapes.reduce(array.shape, axes, keepdims=keepdims))

    return rule


def _normalising(body: Callable[..., Any]) -> Rule:
    """As `_accumulating`, but `body` maps rows to rows: the result has the operand's shape."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        array, *scalars = operands
        dtype = _dtype_of(array)
        axes, *_ = attributes
        order = _rows_order(array.ndim, axes)
        wide = [cast(library, operand, dtype, dtypes.float64) for operand in (array, *scalars)]
        rows = body(library, _rows(library, wide[0], axes), *wide[1:])
        moved = rows.reshape(tuple(array.shape[axis] for axis in order))
        back = library.transpose(moved, tuple(order.index(axis) for axis in range(array.ndim)))
        return cast(library, back, dtypes.float64, dtype)

    return rule


def _dtype_of(array: Any) -> DType:
    return dtypes.from_numpy(array.dtype)


def _rows_order(rank: int, axes: Shape) -> tuple[int, ...]:
    return (*(axis for axis in range(rank) if axis not in axes), *axes)


def _rows(library: Any, array: Any, axes: Shape) -> Any:
    """`array` as [results, elements]: the elements of one result are a contiguous row, row-major over `axes`."""
    elements = prod(array.shape[axis] for axis in axes)
    results = prod(dim for axis, dim in enumerate(array.shape) if axis not in axes)
    moved = library.transpose(array, _rows_order(array.ndim, axes))
    return library.ascontiguousarray(moved.reshape(results, elements))


# ---- exact elementwise functions ----


def _minimum(library: Any, a: Any, b: Any) -> Any:
    return library.where((a < b) | (a != a), a, b)  # noqa: PLR0124 - NaN


def _maximum(library: Any, a: Any, b: Any) -> Any:
    return library.where((a > b) | (a != a), a, b)  # noqa: PLR0124 - NaN


def _first_minimum(library: Any, a: Any, b: Any) -> Any:
    return library.where((a <= b) | (a != a), a, b)  # noqa: PLR0124 - NaN


def _first_maximum(library: Any, a: Any, b: Any) -> Any:
    return library.where((a >= b) | (a != a), a, b)  # noqa: PLR0124 - NaN


def _clip(library: Any, x: Any, low: Any, high: Any) -> Any:
    return _first_minimum(library, _first_maximum(library, x, low), high)


def _relu(library: Any, x: Any) -> Any:
    return library.where(x <= 0, library.zeros_like(x), x)


def _sign(library: Any, x: Any) -> Any:
    signs = library.subtract((x > 0).astype(x.dtype), (x < 0).astype(x.dtype))
    return library.where(x == x, signs, x)  # noqa: PLR0124 - NaN


def _unless_floating(name: str) -> Callable[..., Any]:
    """round, floor, ceil, trunc: they change floats only."""

    def body(library: Any, x: Any) -> Any:
        return getattr(library, name)(x) if x.dtype.kind == "f" else x

    return body


def _floor_divide(library: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return library.where(b == 0, 0, library.floor_divide(a, library.where(b == 0, 1, b)))
    rest = library.fmod(a, b)
    quotient = (a - rest) / b
    quotient = library.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1, quotient)
    whole = library.floor(quotient)
    whole = library.where(quotient - whole > 0.5, whole + 1, whole)
    whole = library.where(quotient == 0, library.copysign(library.zeros_like(a), a / b), whole)
    return library.where(b == 0, a / b, whole)


def _remainder(library: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return library.where(b == 0, 0, library.remainder(a, library.where(b == 0, 1, b)))
    rest = library.fmod(a, b)
    moved = library.where((b < 0) != (rest < 0), rest + b, rest)
    return library.where(rest == 0, library.copysign(library.zeros_like(b), b), moved)


def _left_shift(library: Any, x: Any, count: Any) -> Any:
    is_within = _is_shift(x, count)
    return library.where(is_within, library.left_shift(x, library.where(is_within, count, 0)), 0)


def _right_shift(library: Any, x: Any, count: Any) -> Any:
    """A shift by the width or more leaves copies of the sign bit."""
    is_within = _is_shift(x, count)
    shifted = library.right_shift(x, library.where(is_within, count, 8 * x.dtype.itemsize - 1))
    return shifted if x.dtype.kind == "i" else library.where(is_within, shifted, 0)


def _is_shift(x: Any, count: Any) -> Any:
    return (count >= 0) & (count < 8 * x.dtype.itemsize)


def _is_nan(library: Any, x: Any) -> Any:
    return x != x  # noqa: PLR0124


def _is_infinite(library: Any, x: Any) -> Any:
    return (x == math.inf) | (x == -math.inf)


def _is_finite(library: Any, x: Any) -> Any:
    return ~(_is_nan(library, x) | _is_infinite(library, x))


@dataclass(frozen=True)
class _Named:
    """The array library's function of that name."""

    name: str

    def __call__(self, library: Any, *operands: Any) -> Any:
        return getattr(library, self.name)(*operands)


def _astype(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    (array,) = operands
    return cast(library, array, _dtype_of(array), dtypes.from_code(attributes[0]))


def _seen_as(kind: str) -> Rule:
    """The rule of the ops that give the same bits another dtype of their size."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        (array,) = operands
        return array.view(f"{kind}{8 * array.dtype.itemsize}")

    return rule


def _select(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return library.where(*operands)


# ---- other elementwise functions, in float64 ----

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _power(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    base, exponent = operands
    if _dtype_of(base).is_floating:
        return _accurate(_float_power)(library, operands, attributes, starts)
    power = library.power(base, library.where(exponent < 0, 0, exponent))
    if base.dtype.kind == "u":
        return power
    unit = library.where(base == -1, 1 - 2 * (exponent & 1), library.where(base == 1, 1, 0))
    return library.where(exponent < 0, unit, power).astype(base.dtype)


def _float_power(library: Any, base: Any, exponent: Any) -> Any:
    """`float_power`, because `power` uses the square root for exponent ½, which differs at −0 and −∞."""
    is_one = (base == 1) | (exponent == 0)  # NaN too: platforms differ for a signalling NaN
    return library.where(is_one, 1.0, library.float_power(base, exponent))


def _trigonometric(name: str) -> Rule:
    """The rule of sin, cos and tan."""
    plain, bounded = (_accurate(_Named(name)), _accurate(_of_bounded_angle(name)))

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        chosen = plain if operands[0].dtype == np.float64 else bounded
        return chosen(library, operands, attributes, starts)

    return rule


def _of_bounded_angle(name: str) -> Callable[..., Any]:
    def body(library: Any, x: Any) -> Any:
        return getattr(library, name)(library.where(library.abs(x) >= _ANGLE_LIMIT, x * 0, x))

    return body


def _sigmoid(library: Any, x: Any) -> Any:
    falling = library.exp(-library.abs(x))
    return library.where(x < 0, falling, 1.0) / (1.0 + falling)


def _silu(library: Any, x: Any) -> Any:
    """x · sigmoid(x), with the limit −0 at −∞."""
    bounded = library.where(x < -800.0, -800.0, x)
    return bounded * _sigmoid(library, bounded)


def _gelu(library: Any, x: Any) -> Any:
    """x · Φ(x) with Φ the normal distribution (no tanh approximation), with the limit −0 at −∞."""
    bounded = library.where(x < -40.0, -40.0, x)
    return 0.5 * bounded * _erfc(bounded * -math.sqrt(0.5))


def _softplus(library: Any, x: Any) -> Any:
    return library.where(x <= 0, 0.0, x) + library.log1p(library.exp(-library.abs(x)))


def _rsqrt(library: Any, x: Any) -> Any:
    return 1.0 / library.sqrt(x)


# ---- reductions of rows[results, elements] ----


def _row_reduction(name: str) -> Callable[..., Any]:
    def body(library: Any, rows: Any) -> Any:
        return getattr(library, name)(rows, axis=1)

    return body


def _extremum_of_rows(reduction: Reduction, combine: Callable[..., Any]) -> Callable[..., Any]:
    """min or max. Which of the zeros of a row it gives depends on the order, so a row of them is combined in ours."""

    def body(library: Any, rows: Any) -> Any:
        best = getattr(library, reduction.name)(rows, axis=1)
        if rows.dtype.kind != "f" or not bool((best == 0).any()):
            return best
        identity = reduction.identity_in(_dtype_of(rows))
        return library.where(best == 0, order.reduced(library, rows, partial(combine, library), identity), best)

    return body


def _mean(library: Any, rows: Any) -> Any:
    return library.sum(rows, axis=1) / np.float64(rows.shape[1])


def _variance(library: Any, rows: Any, correction: Any) -> Any:
    deviations = rows - _mean(library, rows)[:, None]
    return library.sum(deviations * deviations, axis=1) / library.maximum(rows.shape[1] - correction, 0.0)


def _deviation(library: Any, rows: Any, correction: Any) -> Any:
    return library.sqrt(_variance(library, rows, correction))


def _greatest(library: Any, rows: Any) -> Any:
    """The greatest element of each row, or 0 if it is infinite, to be subtracted before exp."""
    greatest = library.max(rows, axis=1)
    return library.where(library.isinf(greatest), 0.0, greatest)


def _logsumexp(library: Any, rows: Any) -> Any:
    greatest = _greatest(library, rows)
    return library.log(library.sum(library.exp(rows - greatest[:, None]), axis=1)) + greatest


def _softmax(library: Any, rows: Any) -> Any:
    powers = library.exp(rows - library.max(rows, axis=1)[:, None])
    return powers / library.sum(powers, axis=1)[:, None]


def _log_softmax(library: Any, rows: Any) -> Any:
    shifted = rows - library.max(rows, axis=1)[:, None]
    return shifted - library.log(library.sum(library.exp(shifted), axis=1))[:, None]


def _layer_norm(library: Any, rows: Any, epsilon: Any) -> Any:
    centred = rows - _mean(library, rows)[:, None]
    variance = _mean(library, centred * centred)
    return centred / library.sqrt(variance + epsilon)[:, None]


# ---- products ----


def _matmul(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    dtype = _dtype_of(operands[0])
    if dtype.is_floating and all(operand.ndim == 1 for operand in operands):
        return _product_of_vectors(library, operands, dtype)
    wide = dtypes.float64 if dtype.is_floating else dtype
    a, b = (library.ascontiguousarray(cast(library, operand, dtype, wide)) for operand in operands)
    return cast(library, library.asarray(library.matmul(a, b)), wide, dtype)


def _product_of_vectors(library: Any, operands: Sequence[Any], dtype: DType) -> Any:
    """The sum of the products of elements, which are rounded as the accumulator of the sum is."""
    wide = dtype.accumulator
    a, b = (cast(library, operand, dtype, wide) for operand in operands)
    total = _accumulating(_row_reduction("sum"))(library, [library.asarray(a * b)], ((0,), False), ())
    return cast(library, total, wide, dtype)


# ---- lines along an axis ----


def _cumulative(name: str) -> Rule:
    """The rule of sums and products of the first elements of each line: in float64, or of integers in their dtype."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        (array,) = operands
        dtype = _dtype_of(array)
        wide = dtypes.float64 if dtype.is_floating else dtype
        result = getattr(library, name)(cast(library, array, dtype, wide), axis=attributes[0])
        return cast(library, result, wide, dtype)

    return rule


def _running(better: Callable[..., Any]) -> Rule:
    """The rule of the best of the first elements of each line, by a function of two elements. Of zeros the last."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        (array,) = operands
        dtype = _dtype_of(array)
        lines = library.moveaxis(widen(library, array, dtype), attributes[0], -1).copy()
        distance = 1
        while distance < lines.shape[-1]:
            later = better(library, lines[..., :-distance], lines[..., distance:])
            lines = library.concatenate([lines[..., :distance], later], axis=-1)
            distance *= 2
        return narrow(library, library.ascontiguousarray(library.moveaxis(lines, -1, attributes[0])), dtype)

    return rule


def _segment(name: str, reduction: Reduction) -> Rule:
    """The rule of reductions of segments, by a function of NumPy."""

    def rule(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        array, places = operands
        dtype, (axis, segments) = _dtype_of(array), attributes
        wide = dtypes.float64 if dtype.is_floating else dtype
        lines = library.moveaxis(cast(library, array, dtype, wide), axis, 0)
        result = library.full((segments, *lines.shape[1:]), reduction.of_nothing, dtype=lines.dtype)
        bounds = [_first_not_below(places, place) for place in range(segments + 1)]
        for place, (begin, end) in enumerate(pairwise(bounds)):
            if begin < end:
                result[place] = getattr(library, name).reduce(lines[begin:end], axis=0, dtype=lines.dtype)
        return cast(library, library.ascontiguousarray(library.moveaxis(result, 0, axis)), wide, dtype)

    return rule


def _first_not_below(places: Any, place: int) -> int:
    """The index that bisection finds, for places that do not ascend too."""
    low, high = 0, len(places)
    while low < high:
        half = (low + high) // 2
        low, high = (half + 1, high) if places[half] < place else (low, half)
    return low


def _argsort(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    (array,) = operands
    axis, is_descending = attributes
    wide = widen(library, array, _dtype_of(array))
    if not is_descending:
        return library.argsort(wide, axis=axis, kind="stable")
    backwards = library.argsort(library.flip(wide, axis), axis=axis, kind="stable")
    return wide.shape[axis] - 1 - library.flip(backwards, axis)


_RULES: dict[str, Rule] = {
    **{
        name: _Computed(_Named(name))
        for name in (
            "add",
            "subtract",
            "multiply",
            "divide",
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
            "logical_not",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "negative",
            "abs",
            "sqrt",
        )
    },
    **{name: _accurate(_Named(name)) for name in ("exp", "expm1", "log", "log1p", "exp2", "log2", "log10", "tanh")},
    **{name: _trigonometric(name) for name in ("sin", "cos", "tan")},
    "floor_divide": _Computed(_floor_divide),
    "remainder": _Computed(_remainder),
    "power": _power,
    "minimum": _Computed(_minimum, _first_minimum),
    "maximum": _Computed(_maximum, _first_maximum),
    "atan2": _accurate(_Named("arctan2")),
    "clip": _Computed(_clip),
    "where": _select,
    "bitwise_invert": _Computed(_Named("invert")),
    "bitwise_left_shift": _Computed(_left_shift),
    "bitwise_right_shift": _Computed(_right_shift),
    "gcd": _Computed(_Named("gcd")),
    "isnan": _Computed(_is_nan),
    "isinf": _Computed(_is_infinite),
    "isfinite": _Computed(_is_finite),
    "sign": _Computed(_sign),
    "square": _Computed(lambda library, x: library.multiply(x, x)),
    "round": _Computed(_unless_floating("rint")),
    "floor": _Computed(_unless_floating("floor")),
    "ceil": _Computed(_unless_floating("ceil")),
    "trunc": _Computed(_unless_floating("trunc")),
    "rsqrt": _accurate(_rsqrt),
    "sigmoid": _accurate(_sigmoid),
    "relu": _Computed(_relu),
    "gelu": _accurate(_gelu),
    "silu": _accurate(_silu),
    "softplus": _accurate(_softplus),
    "erf": _accurate(lambda library, x: _erf(x)),
    "normal_of_bits": _Computed(random_numbers.normal_of_bits),
    "exponential_of_bits": _Computed(random_numbers.exponential_of_bits),
    "astype": _astype,
    "bits_of_float": _seen_as("uint"),
    "float_of_bits": _seen_as("float"),
    "sum": _accumulating(_row_reduction("sum")),
    "prod": _accumulating(_row_reduction("prod")),
    "min": _reducing(_extremum_of_rows(MIN, _minimum)),
    "max": _reducing(_extremum_of_rows(MAX, _maximum)),
    "any": _reducing(_row_reduction("any")),
    "all": _reducing(_row_reduction("all")),
    "argmin": _reducing(_row_reduction("argmin")),
    "argmax": _reducing(_row_reduction("argmax")),
    "mean": _accumulating(_mean),
    "var": _accumulating(_variance),
    "std": _accumulating(_deviation),
    "logsumexp": _accumulating(_logsumexp),
    "softmax": _normalising(_softmax),
    "log_softmax": _normalising(_log_softmax),
    "layer_norm": _normalising(_layer_norm),
    "matmul": _matmul,
    "cumulative_sum": _cumulative("cumsum"),
    "cumulative_prod": _cumulative("cumprod"),
    "cumulative_max": _running(_maximum),
    "cumulative_min": _running(_minimum),
    "argsort": _argsort,
    "segment_sum": _segment("add", SUM),
    "segment_prod": _segment("multiply", PROD),
    "segment_min": _segment("minimum", MIN),
    "segment_max": _segment("maximum", MAX),
    **move_twins.TWINS,
    **linear_algebra.TWINS,
    **fourier.TWINS,
}
