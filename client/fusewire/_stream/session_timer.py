"""Does the periodic work of a session: sends ops that have waited, reports deaths of handles, asks for heartbeats.

`Session.on_tick` calls `tick` in the I/O thread. Only this thread calls the methods, except where a docstring says
otherwise.
"""

from __future__ import annotations

from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.sender import Sender
from fusewire._stream.session_state import SessionState

_LEAST_TICK_S = 0.001  # timers of event loops count whole milliseconds, so a shorter time would be no wait at all
_BUSY_TICK_S = 0.004
_IDLE_TICK_S = 0.1
_TICKS_A_ROUND = 40  # the last tick of a round reports deaths, and makes ticks rare if no op is unsent
_HEARTBEAT_AFTER_NS = 50_000_000  # within this time a frame with entries will probably carry the acknowledgement


class SessionTimer:
    """Does the work of a tick and says when the next tick is due."""

    def __init__(self, state: SessionState, sender: Sender, recorders: ThreadRecorders) -> None:
        self._state = state
        self._sender = sender
        self._thread_recorders = recorders
        self._ticks = 0
        self._is_asleep = True  # whether the next tick is so late that a thread with new ops must ask for a tick
        self.owes_heartbeat = False
        self.heard_at_ns = 0  # when the last frame arrived, on the monotonic clock

    def wakes_up(self) -> bool:
        """Notes that something waits. Returns True if the caller must ask for a tick. Any thread may call it."""
        was_asleep, self._is_asleep = self._is_asleep, False
        if was_asleep:
            self._ticks = 0
        return was_asleep

    def tick(self, now_ns: int) -> float:
        """Does the work that is due; returns the seconds until the next tick."""
        if self._state.ended is not None:
            return _IDLE_TICK_S
        self._is_asleep = False
        self._sender.flush_aged(now_ns)
        self._ticks += 1
        if self._ticks % _TICKS_A_ROUND:
            return self._seconds_to_next_tick(now_ns)
        self._sender.send_frees()
        self._is_asleep = True  # set before the check below: a thread that records after the check asks for a tick
        if self._thread_recorders.have_unsent:
            self._is_asleep = False
            return self._seconds_to_next_tick(now_ns)
        self._ticks -= 1  # so that the next tick is the last tick of a round too
        is_quiet = now_ns - self.heard_at_ns > _HEARTBEAT_AFTER_NS
        self.owes_heartbeat = is_quiet and self._state.stream.owes_acknowledgement
        return _IDLE_TICK_S

    def _seconds_to_next_tick(self, now_ns: int) -> float:
        """Returns the seconds until the next tick while ops may be waiting.

        No tick comes earlier than needed, because a tick takes the GIL from threads that record. While the device is
        busy, the age of ops is no reason to send them, and posted entries may wait. When the device becomes idle, the
        server sends a frame, and the session handles that frame at once. Ops of an incomplete body may wait for ever:
        the longer they have waited, the later the next tick.
        """
        if not self._state.credit.is_free:
            return _BUSY_TICK_S
        ripe_ns = min((recorder.ripens_in_ns(now_ns) for recorder in self._thread_recorders.all()), default=0)
        return min(max(abs(ripe_ns) / 1e9, _LEAST_TICK_S), _IDLE_TICK_S)
