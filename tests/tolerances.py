"""How far a kernel's last rounding may be from its twin's, and the comparisons that tests make."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.ops.bodies import body_of
from fusewire_kernels.ops.conversions import cast
from fusewire_protos.ops import dtypes, nans
from fusewire_protos.ops.catalogue import OPS
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Op

Array = npt.NDArray[Any]

# Reductions to one of the elements: their zeros may have either sign.
EXACT_BUT_FOR_ZEROS = {
    op.name for op in OPS if op.reduction and not op.is_exact and body_of(op.reduction.combine).only_selects
}

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


def assert_close(actual: Array, expected: Array, op: Op, dtype: DType, allowance: Array | float = 0.0) -> None:
    """Equal shape and dtype; each element within the op's tolerance, and `allowance` beside that.

    Elements of exact ops and of integers are equal. NaNs are equal to one another, and so are zeros of either sign.
    Where the allowance is infinite, every value is close.
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
    is_close |= np.isinf(limit) | _overflows_alike(a, b, limit, dtype)
    assert is_close.all(), _difference(a, b, ~is_close)


def assert_same_bytes(a: Array, b: Array) -> None:
    """Equal shape, dtype and bits, those of NaNs among them."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    is_same = _bits(a) == _bits(b)
    assert is_same.all(), _difference(a, b, ~is_same)


def assert_same_numbers(a: Array, b: Array) -> None:
    """As `assert_same_bytes`, but one may be NumPy's own: NaNs are equal whatever their sign and payload."""
    if dtypes.from_numpy(a.dtype).is_floating:
        a, b = nans.settle(np.array(a)), nans.settle(np.array(b))  # what has no rank may be no array
    assert_same_bytes(a, b)


def tolerance_ulps(op: Op, dtype: DType) -> int:
    """How many units in the last place the result of one pointwise op may be off; the last rounding of others."""
    if op.is_exact or op.name in EXACT_BUT_FOR_ZEROS:
        return 0
    return _ULPS_OF_OP.get((op.name, dtype), _ULPS[dtype])


def epsilon(dtype: DType) -> float:
    """The distance from 1 to its greater neighbour."""
    return float(2.0 ** -_FRACTION_BITS[dtype])


def least_number(dtype: DType) -> float:
    """The least positive number, a denormal one."""
    return float(2.0 ** (_LEAST_EXPONENT[dtype] - _FRACTION_BITS[dtype]))


def _ulp(values: Array, dtype: DType) -> Array:
    """The distance between neighbours in `dtype` at each finite value."""
    _, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    least = _LEAST_EXPONENT[dtype]
    return np.asarray(np.ldexp(1.0, np.maximum(exponents - 1, least) - _FRACTION_BITS[dtype]))


def _overflows_alike(a: Array, b: Array, limit: Array, dtype: DType) -> Array:
    """One result infinite, the other so near to the greatest finite number that the tolerance reaches beyond it."""
    greatest = (2.0 - epsilon(dtype)) * 2.0 ** (1 - _LEAST_EXPONENT[dtype])
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
    bits = f"{actual.tobytes()[::-1].hex()}, not {expected.tobytes()[::-1].hex()}"
    return f"{int(where.sum())} of {where.size} differ; at {first}: {actual!r}, not {expected!r} (bits {bits})"
