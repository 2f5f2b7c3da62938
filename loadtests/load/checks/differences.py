"""Says how a value differs from the expected one: in its dtype, its shape, or in which element. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_RELATIVE, _ABSOLUTE = 2e-3, 2e-4  # tolerances between libraries, for float32 values of any step


def difference_in_bits(actual: Array | None, expected: Array | None) -> str | None:
    """Returns None if both are the same bits, of the same dtype and shape."""
    return _difference(actual, expected, is_exact=True)


def difference_in_numbers(actual: Array | None, expected: Array | None) -> str | None:
    """Returns None if both have the same dtype and shape, and numbers within the tolerances between libraries."""
    return _difference(actual, expected, is_exact=False)


def _difference(actual: Array | None, expected: Array | None, *, is_exact: bool) -> str | None:
    if actual is None or expected is None or (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        kinds = _kind(actual), _kind(expected)
        return None if actual is expected else f"{kinds[0]}, expected {kinds[1]}"
    wrong = _bits(actual) != _bits(expected) if is_exact else ~_are_close(actual, expected)
    if not wrong.any():
        return None
    index = tuple(int(place[0]) for place in np.nonzero(np.atleast_1d(wrong)))
    numbers = (_number(np.atleast_1d(array)[index]) for array in (actual, expected))
    where = ", ".join(map(str, index if wrong.ndim else ()))
    return f"{actual.dtype} [{where}] is {', expected '.join(numbers)}; {wrong.sum()} of {wrong.size} elements differ"


def _kind(value: Array | None) -> str:
    return "nothing" if value is None else f"{value.dtype} of shape {value.shape}"


def _number(number: Any) -> str:
    return f"{number} (bits {number.tobytes()[::-1].hex()})"


def _are_close(actual: Array, expected: Array) -> Mask:
    return np.isclose(actual, expected, _RELATIVE, _ABSOLUTE, equal_nan=True)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
