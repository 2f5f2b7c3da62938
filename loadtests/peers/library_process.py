"""Imports a peer's library in the peer's own process, by the first command, so that a missing library is an answer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from loadtests.measuring.errors import NotMeasured


def imported(name: str) -> Any:
    """Returns the module. Raises NotMeasured if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        raise NotMeasured(f"{name} is not installed here ({reason})") from None


def commands_of(make: Callable[[], object], *names: str) -> dict[str, Callable[..., object]]:
    """Returns the named methods of the object that `make` returns. The first command that is called makes the object.

    What `make` raises is raised by every command.
    """
    made = cache(make)

    def call(name: str, *arguments: object) -> object:
        return getattr(made(), name)(*arguments)

    return {name: partial(call, name) for name in names}
