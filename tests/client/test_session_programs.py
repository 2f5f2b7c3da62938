"""What a session sends of a program: which loops become which programs, and what of them lives."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire.testing.memory_server import LIMITS
from fusewire_protos.credit import Amount
from fusewire_protos.frames import NO_REPETITION, Segment
from fusewire_protos.programs.program import Program
from tests.client.loops import (
    STEPS,
    H,
    W,
    cell,
    expected_loop,
    inline_loop,
    inline_loop_that_prints,
    loop_of_calls,
    operands,
    whole_bodies,
)
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S
from tests.segments import loops_among

UNBOUNDED = Amount(1 << 40, 1 << 40, 1 << 40)


def read(peer: Peer, array: fw.Array) -> None:
    """Waits for the value, on a transport that is stepped."""
    future = array.future()
    peer.transport.run_once()
    future.result(0)


@pytest.mark.parametrize("loop", [loop_of_calls, inline_loop, inline_loop_that_prints])
def test_a_loop_computes_what_numpy_does(loop: Callable[[fw.Session], fw.Array]) -> None:
    with connect().session as session:
        np.testing.assert_allclose(loop(session).numpy(), expected_loop(), rtol=1e-4)


def test_inline_or_in_a_function_a_loop_is_the_same_programs_with_one_live_result() -> None:
    sent = []
    for loop in (loop_of_calls, inline_loop, inline_loop_that_prints):
        peer = connect(is_manual=True)
        last = loop(peer.session)
        peer.transport.run_once()
        steady = {program for program in whole_bodies(peer) if len(program.ops) == 6}
        assert steady
        assert {len(program.live) for program in steady} == {1}
        assert all(program.ops[0].op.name == "matmul" for program in steady)
        sent.append({program.ops for program in steady})
        del last
    assert sent[0] == sent[1] == sent[2]


def test_an_epoch_of_bodies_an_odd_tail_and_an_evaluation_settles_on_few_programs() -> None:
    peer = connect(is_manual=True)  # else ops that have waited are cut wherever this thread is held up
    h, w, b, r = operands(peer.session)
    odd = peer.session.array(np.ones((3, 8), np.float32))
    counts = []
    for _ in range(8):
        for _ in range(44):
            h = cell(h, w, b, r)
        tail = cell(odd, w, b, r[:1])
        read(peer, (tail.sum() + h.sum()) * 2)
        counts.append(len(peer.session.stats.programs))
    assert counts[-1] <= 10
    assert len(peer.session.stats.fragment_programs) <= 6


@pytest.mark.parametrize("calls", [1, 4])
@pytest.mark.parametrize("count", [100, 300, 5000])
def test_a_loop_of_any_length_is_one_program_whatever_names_its_last_values_have(count: int, calls: int) -> None:
    """What the names `z` and `pushed` hold of the last body, the loop's program does not store."""
    peer = connect()
    h, w, b, r = operands(peer.session)
    for _ in range(calls):
        for _ in range(count):
            z = h @ w + b
            pushed = fw.tanh(-(z * 0.5))
            h = pushed + r
        h.numpy()
    assert len(whole_bodies(peer)) == 1
    fragments = {new.number for new in peer.server.new_programs if new.is_fragment}
    uses = [segment for segment in peer.server.segments if segment.program in fragments]
    assert sum(peer.server.programs[use.program].op_count for use in uses) <= 3 * 6 * calls


@pytest.mark.parametrize("calls", [1, 3])
def test_a_loop_that_is_read_is_one_segment_with_its_last_body_from_the_first_call_on(calls: int) -> None:
    peer = connect(is_manual=True)
    h, w, b, r = operands(peer.session)
    before = 0
    for _ in range(calls):
        before = len(peer.server.segments)
        for _ in range(100):
            h = cell(h, w, b, r)
        read = h.future()
        while not read.done():
            peer.transport.run_once()
    uses = peer.server.segments[before:]
    assert [use.repetition.iterations for use in loops_among(uses)] == [100]
    assert len(uses) == 1


@pytest.mark.parametrize("is_read", [True, False])
def test_a_call_of_a_network_of_equal_layers_is_one_body_that_takes_all_weights(is_read: bool) -> None:
    peer = connect(credit=UNBOUNDED, is_manual=True)
    weights = [peer.session.array(W * number) for number in range(1, 7)]
    for _ in range(100):
        h = peer.session.array(H)
        for w in weights:
            h = fw.tanh(h @ w)
        if is_read:
            read = h.future()
            while not read.done():
                peer.transport.run_once()
    peer.transport.run_once()
    (program,) = whole_bodies(peer)
    assert program.op_count == 2 * len(weights)
    assert len(program.inputs) == 1 + len(weights)


def test_a_deep_network_is_a_loop_of_its_layers_only_until_its_weights_come_again() -> None:
    peer = connect(credit=UNBOUNDED, is_manual=True)
    weights = [peer.session.array(W * number) for number in range(1, 41)]
    sizes = []
    for _ in range(12):
        h = peer.session.array(H)
        for w in weights:
            h = fw.tanh(h @ w)
        read = h.future()
        while not read.done():
            peer.transport.run_once()
        last = peer.server.segments[-1]
        sizes.append(peer.server.programs[last.program].op_count)
    assert sizes == [2] * 7 + [80] * 5


def test_a_last_body_of_which_more_is_held_is_a_segment_of_its_own() -> None:
    peer = connect(is_manual=True)
    h, w, b, r = operands(peer.session)
    before = 0
    for _ in range(3):
        before = len(peer.server.segments)
        for _ in range(100):
            held = h @ w + b
            h = fw.tanh(held) + r
        read = h.future()
        while not read.done():
            peer.transport.run_once()
    uses = peer.server.segments[before:]
    assert [use.repetition.iterations for use in loops_among(uses)] == [99]
    assert len(uses) == 2


def test_a_loop_of_which_another_result_is_held_in_each_call_is_at_most_three_programs() -> None:
    peer = connect()
    h, w, b, r = operands(peer.session)
    kept, values = [], [h]
    for held in range(5):
        for _ in range(400):
            values = [h @ w]
            for other in (b, r, b, r):
                values.append(values[-1] + other)
            h = fw.tanh(values[-1])
        kept.append(values[held])
    del values
    h.numpy()
    assert len(whole_bodies(peer)) <= 3
    fragments = {new.number for new in peer.server.new_programs if new.is_fragment}
    uses = [segment for segment in peer.server.segments if segment.program in fragments]
    assert sum(peer.server.programs[use.program].op_count for use in uses) <= 3 * 6 * 5


@pytest.mark.parametrize("lag", [1, 2, 3, 8])
def test_a_loop_that_takes_older_results_is_few_programs(lag: int) -> None:
    peer = connect(credit=UNBOUNDED, is_manual=True)
    states = [peer.session.array(H * 0.1 * number) for number in range(1, lag + 1)]
    for _ in range(2000):
        states = [*states[1:], fw.tanh(states[-1] * 0.9 + states[0])]
    peer.transport.run_once()
    loops = loops_among(peer.server.entries)
    assert sum(loop.repetition.iterations for loop in loops) > 1900
    assert len(loops) <= 6
    assert len({loop.program for loop in loops}) == 1
    assert {max(loop.repetition.kept or ()) for loop in loops} == {lag}


def test_a_call_that_begins_as_a_loop_went_on_takes_its_own_value() -> None:
    """The call's single body is an iteration of the loop's program. The bodies behind it are none of the loop."""
    peer = connect()
    first, w = peer.session.array(H), peer.session.array(W)
    h = first
    for _ in range(100):
        h = fw.tanh(h @ w + 1.0)
    h.numpy()
    once = fw.tanh(first @ w + 1.0).numpy()
    again = [fw.tanh(first @ w + 1.0) for _ in range(6)]
    assert {array.numpy().tobytes() for array in again} == {once.tobytes()}


class Called(NamedTuple):
    """What became of a loop that was called again and again, but for what was unsent in the end."""

    used: Counter[int]  # programs of whole bodies, and how often
    stored: int  # live results
    held: int  # of them, by the caller


def call_loop(
    body: Callable[[fw.Array, fw.Array], fw.Array], counts: Sequence[int], keeps: Sequence[bool], *, is_chained: bool
) -> Called:
    """Runs `body` so often in each call, on the first value or on the last result, while the device is busy."""
    peer = connect(credit=UNBOUNDED, is_manual=True)
    first, step = peer.session.array(H), peer.session.array(H * 0.01)
    last, kept = first, []
    for count, is_kept in zip(counts, keeps, strict=True):
        h = last if is_chained else first
        for _ in range(count):
            h = body(h, step)
        last = h
        if is_kept:
            kept.append(last)
    peer.transport.run_once()
    fragments = {new.number for new in peer.server.new_programs if new.is_fragment}
    uses = peer.server.segments
    used = Counter(use.program for use in uses)
    stored = sum(stored_by(use, peer.server.programs[use.program]) for use in uses)
    whole = Counter({number: count for number, count in used.items() if number not in fragments})
    return Called(whole, stored, sum(array._handle in peer.server.values for array in kept))


def stored_by(use: Segment, program: Program) -> int:
    """How many results a segment stores."""
    return len(program.live) if use.repetition.kept is None else sum(use.repetition.kept)


def decay(h: fw.Array, step: fw.Array) -> fw.Array:
    return fw.tanh(h * 0.9 + step)


@pytest.mark.parametrize("is_chained", [False, True])
@pytest.mark.parametrize("count", [7, 20, 100])
def test_a_loop_of_equal_counts_called_again_and_again_is_few_programs_that_store_what_is_held(
    count: int, is_chained: bool
) -> None:
    calls = 60_000 // (3 * count)
    called = call_loop(decay, [count] * calls, [True] * calls, is_chained=is_chained)
    assert len(called.used) <= (4 if count < 100 else 5)
    assert called.held > 0.9 * calls
    is_short = count < 10  # then a loop a call would cost more than the results that nobody holds
    assert called.stored <= (1.1 * calls * count if is_short and is_chained else 2 * called.held + 5)


@pytest.mark.parametrize("is_chained", [False, True])
@pytest.mark.parametrize("interval", [2, 5])
def test_holding_every_so_many_results_of_a_loop_stores_few_more(interval: int, is_chained: bool) -> None:
    keeps = [call % interval == 0 for call in range(500)]
    called = call_loop(decay, [20] * 500, keeps, is_chained=is_chained)
    assert len(called.used) <= 6
    assert called.stored <= 2 * called.held + len(called.used) + called.used.total() / 2


@pytest.mark.parametrize("is_chained", [False, True])
def test_holding_the_last_result_of_a_loop_stores_none_but_what_the_next_piece_takes(is_chained: bool) -> None:
    called = call_loop(decay, [20] * 500, [False] * 500, is_chained=is_chained)
    assert called.stored <= 2 * called.used.total() * is_chained + 5
    assert called.used.most_common(1)[0][1] > called.used.total() / 2


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(44, 150), min_size=5, max_size=30),
    share=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    is_chained=st.booleans(),
    random=st.randoms(use_true_random=False),
)
def test_runs_of_whatever_length_that_are_not_short_are_few_programs_that_store_little_more_than_is_held(
    counts: list[int], share: float, is_chained: bool, random: Random
) -> None:
    keeps = [random.random() < share for _ in counts]
    called = call_loop(decay, counts, keeps, is_chained=is_chained)
    assert len(called.used) <= 24
    assert called.stored <= 2 * called.held + 2 * called.used.total() + 5


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(1, 60), min_size=5, max_size=60),
    keeps=st.lists(st.booleans(), min_size=60, max_size=60),
    is_chained=st.booleans(),
)
def test_whatever_the_counts_what_is_held_has_its_value_and_all_else_is_freed(
    counts: list[int], keeps: list[bool], is_chained: bool
) -> None:
    peer = connect()
    first, step = peer.session.array(H), peer.session.array(H * 0.01)
    last = h, expected = first, H
    kept = []
    for count, is_kept in zip(counts, keeps, strict=False):
        h, expected = last if is_chained else (first, H)
        for _ in range(count):
            h, expected = h * 0.5 + step, expected * np.float32(0.5) + H * np.float32(0.01)
        last = h, expected
        if is_kept:
            kept.append(last)
    for array, value in [*kept, last]:
        np.testing.assert_allclose(array.numpy(), value, rtol=1e-5)
    peer.session._sender.send_frees()
    first.numpy()
    held = {array._handle for array, _ in [*kept, last, (first, H), (step, H), (h, H)]}
    assert peer.server.values.keys() == held


@pytest.mark.parametrize("interval", [3, 10, 37])
def test_keeping_a_result_now_and_then_at_most_doubles_the_programs(interval: int) -> None:
    peer = connect(credit=UNBOUNDED, is_manual=True)
    h, w, b, r = operands(peer.session)
    kept = []
    for step in range(4 * STEPS):
        h = cell(h, w, b, r)
        if step % interval == 0:
            kept.append(h)
    peer.transport.run_once()
    bodies = whole_bodies(peer)
    lengths = [len(program.ops) for program in bodies]
    assert max(lengths.count(length) for length in lengths) <= 2
    assert len(peer.server.values) <= len(kept) + 5 + 6  # as well as the operands, and what is not told to be dead yet


def test_a_first_body_whose_state_has_another_dtype_or_shape_is_apart_from_the_loop() -> None:
    for first in (np.arange(6, dtype=np.int32), np.float32(0.5)):
        peer = connect(is_manual=True)
        h, d = peer.session.array(first), peer.session.array(np.linspace(-1, 1, 6, dtype=np.float32))
        expected = first
        for _ in range(200):
            h = fw.tanh(h * 0.5 + d)
            expected = np.tanh(expected * np.float32(0.5) + np.linspace(-1, 1, 6, dtype=np.float32))
        read = h.future()
        while not read.done():
            peer.transport.run_once()
        uses = peer.server.segments
        assert uses[0].repetition is NO_REPETITION
        (iterations,) = [use.repetition.iterations for use in loops_among(uses)]
        assert iterations >= 198
        assert len(uses) <= 3
        np.testing.assert_allclose(read.result(), expected, rtol=1e-3)


def test_a_name_that_follows_one_body_behind_keeps_nothing_of_the_others() -> None:
    peer = connect(is_manual=True)
    x, step = peer.session.array(H), peer.session.array(H * 0.01)
    before = x
    for _ in range(400):
        before, x = x, x + step - before * 0.5
    peer.transport.run_once()
    assert max(len(program.live) for program in whole_bodies(peer)) <= 2


def test_large_results_kept_now_and_then_are_not_stored_for_every_body() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(np.zeros(1 << 16, np.float32))
    kept = []
    for step in range(800):
        x = x * 0.5 + 1
        if step % 100 == 0:
            kept.append(x)
    peer.transport.run_once()
    assert max(len(program.live) for program in whole_bodies(peer)) <= 1 + len(kept)


@pytest.mark.parametrize("interval", [1, 10, 50])
def test_a_loop_read_in_the_midst_of_its_products_settles_on_few_programs(interval: int) -> None:
    peer = connect(is_manual=True)
    h, w, b, r = operands(peer.session)
    settled = 0
    for step in range(10 * interval + 80):
        h = fw.tanh((h * r) @ w + b)
        if step % interval == interval - 1:
            future = h.future()
            peer.transport.run_once()
            future.result(0)
        if step == 6 * interval + 60:
            settled = len(peer.server.segments)
    used = {segment.program for segment in peer.server.segments[settled:]}
    assert len(used) <= 3
    assert not used & {new.number for new in peer.server.new_programs if new.is_fragment}


def test_clients_with_other_prologues_share_their_programs() -> None:
    shared = []
    for prologue in (0, 1, 37):
        peer = connect(is_manual=True)
        x = peer.session.array(H)
        kept = [x * 2 + 1 for _ in range(prologue)]
        loop_of_calls(peer.session)
        peer.transport.run_once()
        shared.append(set(peer.session.stats.programs))
        del kept
    assert shared[0] & shared[1] & shared[2]


def test_a_moving_window_and_a_changing_factor_make_no_new_program() -> None:
    peer = connect(is_manual=True)
    data = peer.session.array(np.arange(4000, dtype=np.float32).reshape(400, 10))
    total = peer.session.array(np.zeros(10, np.float32))
    for step in range(300):
        total = total + data[step : step + 5].sum(axis=0) * (1.0 / (step + 1))
    peer.transport.run_once()
    bodies = whole_bodies(peer)
    assert bodies
    assert len(bodies) == len({len(program.ops) for program in bodies})


def test_a_value_dropped_before_it_was_sent_never_becomes_a_buffer() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    y = (x + 1) * 2
    read(peer, y)
    (segment,) = peer.server.segments
    assert peer.server.program_of(segment).live == (1,)


def test_a_value_dropped_later_is_freed_and_one_taken_last_dies_with_its_op() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    y = x + 1
    read(peer, y)
    z = y * 2
    handle = y._handle
    del y
    read(peer, z)
    assert peer.server.segments[-1].inputs == (handle,)
    assert peer.server.segments[-1].dying == (0,)
    assert handle not in peer.server.values


def test_when_all_is_dropped_the_server_holds_nothing() -> None:
    peer = connect(is_manual=True)
    last = inline_loop(peer.session)
    del last
    for _ in range(100):
        peer.transport.run_once()
    assert peer.server.values == {}


def test_a_value_of_another_threads_op_lives_until_that_op_is_sent() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = x + 1
    recorded, dropped = threading.Event(), threading.Event()
    results: list[Any] = []

    def use() -> None:
        z = handed.pop() * 2
        recorded.set()
        dropped.wait(HANGS_S)
        results.append(z.numpy())

    handed = [y]
    thread = threading.Thread(target=use)
    thread.start()
    recorded.wait(HANGS_S)
    del y
    (x + 2).numpy()
    dropped.set()
    thread.join(10)
    np.testing.assert_allclose(results[0], (H + 1) * 2)


@pytest.mark.parametrize("goes_with_a_segment", [False, True])
def test_however_many_arrays_die_at_once_a_frame_is_no_longer_than_the_server_takes(
    goes_with_a_segment: bool,
) -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    recorder = peer.session.recorder()
    uploads = range(x._handle + 1, x._handle + 1 + LIMITS.message_bytes // 8)
    peer.server.values.update(dict.fromkeys(uploads, H))
    for handle in uploads:
        recorder.note_death(handle)
    future = (x + 1 if goes_with_a_segment else x).future()
    peer.session._sender.send_frees()
    peer.transport.run_once()  # raises if a frame is too long
    future.result(0)
    assert len(peer.server.values) < 3


def test_assigning_to_a_part_frees_the_old_value() -> None:
    peer = connect()
    x = peer.session.array(H)
    old = x._handle
    x[0, 0] = 5
    x.numpy()
    assert old not in peer.server.values


def test_debugging_changes_no_program() -> None:
    programs = []
    for debug in (False, True):
        peer = connect(is_manual=True, debug=debug)
        loop_of_calls(peer.session)
        peer.transport.run_once()
        programs.append({program.ops for program in whole_bodies(peer)})
    assert programs[0] == programs[1]
