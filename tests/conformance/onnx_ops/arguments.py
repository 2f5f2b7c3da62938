"""Reads what nodes take as values: shapes, axes and numbers of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper


def ints(x: Any) -> list[int]:
    """Returns the values of a shape, of axes and the like: a node has an array of them, or in old versions a list."""
    return [int(value) for value in np.ravel(x)]


def dtype_of(number: int) -> Any:
    """Returns the dtype that ONNX gives this number."""
    return helper.tensor_dtype_to_np_dtype(number)
