"""The error of an axis that an array has not. It stands alone, because few of those that need errors need NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusewire_protos.errors import ShapeError


class AxisError(ShapeError, np.exceptions.AxisError):
    """An array has no such axis. The text is NumPy's, and `axis` and `ndim` are the axis and the rank.

    `parameter` names the parameter, of a function that has two for axes.
    """

    def __init__(self, axis: int | str, ndim: int | None = None, parameter: str | None = None) -> None:
        set_text: Any = np.exceptions.AxisError.__init__  # takes a text alone too
        set_text(self, axis, ndim, parameter)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)
