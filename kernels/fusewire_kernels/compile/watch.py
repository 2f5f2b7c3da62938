"""Decides when a process that compiles or plans has had enough, from what it has used. Pure.

A busy machine makes a process late, but does not make it do more. So what counts is the processor time that the process
has used, and whether it still gets on: a process that neither runs nor waits for a processor waits for something that
may never come. Where the system does not tell what a process uses, only the clock counts.
"""

from __future__ import annotations

from typing import NamedTuple


class Usage(NamedTuple):
    """What a process and those that it has started have used so far.

    `scheduled_ns` is the time for which they ran and waited for a processor. It may fall, because it leaves with each
    process that ends.
    """

    processor_s: float
    scheduled_ns: int
    is_runnable: bool  # whether one of them runs or waits for a processor now


class Bounds(NamedTuple):
    """The most that a process may use. `setting` names the setting of `processor_s`, if there is one."""

    processor_s: float = 24.0
    idle_s: float = 10.0  # in which it neither ran nor waited for a processor
    wall_s: float = 600.0
    setting: str = ""

    def times(self, factor: float) -> Bounds:
        return Bounds(self.processor_s * factor, self.idle_s * factor, self.wall_s * factor)


USUAL_BOUNDS = Bounds()


class Watch:
    """Compares the usage of a process with its bounds. The usage that is told first is what it had used before."""

    def __init__(self, bounds: Bounds, began_s: float) -> None:
        self._bounds = bounds
        self._began_s = began_s
        self._first: Usage | None = None
        self._last: Usage | None = None
        self._got_on_s = began_s  # when the process was last seen to have run or to wait for a processor

    def excess(self, now_s: float, usage: Usage | None) -> str:
        """Returns what the process has done to be ended, to follow "it", or an empty text. Call it every second or so.

        `usage` is None if the system does not tell it.
        """
        bounds = self._bounds
        if usage is None or usage.is_runnable or usage != self._last:
            self._got_on_s = now_s
        if usage is not None:
            self._first = self._first or usage
            self._last = usage
            if usage.processor_s - self._first.processor_s > bounds.processor_s:
                named = f"{bounds.setting} = " if bounds.setting else ""
                return f"used more than {named}{bounds.processor_s:g} s of processor time"
        if now_s - self._got_on_s > bounds.idle_s:
            return f"neither ran nor waited for a processor for {bounds.idle_s:g} s"
        if now_s - self._began_s > bounds.wall_s:
            return f"did not end within {bounds.wall_s:g} s"
        return ""
