"""How far the roundings inside a sum, a product or a composite op may carry its result from the exact one.

Bounds to the first order, in the arithmetic that the op is computed in (float32 for halves), for the values at hand:
each sum may be off by as many roundings as its longest chain has, and what is computed of it by what that makes of it.
The twin's own error is within them: it computes in float64, each step of it as these formulas have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.ops.bodies import body_of
from fusewire_kernels.ops.conversions import cast
from fusewire_kernels.ops.order import LANES
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.reductions import Reduction
from tests.tolerances import epsilon, least_number

Array = npt.NDArray[Any]

# The longest chain of additions in one reduction: a lane's share of a chunk, the tree, and the same over chunks.
_LONGEST_CHAIN = 2 * (32 + 5)
_ROUNDS_OF_LANES = 5
_LONGEST_SCAN_IN_SEGMENT, _SEGMENT = 3 + 5 + 2, 128
_FUNCTION_ULPS = 8  # of exp and log, as a part of what is computed
_FEW_STEPS = 4  # of a formula, each rounded once


def allowance(op: Op, operands: Sequence[Array], attributes: Attributes, dtype: DType) -> Array | float:
    """The absolute error, in the shape of the result, that the op's roundings may add up to before its last.

    Infinite where nothing can be said: at the quotient of two numbers that are as good as zero.
    """
    if not dtype.is_floating:
        return 0.0
    with np.errstate(all="ignore"):
        wide = [_finite(operand) for operand in operands]
        if op.reduction is not None:
            return _of_combination(op, op.reduction, wide[0], operands, attributes, dtype)
        if op.category is Category.PRODUCT:
            chain = operands[0].shape[-1]
            return np.asarray(chain * epsilon(dtype.accumulator) * np.matmul(np.abs(wide[0]), np.abs(wide[1])))
        return _of_composite(op, wide, attributes, dtype) if op.category is Category.COMPOSITE else 0.0


def _of_combination(
    op: Op, reduction: Reduction, wide: Array, operands: Sequence[Array], attributes: Attributes, dtype: DType
) -> Array | float:
    """Of a reduction, or an op on lines that combines elements."""
    if body_of(reduction.combine).only_selects:
        return 0.0
    combine = getattr(np, reduction.combine)
    if op.category is Category.REDUCTION:
        return _of_reduction(combine, wide, attributes, dtype)
    if len(operands) == 1:
        return _of_scan(combine, wide, attributes, dtype)
    return _of_segments(op, wide, operands[1], attributes, dtype)


def _of_reduction(combine: np.ufunc, wide: Array, attributes: Attributes, dtype: DType) -> Array:
    axes, keepdims = attributes
    chain = _chain(prod(wide.shape[axis] for axis in axes))
    reduced = combine.reduce(np.abs(wide), axis=axes, keepdims=keepdims)
    return np.asarray(chain * epsilon(dtype.accumulator) * reduced)


def _of_scan(combine: np.ufunc, wide: Array, attributes: Attributes, dtype: DType) -> Array:
    """Each element is a few roundings in its lane and in the rounds of the scan, and one for each segment before."""
    (axis,) = attributes
    chain = _LONGEST_SCAN_IN_SEGMENT + wide.shape[axis] // _SEGMENT
    return np.asarray(chain * epsilon(dtype.accumulator) * combine.accumulate(np.abs(wide), axis=axis))


def _of_segments(op: Op, wide: Array, places: Array, attributes: Attributes, dtype: DType) -> Array:
    """Each segment is a chain in each lane, and the rounds that combine the lanes."""
    chain = -(-wide.shape[attributes[0]] // LANES) + _ROUNDS_OF_LANES
    reduced = twin(op)(np, [np.abs(wide), places], attributes, ())
    return np.asarray(chain * epsilon(dtype.accumulator) * reduced)


EXACT_OF_ONE = frozenset(("mean", "var", "std", "logsumexp", "softmax", "log_softmax", "layer_norm"))  # of one element


def _of_composite(op: Op, wide: Sequence[Array], attributes: Attributes, dtype: DType) -> Array | float:
    axes = attributes[0]
    length = prod(wide[0].shape[axis] for axis in axes)
    if length == 0 or (length == 1 and op.name in EXACT_OF_ONE):
        return 0.0
    rows = _Rows(wide[0], axes, length, epsilon(dtype.accumulator), least_number(dtype.accumulator))
    error = _ERRORS[op.name](rows, *wide[1:], *op.numbers(attributes))
    return np.squeeze(error, axes) if attributes[1:] == (False,) else error


def _chain(count: int) -> int:
    return min(count, _LONGEST_CHAIN)


def _finite(operand: Array) -> Array:
    exact = np.asarray(cast(np, operand, dtypes.from_numpy(operand.dtype), dtypes.float64))
    return np.where(np.isfinite(exact), exact, 0.0)


class _Rows(NamedTuple):
    """Rows of `length` elements each, along `axes`, float64. What is reduced keeps its axes, of length 1."""

    array: Array
    axes: tuple[int, ...]
    length: int
    epsilon: float  # of the arithmetic they are computed in
    least: float  # its least number: what a product that underflows may be off by

    @property
    def sum_error(self) -> float:
        """Of a sum, as a part of the sum of magnitudes."""
        return _chain(self.length) * self.epsilon

    def total(self, values: Array) -> Array:
        return np.asarray(np.sum(values, axis=self.axes, keepdims=True))

    def centred(self) -> tuple[Array, Array]:
        """The distances from the mean, and their error."""
        distances = self.array - self.total(self.array) / self.length
        return distances, _of_mean(self) + self.epsilon * (np.abs(self.array) + np.abs(distances))

    def variance(self, divisor: Array | int) -> tuple[Array, Array]:
        """The sum of squared distances from the mean, divided, and its error."""
        distances, errors = self.centred()
        squares = distances * distances
        error = self.total(2 * np.abs(distances) * errors + errors * errors + self.least)
        error += (self.sum_error + _FEW_STEPS * self.epsilon) * self.total(squares)
        return self.total(squares) / divisor, error / divisor

    def below_greatest(self) -> Array:
        """How far each element lies below the greatest, negative or zero."""
        return np.asarray(self.array - np.max(self.array, axis=self.axes, keepdims=True))

    def power_error(self, below: Array) -> Array:
        """Of the exponential of each element of `below`, relative: its argument's rounding, and its own."""
        return (np.abs(below) + _FUNCTION_ULPS) * self.epsilon

    def power_sum_error(self, below: Array) -> tuple[Array, Array]:
        """The sum of the exponentials of `below`, and its relative error."""
        powers = np.exp(below)
        total = self.total(powers)
        return total, self.total(powers * self.power_error(below)) / total + self.sum_error


def _of_mean(rows: _Rows) -> Array:
    return rows.sum_error * rows.total(np.abs(rows.array)) / rows.length


def _of_variance(rows: _Rows, correction: Array) -> Array:
    return rows.variance(np.maximum(rows.length - correction, 0.0))[1]


def _of_deviation(rows: _Rows, correction: Array) -> Array:
    """The root of a variance that is off by an error is off by no more than the error's own root."""
    variance, error = rows.variance(np.maximum(rows.length - correction, 0.0))
    return np.fmin(error / np.sqrt(variance), np.sqrt(error))


def _of_log_sum(rows: _Rows) -> Array:
    total, error = rows.power_sum_error(rows.below_greatest())
    return error + _FUNCTION_ULPS * rows.epsilon * np.log(total)


def _of_softmax(rows: _Rows) -> Array:
    below = rows.below_greatest()
    total, error = rows.power_sum_error(below)
    return np.exp(below) / total * (error + rows.power_error(below) + _FEW_STEPS * rows.epsilon)


def _of_log_softmax(rows: _Rows) -> Array:
    return _of_log_sum(rows) + rows.epsilon * np.abs(rows.below_greatest())


def _of_layer_norm(rows: _Rows, added: Array) -> Array:
    distances, errors = rows.centred()
    variance, error = rows.variance(rows.length)
    whole = variance + added
    doubt = error / whole + _FEW_STEPS * rows.epsilon  # of what is divided by, relative, before its root
    deviation = np.sqrt(whole)
    bound = 1.5 * errors / deviation + np.abs(distances) / deviation * doubt
    return np.where(doubt < 0.5, bound, np.inf)


_ERRORS: dict[str, Callable[..., Array]] = {
    "mean": _of_mean,
    "var": _of_variance,
    "std": _of_deviation,
    "logsumexp": _of_log_sum,
    "softmax": _of_softmax,
    "log_softmax": _of_log_softmax,
    "layer_norm": _of_layer_norm,
}
