"""Finds the fastest event loop there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns what makes a loop of uvloop, where uvloop is installed, or else None."""
    try:
        import uvloop  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
