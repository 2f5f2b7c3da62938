"""Gives functions that write to `out=` in NumPy this parameter: those that are no single op, which have it already."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter
from typing import Any

import numpy as np

from fusewire._api.protocols.outputs import write_as_called

_OUT = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation="Any")
_WHERE = Parameter("where", Parameter.KEYWORD_ONLY, default=True, annotation="Any")


def with_outputs(functions: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Returns by name those functions that need the parameter, with it. Two names of one function remain so."""
    lacking = {name: each for name, each in functions.items() if _lacks_output(name, each)}
    made = {each: _with_output(name, each) for name, each in lacking.items()}
    return {name: made[each] for name, each in lacking.items()}


def _lacks_output(name: str, function: Any) -> bool:
    numpys = getattr(np, name, None)
    if not inspect.isfunction(function) or not (isinstance(numpys, np.ufunc) or "out" in _parameters(numpys)):
        return False
    return "out" not in _parameters(function)


def _parameters(function: Any) -> Mapping[str, Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # no function, or one that does not tell its parameters
        return {}


def _with_output(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*operands: Any, out: Any = None, **options: Any) -> Any:
        result = function(*operands, **options)
        return result if out is None else write_as_called(name, out, True, result)

    @wraps(function)
    def call_of_ufunc(*operands: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        result = function(*operands, **options)
        return result if out is None and where is True else write_as_called(name, out, where, result)

    is_ufunc = isinstance(getattr(np, name), np.ufunc)
    made, added = (call_of_ufunc, [_OUT, _WHERE]) if is_ufunc else (call, [_OUT])
    own = inspect.signature(function)
    made.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]
    return made
