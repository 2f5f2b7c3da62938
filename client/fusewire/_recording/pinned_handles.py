"""Pins handles that ops of other threads take, so that their deaths are not reported before these ops are sent.

The array object alone does not keep its handle alive: `x[i] = v` may give it another handle at any time. So the op
keeps a pin. The pin is listed by the recorder that minted the handle, which checks its pins before it reports deaths.

A recorder keeps some pins longer than the op that made them: until all that it had recorded at its next segment is
sent. Further ops may take these *foreign handles* without a pin of their own.
"""

from __future__ import annotations

from typing import Any

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


class ForeignHandles(dict[int, Any]):
    """Handles of other threads that are pinned for ops yet to be recorded, each with the recorder that minted it."""

    __slots__ = ("pins",)

    def __init__(self) -> None:
        super().__init__()
        self.pins: list[HandlePin] = []

    def add(self, handle: int, producer: object, pin: HandlePin) -> None:
        self.pins.append(pin)  # before the handle is found
        self[handle] = producer
