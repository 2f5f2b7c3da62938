"""Gives functions the parameters of NumPy's functions of their names: `out=`, and NumPy's names of operands.

Single ops have `out=` already.
"""

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
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def with_numpys_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the parameters that it lacks, or the function itself if it lacks none."""
    numpys = getattr(np, function.__name__, None)
    lacks = _lacks_output(function, numpys) or bool(_renamed(function, numpys))
    return _with_parameters(function.__name__, function) if lacks else function


def _lacks_output(function: Any, numpys: Any) -> bool:
    writes = isinstance(numpys, np.ufunc) or "out" in _parameters(numpys)
    return writes and "out" not in _parameters(function)


def _renamed(function: Any, numpys: Any) -> dict[str, Parameter]:
    """Returns our parameters by the names that NumPy has for them, in order, where a call by name lacks these."""
    theirs = [each.name for each in _parameters(numpys).values() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    ours = _parameters(function).values()
    by_name = {each.name for each in ours if each.kind is not Parameter.POSITIONAL_ONLY}
    pairs = zip(theirs, (each for each in ours if each.kind in _POSITIONAL), strict=False)
    return {
        name: mine
        for name, mine in pairs
        if name not in by_name and (mine.kind is Parameter.POSITIONAL_ONLY or mine.name not in theirs)
    }


def _parameters(function: Any) -> Mapping[str, Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # no function, or one that does not tell its parameters
        return {}


def _with_parameters(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    numpys = getattr(np, name)
    renamed = _renamed(function, numpys)

    @wraps(function)
    def call(*operands: Any, out: Any = None, **options: Any) -> Any:
        if options and not options.keys().isdisjoint(renamed):
            operands, options = _by_our_names(renamed, operands, options)
        result = function(*operands, **options)
        return result if out is None else write_as_called(name, out, True, result)

    @wraps(function)
    def call_of_ufunc(*operands: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        result = function(*operands, **options)
        return result if out is None and where is True else write_as_called(name, out, where, result)

    @wraps(function)
    def call_without_output(*operands: Any, **options: Any) -> Any:
        if options and not options.keys().isdisjoint(renamed):
            operands, options = _by_our_names(renamed, operands, options)
        return function(*operands, **options)

    if not _lacks_output(function, numpys):
        return call_without_output
    is_ufunc = isinstance(numpys, np.ufunc)
    made, added = (call_of_ufunc, [_OUT, _WHERE]) if is_ufunc else (call, [_OUT])
    own = inspect.signature(function)
    made.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]
    return made


def _by_our_names(
    renamed: Mapping[str, Parameter], operands: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns operands and options as our function takes them."""
    for name, mine in renamed.items():
        if name in options and mine.kind is Parameter.POSITIONAL_ONLY:
            operands = (*operands, options.pop(name))
        elif name in options:
            options[mine.name] = options.pop(name)
    return operands, options
