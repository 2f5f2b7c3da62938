"""Standard input, output and errors, of which whoever starts a process may have closed some."""

from __future__ import annotations

import os

_ERRORS = 2  # the greatest number of the three


def open_missing() -> None:
    """Opens those that are closed, to read and write nothing.

    Otherwise a socket would get such a number, and uvloop ends the process that closes it.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= _ERRORS:
        pass
    os.close(opened)
