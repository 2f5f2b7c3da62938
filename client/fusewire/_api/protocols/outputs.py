"""Writes results to `out=`, an array of ours or of NumPy's that a call names, where the mask `where=` is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusewire._api.in_place import is_higher_kind
from fusewire._api.ops import masked
from fusewire._errors import DtypeError
from fusewire._recording.record_op import Recorded


def write_as_called(name: str, out: Any, where: Any, results: Any) -> Any:
    """Returns what a call gives that has an `out`, one array or a tuple, or a mask.

    Raises TypeError for a mask alone, and what `write` raises.
    """
    if out is None:
        raise TypeError(f"{name} takes a mask beside an out= only; write fw.where(mask, {name}(…), other)")
    return write(name, out if isinstance(out, tuple) else (out,), results, where)


def write(name: str, outputs: Sequence[Any], results: Any, where: Any = True) -> Any:  # noqa: FBT002  # as NumPy has it
    """Assigns results to outputs, by NumPy's rule of casts, and returns them. An output that is None is the result.

    An output keeps its elements where the mask `where` is false.

    To write to an array of NumPy's waits for the value, as in `a += x` of such an `a`. Raises DtypeError, a TypeError,
    if an output cannot hold the result, and TypeError if it is no array.
    """
    several = results if isinstance(results, tuple) else (results,)
    written = [_written(name, *pair, where) for pair in zip(outputs, several, strict=True)]
    return tuple(written) if isinstance(results, tuple) else written[0]


def _written(name: str, output: Any, result: Any, where: Any) -> Any:
    if output is None:
        return result
    if isinstance(output, np.ndarray):
        np.copyto(output, np.asarray(result), where=True if where is True else np.asarray(where))
        return output
    if not isinstance(output, Recorded):
        raise TypeError(f"{name} writes to an array, not to {type(output).__name__}")
    target: Any = output
    if is_higher_kind(result.dtype, target.dtype):
        raise DtypeError(
            f"{name} gives {result.dtype.name}, and out= has {target.dtype.name}; cast it by astype, and assign"
        )
    target[...] = result if where is True else masked.replaced(target, where, result)
    return target
