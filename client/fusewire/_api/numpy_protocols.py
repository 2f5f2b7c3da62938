"""From a call of NumPy's to the function here that does the same, and to that function's words for its arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from fusewire_protos import dtypes

# NumPy's names where ours differ; ours are those of the Array API standard.
_NUMPY_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arctan2": "atan2",
    "around": "round",
    "concatenate": "concat",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "right_shift": "bitwise_right_shift",
    "true_divide": "divide",
}

# The same of parameters: operands, which have places here and no names, and options.
_NUMPY_FIRST_OPERANDS = ("a", "ary", "m", "array", "arrays")
_NUMPY_SECOND_OPERAND = "b"
_NUMPY_OPTIONS = {"a_max": "max", "a_min": "min"}


# NumPy's functions that answer with plain Python objects, from what is known without the values.
_KNOWN_HERE: dict[Any, Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
}


# NumPy's functions that are none of ours, made of ours.
_MADE_OF_OURS: dict[Any, Callable[..., Any]] = {
    np.rint: lambda a: a.astype(dtypes.to_floating(a.dtype), copy=False).round(),
    np.divmod: lambda a, b: (np.floor_divide(a, b), np.remainder(a, b)),
}


@cache
def counterpart_of(numpy_function: Any) -> Callable[..., Any] | None:
    """What does here what `numpy_function` does: its name alone is also that of functions that do otherwise."""
    numpy_name = numpy_function.__name__
    if getattr(np, numpy_name, None) is not numpy_function:
        return None
    name = _NUMPY_NAMES.get(numpy_name, numpy_name)
    namespace = sys.modules["fusewire"]
    namesake: Callable[..., Any] | None = getattr(namespace, name, None) if name in namespace.__all__ else None
    return _KNOWN_HERE.get(numpy_function) or _MADE_OF_OURS.get(numpy_function, namesake)


def translate_arguments(
    numpy_function: Any, function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a call of NumPy's as `function` takes them. Raises TypeError for an option it does not take."""
    ours = {
        _NUMPY_OPTIONS.get(name, name): value
        for name, value in options.items()
        if not (name == "out" and value is None)
    }
    first = [ours.pop(name) for name in _NUMPY_FIRST_OPERANDS if name in ours]
    second = [ours.pop(_NUMPY_SECOND_OPERAND)] if _NUMPY_SECOND_OPERAND in ours else []
    taken = _options_of(function)
    if not taken >= ours.keys():
        refused = ", ".join(sorted(ours.keys() - taken))
        instead = f", but {', '.join(sorted(taken))}" if taken else ""
        raise TypeError(f"np.{numpy_function.__name__} of arrays on a server takes no {refused}{instead}")
    return (*first, *arguments, *second), ours


@cache
def _options_of(function: Callable[..., Any]) -> frozenset[str]:
    """The names of what it takes by name."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY)
