"""Standard input, output and errors, of which whoever starts a process may have closed some."""

from __future__ import annotations

import os
import sys

_ERRORS = 2  # the greatest number of the three


def open_missing() -> None:
    """Opens those that are closed, to read and write nothing, for this process and those that it starts.

    Otherwise a socket would get such a number, and uvloop ends the process that closes it.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= _ERRORS:
        os.set_inheritable(opened, True)
    os.close(opened)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - it lives as long as the process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - likewise
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - likewise
