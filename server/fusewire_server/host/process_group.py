"""Ends all that a process has started with the process, and a worker process with its server.

A killed process cannot tidy up. So the kernel kills a worker when its server ends, and a guardian, a small process of
its own, waits for the end of the worker and then kills the processes that are left in the worker's group. Where the
system tells which processes a session has, the guardian kills all of the worker's session: each compiler is a group of
its own, so that the worker can end it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from fusewire_kernels.compile.processes import processes

GONE_WITHIN_S = 1.0  # the longest wait for the end of a killed process


def guard_group(temporary: Path | None) -> None:
    """Starts the guardian of this process, which must lead its group. Call it before any thread is started.

    When this process has ended in any way, the guardian kills the group, and all other groups of the session if this
    process leads a session. Then the guardian removes the folder `temporary`, if there is such a folder.
    """
    group = os.getpgrp()
    assert group == os.getpid(), "only the leader of a group may give the group a guardian"
    leads_session = os.getsid(0) == group
    read_end, write_end = os.pipe()  # programs that this process starts do not inherit them
    if os.fork() == 0:
        os.setpgid(0, 0)  # whoever kills the group must not kill the guardian
        os.close(write_end)
        _wait_for_end_of_leader(read_end)
        _kill(group)
        if leads_session:
            for other in {each.group for each in processes() if each.session == group} - {os.getpid()}:
                _kill(other)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        os._exit(0)
    os.close(read_end)


async def end_group(leader: asyncio.subprocess.Process) -> None:
    """Kills a process that leads its group, and the group, and waits a moment for the end of the process."""
    _kill(leader.pid)
    await wait_for_end(leader, GONE_WITHIN_S)


async def wait_for_end(process: asyncio.subprocess.Process, within_s: float) -> None:
    """Waits until a process has ended, at most so long, and closes the pipes to it and from it if it has.

    What is open when the event loop closes would be a warning, or an error.
    """
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):  # asyncio may never report the end of a process that was killed during its start
        async with asyncio.timeout(within_s):
            await process.communicate()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):  # nobody is left; too little time has passed for the id to be used again
        os.killpg(group, signal.SIGKILL)


def _wait_for_end_of_leader(read_end: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # the server waits for the end of the leader's streams, so the guardian must not hold them
        os.dup2(nowhere, stream)
    os.read(read_end, 1)  # returns when the leader, which alone holds the other end, has ended
