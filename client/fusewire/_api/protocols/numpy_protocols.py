"""Computes a call of a NumPy function by our function of that name, and renames the call's arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from fusewire._api.names_of_numpy import MAKE_ARRAYS, of_numpy, value_of
from fusewire._api.protocols import outputs
from fusewire._recording.record_op import Recorded

# The parameters that NumPy names otherwise: first NumPy's names of operands, which our functions take by position, then
# its names of options -> our names.
_NUMPY_FIRST_OPERANDS = ("a", "A", "a1", "arr", "ary", "m", "x", "array", "arrays", "tup", "val")
_NUMPY_SECOND_OPERANDS = ("a2", "b", "reps", "v", "values", "y")
_NUMPY_OPTIONS = {"a_max": "max", "a_min": "min"}

# Functions of NumPy that return Python objects and do not need the values of arrays.
_KNOWN_HERE: dict[Any, Callable[..., Any]] = {
    np.may_share_memory: lambda a, b, max_work=None: a is b,
    np.shares_memory: lambda a, b, max_work=None: a is b,
}


def _einsum(subscripts: str, *operands: Any, optimize: Any = None) -> Any:
    """Leaves `optimize` out: pairs are contracted in a good order."""
    return _ours("einsum")(subscripts, *operands)


def _nan_to_num(x: Any, /, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:  # noqa: FBT001, FBT002  # as NumPy calls it
    if not copy:
        raise unsupported("nan_to_num", writes=True)
    return _ours("nan_to_num")(x, nan=nan, posinf=posinf, neginf=neginf)


def _allclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:  # noqa: FBT001, FBT002
    return bool(_ours("allclose")(x1, x2, rtol, atol, equal_nan=equal_nan))


def _isclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:  # noqa: FBT001, FBT002
    return _ours("isclose")(x1, x2, rtol, atol, equal_nan=equal_nan)


def _array_equal(x1: Any, x2: Any, /, equal_nan: bool = False) -> bool:  # noqa: FBT001, FBT002
    return bool(_ours("array_equal")(x1, x2, equal_nan=equal_nan))


def _broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[Any, ...]:  # as NumPy calls it
    """Leaves arrays of this machine there: they may hold what there is no dtype for, such as None."""
    ours, shape = sys.modules["fusewire"], np.broadcast_shapes(*map(np.shape, arrays))
    return tuple((ours if isinstance(each, Recorded) else np).broadcast_to(each, shape) for each in arrays)


def _sliding_window_view(x: Any, /, window_shape: Any, axis: Any = None) -> Any:
    return sys.modules["fusewire"].lib.stride_tricks.sliding_window_view(x, window_shape, axis)


# Functions of NumPy with other parameters or results than ours, and those that Fusewire lacks, composed of ours.
_MADE_OF_OURS: dict[Any, Callable[..., Any]] = {
    np.allclose: _allclose,
    np.array_equal: _array_equal,
    np.broadcast_arrays: _broadcast_arrays,
    np.array_equiv: lambda x1, x2, /: bool(_ours("array_equiv")(x1, x2)),
    np.einsum: _einsum,
    np.isclose: _isclose,
    np.lib.stride_tricks.sliding_window_view: _sliding_window_view,
    np.nan_to_num: _nan_to_num,
}


# Functions of NumPy that show or save elements, and so wait for them.
_READING = frozenset({np.array2string, np.array_repr, np.array_str, np.save, np.savetxt, np.savez, np.savez_compressed})


def _ours(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(sys.modules["fusewire"], name)
    return function


def call(numpy_function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Returns the result of a NumPy function that takes an array of ours.

    Raises TypeError for what there is not here, and DtypeError if `out` cannot hold the result.
    """
    if numpy_function in _READING:
        return numpy_function(*map(value_of, arguments), **{name: value_of(each) for name, each in options.items()})
    function = counterpart_of(numpy_function)
    if function is None:
        raise unsupported(numpy_function.__name__, writes=isinstance(options.get("out"), Recorded))
    given = {**options}
    output = given.pop("out", None)
    if given:
        arguments, given = translate_arguments(numpy_function, function, arguments, given)
    result = function(*arguments, **given)
    return result if output is None else outputs.write_as_called(f"np.{numpy_function.__name__}", output, True, result)


@cache
def counterpart_of(numpy_function: Any) -> Callable[..., Any] | None:
    """Returns our function for `numpy_function`, or None."""
    special = _KNOWN_HERE.get(numpy_function) or _MADE_OF_OURS.get(numpy_function)
    if special is not None:
        return special
    name, ours = numpy_function.__name__, sys.modules["fusewire"]
    for theirs, namespace in ((np, ours), (np.linalg, ours.linalg), (np.fft, ours.fft)):
        if getattr(theirs, name, None) is numpy_function and name in namespace.__all__:
            namesake: Callable[..., Any] = getattr(namespace, name)
            return namesake
    return of_numpy(name) if name in MAKE_ARRAYS else None


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
    ours = {_NUMPY_OPTIONS.get(name, name): value for name, value in options.items()}
    taken = options_of(function)
    first = [ours.pop(name) for name in _NUMPY_FIRST_OPERANDS if name in ours and name not in taken]
    second = [ours.pop(name) for name in _NUMPY_SECOND_OPERANDS if name in ours and name not in taken]
    refused = sorted(ours.keys() - taken)
    if refused:
        known = f", but {', '.join(sorted(taken))}" if taken else ""
        raise TypeError(f"np.{numpy_function.__name__} of arrays on a server takes no {', '.join(refused)}{known}")
    return (*first, *arguments, *second), ours


@cache
def options_of(function: Callable[..., Any]) -> frozenset[str]:
    """Returns the names of the parameters that may be given by name."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY)
