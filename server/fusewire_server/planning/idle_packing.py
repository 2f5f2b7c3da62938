"""Has an idle server compile the kernels of all single ops, in a process that gives way to all others.

Compiling them for a GPU takes minutes of many processors, so it waits until no session has been open for a while. The
kernels stay in the cache, so that this happens once.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence

from fusewire_server.host.process_group import end_group

log = logging.getLogger("fusewire.packs")

LOOK_EVERY_S = 10.0
IDLE_LOOKS = 12  # so often in turn no session is open


def command_for(architecture: str) -> Sequence[str]:
    """Returns the command that compiles the kernels for an architecture, such as "sm_90"."""
    return sys.executable, "-m", "fusewire_server", "warm", "--architecture", architecture, "--yielding"


async def pack_when_idle(
    command: Sequence[str], is_idle: Callable[[], bool], look_every_s: float = LOOK_EVERY_S
) -> None:
    """Waits until the server has been idle for a while, and runs the command once.

    If this call is cancelled, as by the end of the server, the process and all that it has started end.
    """
    looks = 0
    while looks < IDLE_LOOKS:
        await asyncio.sleep(look_every_s)
        looks = looks + 1 if is_idle() else 0
    null = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=null, stdout=null, stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
    except OSError as error:  # such as a lack of memory; kernels are then compiled when they are used
        log.warning("kernels are not compiled ahead: %s", error)
        return
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        await end_group(process)
        raise
    if process.returncode:
        log.warning("kernels are not compiled ahead: %s", errors.decode(errors="replace").strip()[-500:])
