"""Finds the Fusewire function for a call of a NumPy function, and renames the call's arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from fusewire_protos.ops import dtypes

# The functions that NumPy names otherwise: NumPy's name -> our name. Our names are those of the array API standard.
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

# The parameters that NumPy names otherwise: first NumPy's names of operands, which our functions take by position, then
# its names of options -> our names.
_NUMPY_FIRST_OPERANDS = ("a", "ary", "m", "array", "arrays")
_NUMPY_SECOND_OPERAND = "b"
_NUMPY_OPTIONS = {"a_max": "max", "a_min": "min"}


# Functions of NumPy that return Python objects and do not need the values of arrays.
_KNOWN_HERE: dict[Any, Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.may_share_memory: lambda a, b, max_work=None: a is b,
    np.shares_memory: lambda a, b, max_work=None: a is b,
}


# Functions of NumPy that write to their first argument and return None, and the names of this argument.
_WRITING = frozenset({np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask})
_WRITTEN = ("a", "arr", "dst")


# Functions of NumPy that Fusewire lacks, composed of functions that Fusewire has.
_MADE_OF_OURS: dict[Any, Callable[..., Any]] = {
    np.rint: lambda a: a.astype(dtypes.to_floating(a.dtype), copy=False).round(),
    np.divmod: lambda a, b: (np.floor_divide(a, b), np.remainder(a, b)),
}


@cache
def counterpart_of(numpy_function: Any) -> Callable[..., Any] | None:
    """Returns our function for `numpy_function`, or None.

    We have none for a function that NumPy's main namespace lacks.
    """
    numpy_name = numpy_function.__name__
    if getattr(np, numpy_name, None) is not numpy_function:
        return None
    name = _NUMPY_NAMES.get(numpy_name, numpy_name)
    namespace = sys.modules["fusewire"]
    namesake: Callable[..., Any] | None = getattr(namespace, name, None) if name in namespace.__all__ else None
    return _KNOWN_HERE.get(numpy_function) or _MADE_OF_OURS.get(numpy_function, namesake)


def writes_to(numpy_function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Returns the argument that a call of a NumPy function writes to, or None."""
    named = next((options[name] for name in _WRITTEN if name in options), None)
    first = arguments[0] if arguments else named
    writes_first = numpy_function in _WRITING or options.get("copy") is False  # as `nan_to_num` does without a copy
    return first if writes_first else options.get("out")


def unsupported(name: str, *, writes: bool = False) -> TypeError:
    """Returns the error of a function that has no counterpart. NumPy's own error does not say what can be done.

    If the function `writes` to its first argument, what it writes to a value that was read is lost unless it is
    assigned back.
    """
    refused = f"{name} does not take arrays on a server"
    if writes:
        return TypeError(f"{refused}; write to a value of x: v = np.array(x); {name}(v, …); x[...] = v")
    return TypeError(f"{refused}; give it their values: {name}(x.numpy())")


def translate_arguments(
    numpy_function: Any, function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Renames the arguments of a NumPy call for `function`. Raises TypeError for an unknown argument."""
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
    """Returns the names of the parameters that may be given by name."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY)
