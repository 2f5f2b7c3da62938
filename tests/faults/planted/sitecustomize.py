"""Plants a fault in a server process, which imports this module as it starts if its folder is on the path.

PLANTED_FAULT names the fault: `leak` keeps memory for each refused call, `starvation` stops the event loop meanwhile.
"""

from __future__ import annotations

import os
import time

from fusewire_server.access import interceptor

_refusing = interceptor._refusing
_leaked: list[bytearray] = []


def _leaking(*arguments: object) -> object:
    _leaked.append(bytearray(b"x") * (4 << 20))
    return _refusing(*arguments)  # type: ignore[arg-type]


def _starving(*arguments: object) -> object:
    time.sleep(0.5)
    return _refusing(*arguments)  # type: ignore[arg-type]


interceptor._refusing = {"leak": _leaking, "starvation": _starving}[os.environ["PLANTED_FAULT"]]  # type: ignore[assignment]
