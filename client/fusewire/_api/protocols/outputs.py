"""Writes results to `out=`, an array of ours or of NumPy's that a call of a NumPy function names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusewire._api.in_place import is_higher_kind
from fusewire._errors import DtypeError
from fusewire._recording.record_op import Recorded


def write(name: str, outputs: Sequence[Any], results: Any) -> Any:
    """Assigns results to outputs, by NumPy's rule of casts, and returns them. An output that is None is the result.

    To write to an array of NumPy's waits for the value, as in `a += x` of such an `a`. Raises DtypeError, a TypeError,
    if an output cannot hold the result, and TypeError if it is no array.
    """
    several = results if isinstance(results, tuple) else (results,)
    written = [_written(name, *pair) for pair in zip(outputs, several, strict=True)]
    return tuple(written) if isinstance(results, tuple) else written[0]


def _written(name: str, output: Any, result: Any) -> Any:
    if output is None:
        return result
    if isinstance(output, np.ndarray):
        np.copyto(output, result.numpy())
        return output
    if not isinstance(output, Recorded):
        raise TypeError(f"np.{name} writes to an array, not to {type(output).__name__}")
    target: Any = output
    if is_higher_kind(result.dtype, target.dtype):
        raise DtypeError(
            f"np.{name} gives {result.dtype.name}, and out= has {target.dtype.name}; cast it by astype, and assign"
        )
    target[...] = result
    return target
