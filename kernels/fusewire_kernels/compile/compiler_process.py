"""Runs a compiler in a process that is watched, and keeps the beginning of what it prints.

A compiler starts processes of its own. They are one process group, so that the compiler can be ended as a whole, and so
that none of them goes on when the compiler itself was killed. All that it prints is read, so that it never waits for a
reader, and only a part is kept: a compiler that is broken may print without end, and what it prints need not be text.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fusewire_kernels.compile.machine_faults import MachineFault
from fusewire_kernels.compile.processes import usage_of_group
from fusewire_kernels.compile.watch import Bounds, Watch

_MOST_PRINTED_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_LOOK_EVERY_S = 0.5
_GONE_WITHIN_S = 5.0  # the longest wait for the end of a killed process

Process = subprocess.Popen[bytes]


class Ended(NamedTuple):
    """The exit status of a compiler, or the negative number of the signal that ended it, and what it printed."""

    status: int
    printed: str


def start(command: Sequence[str], temporary: Path | None = None) -> Process:
    """Starts a compiler, whose temporary files are in the folder `temporary`, if that is given.

    Raises MachineFault if it cannot be started.
    """
    environment = {**os.environ, "LC_ALL": "C"}  # for messages that `is_of_machine` knows
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        return subprocess.Popen(command, env=environment, stdin=null, stdout=null, stderr=pipe, process_group=0)
    except OSError as error:
        raise MachineFault(f"the compiler cannot be started: {error}") from error


def finish(process: Process, bounds: Bounds) -> Ended:
    """Waits for the end of a compiler, and kills what it has left running.

    Raises MachineFault if it exceeds its bounds; then it is killed.
    """
    watch = Watch(bounds, time.monotonic())
    printed = _Printed(process)
    try:
        while not printed.has_ended(time.monotonic() + _LOOK_EVERY_S):
            excess = watch.excess(time.monotonic(), usage_of_group(process.pid))
            if excess:
                raise MachineFault(f"the compiler was ended: it {excess}")
    finally:
        end(process)
        printed.close()
    return Ended(process.returncode, bytes(printed.kept).decode(errors="replace"))


def end(process: Process) -> None:
    """Kills a compiler and the processes that it has started. If it has ended, call it at once."""
    with suppress(ProcessLookupError):  # nobody is left; too little time has passed for the id to be used again
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a disk that does not answer may hold a process up
        process.wait(_GONE_WITHIN_S)


class _Printed:
    """What a compiler prints. `kept` is its beginning."""

    def __init__(self, process: Process) -> None:
        assert process.stderr is not None, "it is a pipe"
        self.kept = bytearray()
        self._process = process
        self._stream = process.stderr
        self._poll = select.poll()
        self._poll.register(self._stream, select.POLLIN)

    def has_ended(self, until_s: float) -> bool:
        """Reads what the process prints, and returns whether the process has ended. Returns at `until_s` at the latest.

        A process that has left another one behind, which may print too, has ended all the same.
        """
        while (left_s := until_s - time.monotonic()) > 0:
            if not self._stream.closed and self._read(left_s):
                continue
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(until_s - time.monotonic(), 0.0))
                return True
        return self._process.poll() is not None

    def close(self) -> None:
        self._stream.close()

    def _read(self, within_s: float) -> bool:
        """Reads a piece. Returns whether there may be more."""
        if self._poll.poll(within_s * 1000):
            piece = os.read(self._stream.fileno(), _READ_BYTES)
            self.kept += piece[: _MOST_PRINTED_BYTES - len(self.kept)]
            if not piece:
                self._poll.unregister(self._stream)
                self._stream.close()
        return not self._stream.closed
