"""Handles lent to other threads' ops: one dies no sooner than the ops that take it are sent, whoever holds its name.

The array object does not hold its handle for so long: `x[i] = v` gives it another one at any time. So an op keeps a
loan, which is entered in the books of the recorder that minted the handle, and looked at before deaths are told.
"""

from __future__ import annotations

PinnedHandles = dict[int, int]  # of one recorder: the handle of each loan, by the loan's identity


class HandlePin:
    """Entered from its birth to its death. Each is one act on a dict: no lock, on any thread, also in a finaliser."""

    __slots__ = ("_pins",)

    def __init__(self, pins: PinnedHandles, handle: int) -> None:
        self._pins = pins
        pins[id(self)] = handle

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` is an object, of a kind that a signal handler may raise within
            self._pins.pop(id(self), None)
        except AttributeError:
            pass  # a signal handler raised before it was entered
