"""Lets several runs of a suite go side by side on one server."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from tests.conformance.plugins.in_step import ADDRESS_VARIABLE, KEY, BarrierProxy


@contextmanager
def in_company(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], companions: int
) -> Iterator[Mapping[str, str]]:
    """Runs the command so many times, and yields the environment in which one more run keeps step with them."""
    if not companions:
        yield environment
        return
    together = {**environment, ADDRESS_VARIABLE: _barrier_of(companions + 1)}
    processes = [_started(command, folder, together) for _ in range(companions)]
    try:
        yield together
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _started(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def _barrier_of(parties: int) -> str:
    """Returns the address at which processes get a barrier of so many. Threads of this process serve it."""
    barrier = threading.Barrier(parties)

    class Owner(BaseManager):
        """Hands out this one barrier."""

    Owner.register("barrier", lambda: barrier, BarrierProxy)
    server: Any = Owner(("127.0.0.1", 0), KEY).get_server()
    threading.Thread(target=server.serve_forever, name="barrier", daemon=True).start()
    host, port = server.address
    return f"{host}:{port}"
