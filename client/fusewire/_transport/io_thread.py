"""The thread that owns the sockets of all sessions of this process, with one event loop."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading

from fusewire._errors import SessionClosed

PARTING_S = 0.5
# The text of an error in a forked process.
FORKED = (
    "this process was forked from one that had connected, and can use no session: start it with the spawn method, "
    'as by multiprocessing.get_context("spawn"), or fork before anything connects'
)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Returns uvloop's event loop if uvloop is installed, otherwise asyncio's. The loop of uvloop is faster."""
    try:
        import uvloop  # noqa: PLC0415 - no dependency of the client
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class IoThread:
    """The thread that owns the sockets of this process's sessions, and the event loop of this thread.

    Thread and event loop run until the process ends. gRPC has one poller for a process. If an event loop were closed,
    the poller would deliver that loop's events to another loop. These events would raise there, and other events would
    get lost.
    """

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="fusewire-io", daemon=True)
        self.thread.start()
        self.ident = self.thread.ident

    def end(self, timeout_s: float) -> None:
        """Stops the loop and waits for the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout_s)


_io_threads: dict[int, IoThread] = {}  # by process id: a forked child has the parent's entry but not its thread
_starting: dict[int, threading.Lock] = {}  # by process id: in a forked child the parent's lock may stay locked


def io_thread() -> IoThread:
    """Returns this process's I/O thread. Raises SessionClosed in a child that was forked after its parent connected.

    Such a child lacks gRPC's threads and shares gRPC's sockets with the parent. A new connection of the child would get
    no answer, and would take answers that belong to the parent.
    """
    process = os.getpid()
    if _io_threads and process not in _io_threads:
        raise SessionClosed(FORKED)
    with _starting.setdefault(process, threading.Lock()):
        if process not in _io_threads:
            _io_threads[process] = IoThread()
        return _io_threads[process]


@atexit.register  # runs after the sessions' handler, which is registered later: handlers run in reverse order
def _end_io_thread() -> None:
    """Ends the I/O thread. A thread that runs gRPC or the event loop while Python exits may crash the process."""
    if os.getpid() in _io_threads:
        _io_threads[os.getpid()].end(PARTING_S)
