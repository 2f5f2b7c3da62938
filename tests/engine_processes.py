"""The engine processes of a server of several devices, as the system sees them."""

from __future__ import annotations

from contextlib import suppress

import psutil

from tests.front_end_processes import runs

_MODULE = "fusewire_server.engines"


def engines_of(server: int) -> list[psutil.Process]:
    """Returns the engine processes that run."""
    return [child for child in psutil.Process(server).children() if runs(child) and _is_engine(child)]


def engine_of(server: int, device: int) -> psutil.Process:
    """Returns the engine process of a device, whose number ends its command."""
    return next(each for each in engines_of(server) if each.cmdline()[-1] == str(device))


def _is_engine(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return _MODULE in process.cmdline()
    return False
