"""Aligns a server's clock with the client's, from what was sent before it came and what came after it was sent. Pure.

A message shows that its sending was before its arrival, whatever the clocks say. So each message to the server bounds
from above by how much the server's clock is ahead, and each message from it from below. The middle of the tightest
bounds is at most half of their distance wrong. This is Marzullo's intersection of the intervals of Cristian's method
(K. Marzullo and S. Owicki, Maintaining the time in a distributed system, 1983). Clocks drift apart, by some
microseconds a second, so that each stretch of `WINDOW_NS` has bounds of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

WINDOW_NS = 10_000_000_000


class Message(NamedTuple):
    """A message by the time of its client's end and that of its server's end, each on its own clock."""

    client_ns: int
    server_ns: int


class Alignment(NamedTuple):
    """By how much the server's clock is ahead, at some of the client's times, and how wrong that may be at most.

    `error_ns` is None if no messages went both ways, so that nothing bounds it.
    """

    at_ns: tuple[int, ...]
    ahead_ns: tuple[int, ...]
    error_ns: int | None

    def to_client(self, server_ns: int) -> int:
        """Returns the client's time of an event on the server."""
        if len(self.at_ns) == 1:
            return server_ns - self.ahead_ns[0]
        guess_ns = server_ns - self.ahead_ns[0]  # the drift within a window is far below its length
        return server_ns - round(float(np.interp(guess_ns, self.at_ns, self.ahead_ns)))


def aligned(to_server: Iterable[Message], from_server: Iterable[Message]) -> Alignment:
    """Returns the alignment that all messages allow. Stretches without messages of both ways take that of others."""
    highest, lowest = _bounds(to_server, min), _bounds(from_server, max)
    windows = sorted(highest.keys() & lowest.keys())
    if not windows:
        one = [*highest.values(), *lowest.values()]
        return Alignment((0,), (one[0] if one else 0,), None)
    ahead = tuple([(highest[each] + lowest[each]) // 2 for each in windows])
    error_ns = max((abs(highest[each] - lowest[each]) + 1) // 2 for each in windows)
    return Alignment(tuple([each * WINDOW_NS + WINDOW_NS // 2 for each in windows]), ahead, error_ns)


def _bounds(messages: Iterable[Message], tighter: Callable[[int, int], int]) -> Mapping[int, int]:
    """Returns the tightest bound of each window."""
    found: dict[int, int] = {}
    for client_ns, server_ns in messages:
        window, ahead_ns = client_ns // WINDOW_NS, server_ns - client_ns
        found[window] = tighter(found.get(window, ahead_ns), ahead_ns)
    return found
