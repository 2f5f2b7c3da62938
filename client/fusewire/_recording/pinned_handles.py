"""Pins a handle that an op of another thread takes, so that its death is not reported before that op is sent.

The array object alone does not keep its handle alive: `x[i] = v` may give it another handle at any time. So the op
keeps a pin. The pin is listed by the recorder that minted the handle, which checks its pins before it reports deaths.
"""

from __future__ import annotations

PinnedHandles = dict[int, int]  # of one recorder: the identity of a pin -> the pinned handle


class HandlePin:
    """Is listed while it exists. One dict operation adds or removes it, which is safe on any thread without a lock."""

    __slots__ = ("_pins",)

    def __init__(self, pins: PinnedHandles, handle: int) -> None:
        self._pins = pins
        pins[id(self)] = handle

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` runs Python code, in which a signal handler may raise
            self._pins.pop(id(self), None)
        except AttributeError:
            pass  # a signal handler raised before the pin was listed
