"""Ticks: what they send, and how soon the next one comes."""

from __future__ import annotations

import time

from tests.client.peer import Peer, connect

_SECOND_NS = 1_000_000_000
_BODIES = 50


def _step(peer: Peer, seconds: float) -> float:
    """Ticks as if so much time had passed, and lets the server take what was sent. Returns the time to the next."""
    gap_s = peer.session._timer.tick(time.monotonic_ns() + int(seconds * _SECOND_NS))
    peer.transport.run_once()
    return gap_s


def test_an_incomplete_body_waits_for_ever_and_is_looked_at_ever_more_rarely() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array([1.0])
    for _ in range(_BODIES):
        x = (x + 1.0) * 2.0 - 3.0
    x = x + 1.0
    recorder = peer.session.recorder()
    gaps = [_step(peer, seconds) for seconds in (0.01, 1, 2, 3600)]
    assert recorder.next_number - recorder.sent == 3 + 1  # a body, which is settled only by the next one, and its begin
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[-1] == 0.1
    x = x * 2.0 - 3.0
    _step(peer, 7200)
    assert not recorder.has_unsent


def test_ops_of_no_loop_are_sent_when_they_have_waited_a_millisecond() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array([1.0]) + 1.0
    _step(peer, 0)
    assert peer.session.recorder().has_unsent
    _step(peer, 0.01)
    assert not peer.session.recorder().has_unsent
    del x
