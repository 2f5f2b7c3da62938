"""What time demands of a session: ops that have waited are sent, deaths are told, a heartbeat acknowledges.

All of it belongs to the I/O thread, unless said otherwise.
"""

from __future__ import annotations

from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.sender import Sender
from fusewire._stream.session_state import SessionState

_LEAST_TICK_S = 0.0005
_BUSY_TICK_S = 0.004
_IDLE_TICK_S = 0.1
_TICKS_A_ROUND = 40  # once a round, deaths that no segment took along are sent, and the I/O thread may fall asleep
_HEARTBEAT_AFTER_NS = 50_000_000  # until then the next frame is expected to carry the acknowledgement


class SessionTimer:
    """Says when the I/O thread is to look again."""

    def __init__(self, state: SessionState, sender: Sender, recorders: ThreadRecorders) -> None:
        self._state = state
        self._sender = sender
        self._thread_recorders = recorders
        self._ticks = 0
        self._is_asleep = True  # whether it does not look again soon by itself
        self.owes_heartbeat = False
        self.heard_at_ns = 0  # when the last frame came

    def wakes_up(self) -> bool:
        """Whether the I/O thread is to be told that ops wait; it looks often for a while then. Any thread."""
        was_asleep, self._is_asleep = self._is_asleep, False
        if was_asleep:
            self._ticks = 0
        return was_asleep

    def tick_s(self, now_ns: int) -> float:
        """Does what is due; in how many seconds to be called again."""
        if self._state.ended is not None:
            return _IDLE_TICK_S
        self._is_asleep = False
        self._sender.flush_aged(now_ns)
        self._ticks += 1
        if self._ticks % _TICKS_A_ROUND:
            return self._active_tick_s(now_ns)
        self._sender.send_frees()
        self._is_asleep = True  # before the look: whoever records later sees it
        if self._thread_recorders.have_unsent:
            self._is_asleep = False
            return self._active_tick_s(now_ns)
        self._ticks -= 1  # asleep: the next tick is the last of a round again
        is_quiet = now_ns - self.heard_at_ns > _HEARTBEAT_AFTER_NS
        self.owes_heartbeat = is_quiet and self._state.stream.owes_acknowledgement
        return _IDLE_TICK_S

    def _active_tick_s(self, now_ns: int) -> float:
        """When to look again: sooner than needed would only take turns from the threads that record.

        While the device is busy no age counts, and what is posted may gather: once it idles, a frame tells.
        """
        if not self._state.credit.is_free:
            return _BUSY_TICK_S
        ripe_ns = min((recorder.ripens_in_ns(now_ns) for recorder in self._thread_recorders.all()), default=0)
        return max(ripe_ns / 1e9, _LEAST_TICK_S)
