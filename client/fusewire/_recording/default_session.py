"""Gives the default session to functions that get no array operand. `fusewire._connect` provides this session."""

from __future__ import annotations

from collections.abc import Callable

from fusewire._recording.recorder import Owner

_providers: list[Callable[[], Owner]] = []  # holds one entry once `fusewire._connect` has been imported


def set_provider(provider: Callable[[], Owner]) -> None:
    """Makes `provider` the function that returns the default session."""
    _providers[:] = [provider]


def default_session() -> Owner:
    """Returns the default session. Raises any error that connecting raises."""
    return _providers[0]()
