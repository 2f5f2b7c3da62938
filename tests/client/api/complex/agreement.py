"""Holds calls on our arrays to the same calls on NumPy's: dtype, shape and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusewire as fw

Call = Callable[..., Any]

Z = np.array([[1 + 2j, -3.5j, 2], [2.0, -1 + 1j, -0.5 - 4j], [0, 1j, 3]], np.complex64)
W = np.array([[2 + 1j, 1.5, 1], [2j, -1 - 1j, 7], [1 - 1j, 0, 2 + 2j]])
X = np.array([[1.0, 2.0, -1.0], [3.0, 4.0, 0.0], [5.0, 6.0, 7.0]], np.float32)
I = np.array([[1, 2, 0], [0, 1, 2], [2, 2, 1]])  # noqa: E741  # indices
OPERANDS = (Z, W, X, I)


def check(session: fw.Session, call: Call) -> None:
    """Compares `call(xp, z, w, x, i)` of both."""
    with np.errstate(all="ignore"):
        expected: Any = call(np, *OPERANDS)
    actual = call(fw, *[session.array(each) for each in OPERANDS])
    if not hasattr(expected, "dtype"):  # a number or a truth of Python's
        assert actual == expected
        return
    assert isinstance(actual, fw.Array)
    assert actual.dtype == expected.dtype
    tolerance = 1e-5 if expected.dtype in (np.complex64, np.float32) else 1e-12
    np.testing.assert_allclose(actual.numpy(), expected, rtol=tolerance, atol=tolerance, strict=True)
