"""Whatever is recorded, dropped, read and flushed, and whenever: values are NumPy's and nothing dead is asked for.

The server in memory refuses a handle that does not exist, so every step is also a check of liveness.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire._recording.cutting.cutter import CutScope
from fusewire_protos.credit import Amount
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S

NAMES = 5

_NAME = st.integers(0, NAMES - 1)
_STEP = st.one_of(
    st.tuples(st.sampled_from(["add", "subtract", "multiply", "maximum"]), _NAME, _NAME, _NAME),
    st.tuples(st.sampled_from(["scale", "window", "assign"]), _NAME, _NAME, st.integers(0, 3)),
    st.tuples(st.just("drop"), _NAME, _NAME, _NAME),
)
_BODY = st.tuples(st.lists(_STEP, min_size=1, max_size=12), st.integers(1, 30))
_INTERRUPTION = st.sampled_from(["read", "age", "pause", "step", "frees", "nothing"])

START = np.arange(8, dtype=np.int64)


class Both:
    """The same names in Fusewire and in NumPy."""

    def __init__(self, session: fw.Session) -> None:
        self.session = session
        self.ours: list[Any] = [session.array(START + name) for name in range(NAMES)]
        self.theirs: list[Any] = [START + name for name in range(NAMES)]

    def apply(self, step: tuple[str, int, int, int]) -> None:
        kind, target, first, second = step
        for xp, names in ((fw, self.ours), (np, self.theirs)):
            names[target] = _result(xp, kind, names, target, first, second)
        if kind == "drop":
            self.ours[target] = self.session.array(START)
            self.theirs[target] = START

    def check(self, name: int) -> None:
        np.testing.assert_array_equal(self.ours[name].numpy(timeout=HANGS_S), self.theirs[name])


def _result(xp: Any, kind: str, names: list[Any], target: int, first: int, second: int) -> Any:
    match kind:
        case "scale":
            return names[first] * (second + 2) % 1009
        case "window":
            return xp.concatenate([names[first][second : second + 4], names[target][:4]])
        case "assign":
            changed = names[first].copy()
            changed[second] = second
            return changed
        case "drop":
            return None
        case _:
            return getattr(xp, kind)(names[first], names[second]) % 1009


def _interrupt(peer: Peer, both: Both, kind: str, name: int) -> None:
    recorder = peer.session.recorder()
    match kind:
        case "read":
            both.check(name)
        case "age" | "pause":
            with recorder.lock:
                scope = CutScope.EVERYTHING if kind == "age" else CutScope.PAUSED
                peer.session._sender._send_pieces(recorder, scope, fw.Trigger.AGE)
        case "frees":
            peer.session._sender.send_frees()
        case "step":
            peer.transport.wake()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_BODY, _INTERRUPTION, _NAME), min_size=1, max_size=8))
def test_values_are_numpys_whatever_interrupts_the_recording(
    parts: list[tuple[tuple[list[tuple[str, int, int, int]], int], str, int]],
) -> None:
    peer = connect(credit=Amount(ops=3000, bytes=1 << 20, segments=8))
    both = Both(peer.session)
    for (body, repeats), interruption, name in parts:
        for _ in range(repeats):
            for step in body:
                both.apply(step)
        _interrupt(peer, both, interruption, name)
    for name in range(NAMES):
        both.check(name)
    both.ours.clear()
    peer.session.flush_all(peer.session.recorder())  # ops that nobody reads keep their operands until they are sent
    peer.session._sender.send_frees()
    peer.session.array(START).numpy(timeout=HANGS_S)
    assert len(peer.server.values) <= 1
    peer.session.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), _BODY, _INTERRUPTION, _NAME), min_size=1, max_size=8))
def test_values_are_numpys_whichever_thread_records(
    parts: list[tuple[bool, tuple[list[tuple[str, int, int, int]], int], str, int]],
) -> None:
    peer = connect(credit=Amount(ops=3000, bytes=1 << 20, segments=8))
    both = Both(peer.session)

    def run(body: list[tuple[str, int, int, int]], repeats: int, interruption: str, name: int) -> None:
        for _ in range(repeats):
            for step in body:
                both.apply(step)
        _interrupt(peer, both, interruption, name)

    with ThreadPoolExecutor(1) as other:
        for is_elsewhere, (body, repeats), interruption, name in parts:
            if is_elsewhere:
                other.submit(run, body, repeats, interruption, name).result(HANGS_S)
            else:
                run(body, repeats, interruption, name)
        for name in range(NAMES):
            both.check(name)
        both.ours.clear()
        for recorder in peer.session._thread_recorders.all():
            peer.session.flush_all(recorder)
    peer.session._sender.send_frees()
    peer.session.array(START).numpy(timeout=HANGS_S)
    assert len(peer.server.values) <= 1
    peer.session.close()
