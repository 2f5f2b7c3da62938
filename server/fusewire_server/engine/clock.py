"""The clock by which the engine shares the engine thread's time: the module `time`, or another one in tests."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Says the time in nanoseconds."""

    def monotonic_ns(self) -> int:
        """Returns the time since some moment. It never goes back."""

    def thread_time_ns(self) -> int:
        """Returns the processor time that the calling thread has used."""
