"""How long unfinished orders go on, and those that overtake them: about equally. Pure, all in ns."""

from __future__ import annotations


class Shares:
    """Unfinished orders answer the time that others used who overtook them, and these the last slice before them.

    What counts is use: how long nobody had the processor, or waited for the interpreter, is nobody's share. Neither
    goes on for longer than `most_ns` in answer to the other, whatever that took.
    """

    def __init__(self, most_ns: int) -> None:
        self._most_ns = most_ns
        self._others_ns = 0  # used by others since unfinished orders last stopped for them
        self._due_ns = 0  # when they go on whoever waits

    def start_anew(self) -> None:
        """Nobody else waits, or nothing was unfinished before: they go on at once, and are owed nothing."""
        self._others_ns = 0
        self._due_ns = 0

    def make_due(self) -> None:
        """They go on at once, whoever waits: one of them is new, or waits itself."""
        self._due_ns = 0

    def is_due(self, now_ns: int) -> bool:
        return now_ns >= self._due_ns

    def use(self, used_ns: int) -> None:
        """An order that overtook them has used so much."""
        self._others_ns += used_ns

    def until_ns(self, now_ns: int) -> int:
        """Until when those that go on now may do so: for as long as others have used since they last did."""
        return now_ns + min(self._others_ns, self._most_ns)

    def stop(self, slice_began_ns: int, now_ns: int, *, least_ns: int) -> None:
        """Their last slice ends. Others have as long as that took, and `least_ns` at least."""
        self._others_ns = 0
        self._due_ns = now_ns + max(min(now_ns - slice_began_ns, self._most_ns), least_ns)
