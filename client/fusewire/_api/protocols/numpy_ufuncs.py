"""Computes a call of a NumPy ufunc by our function: the call itself, its reduction, its outer product, and `at`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusewire._api.indexing.writes import COMBINATIONS
from fusewire._api.protocols import outputs
from fusewire._api.protocols.numpy_protocols import counterpart_of, options_of, unsupported
from fusewire._recording.record_op import Recorded

# The functions that reduce by a ufunc.
_REDUCTIONS: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.minimum: "min",
    np.maximum: "max",
    np.fmin: "nanmin",
    np.fmax: "nanmax",
    np.logical_and: "all",
    np.logical_or: "any",
    np.logaddexp: "logsumexp",
}

# The functions that accumulate by a ufunc, and the dtype to which they cast if there is one.
_ACCUMULATIONS: dict[np.ufunc, tuple[str, str | None]] = {
    np.add: ("cumulative_sum", None),
    np.multiply: ("cumulative_prod", None),
    np.minimum: ("cumulative_min", None),
    np.maximum: ("cumulative_max", None),
    np.logical_and: ("cumulative_min", "bool"),
    np.logical_or: ("cumulative_max", "bool"),
}

_METHODS = ("accumulate", "at", "outer", "reduce")

# What to write in place of an option.
_INSTEAD = {
    "dtype": "cast the operands by astype",
    "initial": "combine the result with it",
}


def call(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Returns the result of a ufunc's `method`.

    Raises TypeError for what there is not here, and DtypeError if `out` cannot hold the result.
    """
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    function = _function_of(ufunc, method)
    if function is None:
        writes = method == "at" and isinstance(inputs[0], Recorded)
        raise unsupported(name, writes=writes)
    given = {option: value for option, value in options.items() if not _is_default(option, value)}
    written, mask = given.pop("out", None), given.pop("where", True) if method == "__call__" else True
    refused = given.keys() - options_of(function)
    if refused:
        instead = [_INSTEAD[option].format(name=name) for option in sorted(refused) if option in _INSTEAD]
        raise TypeError(
            f"np.{name} of arrays on a server takes no {', '.join(sorted(refused))}"
            + "".join(f"; {each}" for each in instead)
        )
    result = function(*inputs, **given)
    is_result = written is None and mask is True
    return result if is_result else outputs.write_as_called(f"np.{name}", written, mask, result)


def _is_default(option: str, value: Any) -> bool:
    if option == "out":
        return value is None or all(each is None for each in value)
    return (option == "where" and value is True) or (option == "dtype" and value is None)


def _function_of(ufunc: np.ufunc, method: str) -> Callable[..., Any] | None:
    function = counterpart_of(ufunc)
    if method == "__call__" or function is None:
        return function
    if method == "at" and ufunc.__name__ in COMBINATIONS:
        return partial(_combine_at, ufunc.__name__)
    if method == "reduce" and ufunc in _REDUCTIONS:
        return _reducing(getattr(sys.modules["fusewire"], _REDUCTIONS[ufunc]))
    if method == "accumulate" and ufunc in _ACCUMULATIONS:
        name, of_dtype = _ACCUMULATIONS[ufunc]
        return _accumulating(getattr(sys.modules["fusewire"], name), of_dtype)
    if method == "outer" and ufunc.signature is None and ufunc.nin == 2:
        return _outer(function)
    return None


def _combine_at(op: str, x: Any, indices: Any, values: Any, /) -> None:
    if not isinstance(x, Recorded):  # NumPy writes to its own array, once the values have come
        getattr(np, op).at(x, *[np.asarray(each) if isinstance(each, Recorded) else each for each in (indices, values)])
        return
    array: Any = x
    array._combine_at(op, indices, values)


def _reducing(reduction: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the reduction along the first axis by default, as ufuncs reduce."""

    def reduce(x: Any, /, axis: Any = 0, *rest: Any, **options: Any) -> Any:
        return reduction(x, axis, *rest, **options)

    reduce.__signature__ = inspect.signature(reduction)  # type: ignore[attr-defined]  # for `options_of`
    return reduce


def _accumulating(accumulation: Callable[..., Any], of_dtype: str | None) -> Callable[..., Any]:
    """Returns the accumulation along the first axis by default, as ufuncs accumulate."""

    def accumulate(x: Any, /, axis: Any = 0, dtype: Any = of_dtype) -> Any:
        return accumulation(x if dtype is None else x.astype(dtype), axis=axis)

    return accumulate


def _outer(function: Callable[..., Any]) -> Callable[..., Any]:
    def outer(x1: Any, x2: Any, /) -> Any:
        operands: list[Any] = [x if isinstance(x, Recorded) else np.asarray(x) for x in (x1, x2)]
        a, b = operands
        return function(a.reshape(a.shape + (1,) * b.ndim), b)

    return outer


def give_methods(functions: Mapping[str, Any]) -> None:
    """Gives functions that are ufuncs of two operands in NumPy the methods of these: `fw.maximum.accumulate(x)`."""
    for name, function in functions.items():
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.nin == 2 and ufunc.signature is None:
            for method in _METHODS:
                setattr(function, method, partial(_call_method, ufunc, method))


def _call_method(ufunc: np.ufunc, method: str, /, *inputs: Any, **options: Any) -> Any:
    return call(ufunc, method, inputs, options)
