"""Tells whether a compiler failed because of the machine, such as a full disk, or because of its source. Pure.

A fault of the machine passes: the same source may compile later. A compiler that is broken is a part of the machine.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

from fusewire_protos.errors import ServerFault

# What compilers, assemblers and linkers print in the C locale when the machine does not let them work.
_LACKS = tuple(
    os.strerror(number)
    for number in (
        errno.EACCES,
        errno.EAGAIN,
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EROFS,
    )
) + (
    "out of memory",  # gcc, clang
    "memory exhausted",  # the linker
    "failed to map segment",  # the system's loader
)
# A process ends by these signals only if another process, or the system for want of memory, sends them.
_SENT = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
_KILLED = tuple(
    words
    for number in _SENT
    for words in (
        f"{signal.strsignal(number)} signal terminated program",  # gcc, of the process that compiles or assembles
        f"terminated with signal {number:d} ",  # gcc, of the process that links
        f"unable to execute command: {signal.strsignal(number)}",  # clang
    )
)


class MachineFault(ServerFault):
    """Raised if the machine kept a compiler from its work. The same source may compile later."""


def is_of_machine(status: int, errors: str) -> bool:
    """Returns whether the machine is to blame that a compiler failed, from its exit status and what it printed.

    A negative status is the number of the signal that ended the compiler.
    """
    return -status in _SENT or any(words in errors for words in (*_LACKS, *_KILLED))


def to_blame(failure: ServerFault, compile_probe: Callable[[], object]) -> ServerFault:
    """Returns a compiler's failure, as a MachineFault if the compiler is broken.

    It is broken if it fails to compile a source that is right, too. `compile_probe` compiles such a source.
    """
    if isinstance(failure, MachineFault):
        return failure
    try:
        compile_probe()
    except ServerFault:
        return MachineFault(f"the compiler is broken: {failure}")
    return failure
