"""The text that shows the elements of an array, as NumPy prints them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusewire._recording.recorded_ops import Recorded

_PREFIX = "fusewire.Array("


def text_of(array: Recorded) -> str:
    """Waits for the elements, and returns them as `np.set_printoptions` says. Of many, it reads only what is shown.

    In a body that is recorded once there are no elements to wait for, so that it returns `repr(array)`.
    """
    x: Any = array
    if x._recorder.owner.recorder().is_in_body:
        return repr(x)
    options = np.get_printoptions()
    if x.size <= options["threshold"]:
        return str(x.numpy())
    for axis in range(x.ndim):
        x = _edges(x, axis, options["edgeitems"])
    return np.array2string(x.numpy(), threshold=0)


def formatted(array: Recorded, specification: str) -> str:
    """Returns the text of an array, or with a specification that of its only element. Waits for it."""
    x: Any = array
    if not specification:
        return str(x)
    if x.shape:
        raise TypeError(f"an array of rank {x.ndim} has no format; format its elements")
    return format(x.item(), specification)


def known_text(array: Recorded) -> str:
    """Returns the elements as NumPy's `repr` shows them if they were read last, else an empty text. Waits for nothing.

    The elements of large arrays are not kept (see `ReadValues`). An empty array has no elements to show.
    """
    owner: Any = array._recorder.owner
    value = owner.read_values.get(array._handle)
    if value is None or not value.size:
        return ""
    text = np.array2string(value, separator=", ", prefix=_PREFIX)
    return f"{_PREFIX}{text}, dtype={array._spec.dtype})"


def _edges(x: Any, axis: int, count: int) -> Any:
    """Returns the first and the last `count` places of an axis. One place between them is left out when it is shown."""
    length = x.shape[axis]
    if length <= 2 * count:
        return x
    return x.take([*range(count + 1), *range(length - count, length)], axis)
