"""How far a kernel may be from its twin, stated per op and dtype, and the two comparisons that tests make."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.conversions import cast
from fusewire_protos import dtypes
from fusewire_protos.catalogue import Attributes, Category, Op
from fusewire_protos.dtypes import DType

Array = npt.NDArray[Any]

# In units in the last place of the result's dtype. Halves are computed in float32, whose error is seen only where it
# tips the last rounding. float64 functions are the platform's, and so is the twin.
_ULPS: dict[DType, int] = {dtypes.float16: 1, dtypes.bfloat16: 1, dtypes.float32: 2, dtypes.float64: 8}
_ULPS_OF_OP: dict[tuple[str, DType], int] = {
    **{(name, dtypes.float32): 3 for name in ("tan", "tanh", "sigmoid", "atan2")},
    **{(name, dtypes.float32): 4 for name in ("silu", "gelu")},
    # erfc far out magnifies the rounding of its argument, in the kernel and in the twin.
    ("gelu", dtypes.float64): 4096,
}
_FRACTION_BITS: dict[DType, int] = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}
_LEAST_EXPONENT: dict[DType, int] = {
    dtypes.float16: -14,
    dtypes.bfloat16: -126,
    dtypes.float32: -126,
    dtypes.float64: -1022,
}
# The longest chain of additions in one reduction: a lane's share of a chunk, the tree, and the same over chunks.
_LONGEST_CHAIN = 2 * (512 + 5)
_COMPOSITE_STEPS = 64


def assert_close(actual: Array, expected: Array, op: Op, dtype: DType, allowance: Array | float = 0.0) -> None:
    """Equal shape and dtype; each element within the op's tolerance, or within `allowance` beside that.

    Elements of exact ops and of integers are equal. NaNs are equal to one another, and so are zeros of either sign.
    """
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if op.is_exact or not dtype.is_floating:
        assert_same_bytes(actual, expected)
        return
    a, b = _exactly(actual, dtype), _exactly(expected, dtype)
    limit = tolerance_ulps(op, dtype) * _ulp(b, dtype) + allowance
    with np.errstate(all="ignore"):
        is_close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit)
    is_close |= _overflows_alike(a, b, limit, dtype)
    assert is_close.all(), _difference(a, b, ~is_close)


def assert_same_bytes(a: Array, b: Array) -> None:
    """Equal shape, dtype and bits; NaNs are equal whatever their sign and payload."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    is_same = _bits(a) == _bits(b)
    dtype = dtypes.from_numpy(a.dtype)
    if dtype.is_floating:
        is_same |= np.isnan(_exactly(a, dtype)) & np.isnan(_exactly(b, dtype))
    assert is_same.all(), _difference(a, b, ~is_same)


def tolerance_ulps(op: Op, dtype: DType) -> int:
    """How many units in the last place the result of one pointwise op may be off; the last rounding of others."""
    if op.is_exact or op.name in {"min", "max"}:
        return 0
    return _ULPS_OF_OP.get((op.name, dtype), _ULPS[dtype])


def allowance(op: Op, operands: Sequence[Array], attributes: Attributes, dtype: DType) -> Array | float:
    """The absolute error that the roundings inside a reduction, a product or a composite op may add up to."""
    if not dtype.is_floating:
        return 0.0
    with np.errstate(all="ignore"):
        wide = [_finite(operand) for operand in operands]
        if op.name in {"sum", "prod"}:
            return _of_reduction(op, wide[0], attributes, dtype)
        if op.category is Category.PRODUCT:
            chain = operands[0].shape[-1]
            return np.asarray(chain * _epsilon(dtype.accumulator) * np.matmul(np.abs(wide[0]), np.abs(wide[1])))
        return _of_composite(op, wide, dtype) if op.category is Category.COMPOSITE else 0.0


def _of_reduction(op: Op, wide: Array, attributes: Attributes, dtype: DType) -> Array:
    axes, keepdims = attributes
    chain = min(prod(wide.shape[axis] for axis in axes), _LONGEST_CHAIN)
    reduced = getattr(np, op.name)(np.abs(wide), axis=axes, keepdims=keepdims)
    return np.asarray(chain * _epsilon(dtype.accumulator) * reduced)


def _of_composite(op: Op, wide: Sequence[Array], dtype: DType) -> float:
    """Each step rounds to the dtype; errors grow with the values, and with the division of a normalisation."""
    greatest = max(1.0, float(np.max(np.abs(wide[0]), initial=0.0)))
    error = _COMPOSITE_STEPS * _epsilon(dtype) * greatest**2
    if op.name == "std":
        return float(np.sqrt(error * greatest))
    return error / float(np.sqrt(wide[1])) if op.name == "layer_norm" and wide[1] > 0 else error


def _finite(operand: Array) -> Array:
    exact = np.asarray(cast(np, operand, dtypes.from_numpy(operand.dtype), dtypes.float64))
    return np.where(np.isfinite(exact), exact, 0.0)


def _epsilon(dtype: DType) -> float:
    return float(2.0 ** -_FRACTION_BITS[dtype])


def _ulp(values: Array, dtype: DType) -> Array:
    """The distance between neighbours in `dtype` at each finite value."""
    _, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    least = _LEAST_EXPONENT[dtype]
    return np.asarray(np.ldexp(1.0, np.maximum(exponents - 1, least) - _FRACTION_BITS[dtype]))


def _overflows_alike(a: Array, b: Array, limit: Array, dtype: DType) -> Array:
    """One result infinite, the other so near to the greatest finite number that the tolerance reaches beyond it."""
    greatest = (2.0 - _epsilon(dtype)) * 2.0 ** (1 - _LEAST_EXPONENT[dtype])
    finite, infinite = np.where(np.isfinite(a), a, b), np.where(np.isfinite(a), b, a)
    is_near = np.isfinite(finite) & (np.abs(finite) >= greatest - 2 * limit)
    return np.asarray(np.isinf(infinite) & is_near & (np.sign(finite) == np.sign(infinite)))


def _exactly(values: Array, dtype: DType) -> Array:
    return np.asarray(cast(np, values, dtype, dtypes.float64))


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def _difference(a: Array, b: Array, where: Array) -> str:
    first = tuple(int(place[0]) for place in np.nonzero(np.atleast_1d(where)))
    actual, expected = np.atleast_1d(a)[first], np.atleast_1d(b)[first]
    return f"{int(where.sum())} of {where.size} differ; at {first}: {actual!r}, not {expected!r}"
