"""Whatever loop is written inline, it has NumPy's values, and what nobody holds is freed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire_protos.credit import Amount
from tests.client.peer import connect
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.effort import of_a_hundred
from tests.patience import HANGS_S


@of_a_hundred(60)
@given(st.lists(drawn_loops(most_iterations=120), min_size=1, max_size=3), st.booleans())
def test_a_loop_gives_what_it_gives_in_numpy(loops: Sequence[Drawn], is_chained: bool) -> None:
    peer = connect(credit=Amount(ops=3000, bytes=1 << 20, segments=8))
    rows, *first = data(np.int64)
    sent_rows, *sent_first = map(peer.session.array, (rows, *first))
    way = Way(fw, peer.session.array, read=lambda state: state.numpy(timeout=HANGS_S))
    wanted: list[Any] = []
    found: list[Any] = []
    states, sent = first, sent_first
    for loop in loops:
        wanted += run(loop, Way(np), rows, states)
        found += run(loop, way, sent_rows, sent)
        if is_chained and wanted[-1].shape == first[0].shape:
            states, sent = wanted[-len(first) :], found[-len(first) :]
    for array, value in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(array.numpy(timeout=HANGS_S), value)
    del sent_rows, sent_first, found, sent, array, way
    (peer.session.array(rows) * 1).numpy(timeout=HANGS_S)  # so that all ops are sent, and no unsent one takes a value
    peer.session._sender.send_frees()
    peer.session.array(rows).numpy(timeout=HANGS_S)
    assert len(peer.server.values) <= 1
    peer.session.close()


@of_a_hundred(8)
@given(drawn_loops(most_iterations=14))
def test_a_loop_that_is_cut_by_a_read_at_any_iteration_gives_what_it_gives_uncut(loop: Drawn) -> None:
    session = connect().session
    rows, *states = map(session.array, data(np.int64))
    uncut = loop._replace(reads_at=frozenset())
    wanted = [array.tobytes() for array in run(uncut, Way(np), *_split(data(np.int64)))]
    for iteration in range(loop.iterations):
        way = Way(fw, session.array, read=lambda state: state.numpy(timeout=HANGS_S))
        found = run(loop._replace(reads_at=frozenset([iteration])), way, rows, states)
        assert [array.numpy(timeout=HANGS_S).tobytes() for array in found] == wanted, f"cut after iteration {iteration}"
    session.close()


def _split(arrays: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    rows, *states = arrays
    return rows, states
