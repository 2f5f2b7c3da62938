"""Numbers that are transformed, and how close a transform is to NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.patience import HANGS_S

Host = npt.NDArray[Any]
DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "int8", "bool")

_ROUNDINGS = 8  # of each element, for each step of a transform: NumPy transforms real numbers by fewer steps


def drawn(seed: int, shape: tuple[int, ...], dtype: str) -> Host:
    random = np.random.default_rng(seed)
    numbers = 4 * random.standard_normal(shape)
    if dtype.startswith("complex"):
        return np.asarray(numbers + 4j * random.standard_normal(shape)).astype(dtype)
    return np.asarray(numbers > 0 if dtype == "bool" else numbers).astype(dtype)


def assert_close(found: Any, expected: Host, given: str = "", whole: Host | None = None) -> None:
    """Compares dtype and shape, and elements within the rounding errors of their whole array.

    NumPy rounds the factor of a transform of float16 to float16. `whole` is the complex array of which a transform to
    real numbers keeps a part: what is left may be nothing but its rounding errors.
    """
    read = found.numpy(timeout=HANGS_S)
    assert found.dtype == expected.dtype
    assert read.dtype == expected.dtype
    assert read.shape == expected.shape
    largest = float(np.abs(expected if whole is None else whole).max(initial=0))
    steps = 2 + np.log2(max(2, expected.size))
    eps = float(np.finfo("float16" if given == "float16" else expected.dtype).eps)
    np.testing.assert_allclose(read, expected, rtol=0, atol=_ROUNDINGS * steps * eps * largest)
