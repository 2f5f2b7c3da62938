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


def clients_of(front_end: psutil.Process) -> set[int]:
    """Returns the ports of the clients that are connected to a front end; none if it has ended."""
    with suppress(psutil.NoSuchProcess):
        connections = front_end.net_connections("tcp")
        return {each.raddr.port for each in connections if each.status == psutil.CONN_ESTABLISHED}
    return set()


def are_connected(client: int, front_end: int) -> bool:
    """Returns whether a process has a connection to a front end, by their ids."""
    connections = psutil.Process(client).net_connections("tcp")
    return not clients_of(psutil.Process(front_end)).isdisjoint({each.laddr.port for each in connections})
