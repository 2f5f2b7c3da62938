"""Sends what was recorded after each call of a function, operator or method, so that no two calls share a program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import fusewire

_KINDS = (FunctionType, type(fusewire.sum))  # in Python, and in C
# These record nothing themselves, or are what a call is sent by.
_LEFT_ALONE = {"connect", "default_session", "fori_loop", "function", "replay"}


def _flushed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*operands: Any, **options: Any) -> Any:
        result = function(*operands, **options)
        session = fusewire.default_session()
        session.flush_all(session.recorder())
        return result

    return call


def _replace(owner: Any, names: set[str]) -> None:
    for name in names:
        if isinstance(function := vars(owner).get(name), _KINDS):
            setattr(owner, name, _flushed(function))


_replace(fusewire, {*fusewire.__all__} - _LEFT_ALONE)
_replace(fusewire.Array, {name for name in vars(fusewire.Array) if not name.startswith("_") or name.endswith("__")})
