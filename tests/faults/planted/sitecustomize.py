"""Plants a fault in a server process, which imports this module as it starts if its folder is on the path.

PLANTED_FAULT names the fault: `leak` keeps memory for each refused call, `starvation` stops the event loop meanwhile.
`small_disk` gives the process and its workers a disk of 1 MiB for the cache of compiled kernels. `low_priority` lowers
the priority of the process, with which its workers begin.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

_SMALL_DISK = b"size=1m,mode=700"
_NICENESS = 10
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000

_leaked: list[bytearray] = []


def _plant_in_refusals(fault: str) -> None:
    from fusewire_server.access import interceptor  # noqa: PLC0415 - a worker with a small disk does not need it

    refusing = interceptor._refusing

    def leaking(*arguments: object) -> object:
        _leaked.append(bytearray(b"x") * (4 << 20))
        return refusing(*arguments)  # type: ignore[arg-type]

    def starving(*arguments: object) -> object:
        time.sleep(0.5)
        return refusing(*arguments)  # type: ignore[arg-type]

    interceptor._refusing = {"leak": leaking, "starvation": starving}[fault]  # type: ignore[assignment]


def _make_small_disk() -> None:
    """Mounts a small file system on the cache's folder, in a mount namespace that only this process and its own see."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS))
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
    folder = os.fsencode(os.environ["FUSEWIRE_CACHE_DIR"])
    _check(libc.mount(b"tmpfs", folder, b"tmpfs", 0, _SMALL_DISK))


def _check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


_fault = os.environ["PLANTED_FAULT"]
if _fault == "small_disk":
    os.environ["PLANTED_FAULT"] = ""  # the workers inherit the disk
    _make_small_disk()
elif _fault == "low_priority":
    os.environ["PLANTED_FAULT"] = ""  # the workers inherit the priority
    os.nice(_NICENESS)
elif _fault:
    _plant_in_refusals(_fault)
