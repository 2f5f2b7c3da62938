"""The session of functions that are given no array: a place where those who connect say how to come by it."""

from __future__ import annotations

from collections.abc import Callable

from fusewire._recording.recorder import Owner

_providers: list[Callable[[], Owner]] = []  # one, from the import of what connects on


def set_provider(provider: Callable[[], Owner]) -> None:
    """From now on `provider` gives the default session."""
    _providers[:] = [provider]


def default_session() -> Owner:
    """The default session. Raises what connecting raises."""
    return _providers[0]()
