"""The front ends of a server process, as the system sees them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import psutil

_MODULE = "fusewire_server.front_ends"


def front_ends_of(server: int) -> list[psutil.Process]:
    """Returns the front ends that run."""
    return [child for child in psutil.Process(server).children() if runs(child) and is_front_end(child)]


def is_front_end(process: psutil.Process) -> bool:
    """Returns whether a process is one. A process that was just made has its server's command for a moment."""
    with suppress(psutil.NoSuchProcess):
        return _MODULE in process.cmdline()
    return False


def runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def are_replaced(server: int, killed: Sequence[psutil.Process], count: int) -> bool:
    """Returns whether a server has `count` front ends again, without these."""
    found = front_ends_of(server)
    return len(found) == count and not {*found} & {*killed}
