"""The event loop of the peers: uvloop's if it is installed, as in Fusewire."""

from __future__ import annotations

import asyncio
import importlib


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
