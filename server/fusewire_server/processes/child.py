"""The side of a child process: reads commands from standard input, and writes reports to standard output.

A child process ends with its standard input, which its server holds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from queue import SimpleQueue

_MOST_LINE_BYTES = 1 << 20


def ignore_signals() -> None:
    """Lets the server decide about signals that may reach the whole group of processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


async def command_lines() -> AsyncIterator[bytes]:
    """Yields the commands of the server until it closes this process's standard input, or ends."""
    reader = asyncio.StreamReader(limit=_MOST_LINE_BYTES)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while line := await reader.readline():
            yield line
    finally:
        pipe.close()


def report(line: bytes) -> bool:
    """Tells the server a short line, and returns whether it takes this now. It may be busy, or have ended.

    Standard output must have been set not to block, so that a stopped server stops no child.
    """
    with suppress(OSError):
        os.write(sys.stdout.fileno(), line)
        return True
    return False


class Reporter:
    """Writes reports in a thread of its own, so that long ones, and a server that does not read, delay nothing else."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], bytes] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="reports", daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        return not self._waiting.empty()

    def tell(self, make_line: Callable[[], bytes]) -> None:
        """Has a report written, which `make_line` makes in the thread."""
        self._waiting.put(make_line)

    def end(self, within_s: float) -> None:
        """Waits until all is written, at most so long."""
        self._waiting.put(None)
        self._thread.join(within_s)

    def _write(self) -> None:
        with suppress(OSError):  # the server has ended
            while (make_line := self._waiting.get()) is not None:
                sys.stdout.buffer.write(make_line())
                sys.stdout.buffer.flush()
