"""Through a real server: a loop gives the bits of its ops one by one, however it is written, cut, sliced or joined."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import fusewire as fw
from tests.contract.service import Service
from tests.patience import HANGS_S

COUNTS = (1, 2, 3, 17, 1000)
_WITHIN_S = HANGS_S

Array = npt.NDArray[Any]


class Data(NamedTuple):
    weights: fw.Array
    shift: fw.Array
    rows: fw.Array
    start: fw.Array


def data_of(session: fw.Session, seed: int) -> Data:
    random = np.random.default_rng(seed)
    shapes = ((24, 24), (24,), (256, 24), (3, 24))
    return Data(*[session.array((random.standard_normal(shape) / 4).astype(np.float32)) for shape in shapes])


def body(data: Data, state: fw.Array, momentum: fw.Array) -> tuple[fw.Array, fw.Array]:
    """Two carried values, of which each takes the other."""
    pushed = fw.tanh(state @ data.weights + data.shift)
    return pushed - momentum * 0.5, momentum * 0.9 + pushed.sum(axis=0)


def written_inline(data: Data, count: int) -> fw.Array:
    state, momentum = data.start, data.shift
    for _ in range(count):
        state, momentum = body(data, state, momentum)
    return fw.concat([state, momentum.reshape((1, 24))])


def with_older_values(data: Data, count: int, *, reads: bool) -> list[bytes]:
    """A loop that takes results of one, two and three iterations before, and keeps some of the last ones."""
    oldest, older, state = data.start, data.start * 0.5, data.start * 0.25
    kept = []
    for step in range(count):
        oldest, older, state = older, state, fw.tanh(state @ data.weights + oldest * 0.9) - older
        if reads:
            state.numpy()
        if step in {count - 7, count - 5}:
            kept.append(state)
    return [each.numpy().tobytes() for each in (oldest, older, state, *kept)]


def read_in_each_iteration(data: Data, count: int) -> fw.Array:
    state, momentum = data.start, data.shift
    for _ in range(count):
        state, momentum = body(data, state, momentum)
        float(momentum[0])
    return fw.concat([state, momentum.reshape((1, 24))])


def written_as_fori_loop(data: Data, count: int) -> fw.Array:
    carry = (data.start, data.shift)
    state, momentum = fw.fori_loop(count, lambda _, each: body(data, *each), carry)
    return fw.concat([state, momentum.reshape((1, 24))])


def begin_endless(service: Service, session: fw.Session, seed: int) -> fw.Array:
    """Begins a loop that would run for days. It takes all credit, so that nothing that follows is sent."""
    data = data_of(session, seed)
    state: fw.Array
    state, _ = fw.fori_loop(1 << 30, lambda _, each: body(data, *each), (data.start, data.shift))
    service.wait_until(lambda: any(entry["in_flight_ops"] for entry in service.sessions()), "a loop that runs")
    return state


def written_as_function(data: Data, count: int) -> fw.Array:
    step = fw.function(lambda state, momentum: body(data, state, momentum))
    state, momentum = data.start, data.shift
    for _ in range(count):
        state, momentum = step(state, momentum)
    return fw.concat([state, momentum.reshape((1, 24))])


def written_as_loop_in_function(data: Data, count: int) -> fw.Array:
    @fw.function
    def run(*start: fw.Array) -> tuple[fw.Array, fw.Array]:
        return body(data, *fw.fori_loop(count - 1, lambda _, each: body(data, *each), start))

    run(data.start, data.shift)  # is recorded, and then sent again as it was recorded
    state, momentum = run(data.start, data.shift)
    return fw.concat([state, momentum.reshape((1, 24))])


WRITTEN = (written_inline, written_as_fori_loop, written_as_function, written_as_loop_in_function)


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("count", COUNTS)
def test_however_a_loop_is_written_it_gives_the_bits_of_its_iterations_one_by_one(
    service: Service, hasty: Service, count: int, written: Callable[[Data, int], fw.Array]
) -> None:
    for server in (service, hasty):
        with server.connect() as session:
            data = data_of(session, count)
            expected = read_in_each_iteration(data, count).numpy()
            for _ in range(2):  # op by op perhaps, and then by its plan
                assert written(data, count).numpy().tobytes() == expected.tobytes()
                server.wait_until_planned()


@pytest.mark.parametrize("count", [*COUNTS, 2000])
def test_values_of_several_iterations_before_are_those_of_these_iterations(
    service: Service, hasty: Service, count: int
) -> None:
    for server in (service, hasty):
        with server.connect() as session:
            data = data_of(session, count)
            expected = with_older_values(data, count, reads=True)
            for _ in range(2):  # op by op perhaps, and then by its plan
                assert with_older_values(data, count, reads=False) == expected
                server.wait_until_planned()


def test_a_loop_that_is_cut_by_a_read_at_any_iteration_gives_the_same_bits(hasty: Service) -> None:
    def run(data: Data, reads_at: range) -> bytes:
        state, momentum = data.start, data.shift
        for step in range(20):
            state, momentum = body(data, state, momentum)
            if step in reads_at:
                state.numpy(timeout=_WITHIN_S)
        return fw.concat([state, momentum.reshape((1, 24))]).numpy(timeout=_WITHIN_S).tobytes()

    with hasty.connect() as session:
        data = data_of(session, 4)
        expected = run(data, range(20))
        for _ in range(2):  # op by op perhaps, and then by its plans
            assert [run(data, range(cut, cut + 1)) for cut in range(20)] == [expected] * 20
            hasty.wait_until_planned()


def test_loops_of_other_counts_and_data_give_in_company_what_they_give_alone(hasty: Service) -> None:
    counts = (300, 7, 150, 1, 64, 300, 23)
    together = Barrier(len(counts))

    def run(seed: int, count: int) -> tuple[bytes, bytes]:
        with hasty.connect() as session:
            data = data_of(session, seed)
            alone = read_in_each_iteration(data, count).numpy(timeout=_WITHIN_S)
            together.wait(_WITHIN_S)
            return alone.tobytes(), written_as_fori_loop(data, count).numpy(timeout=_WITHIN_S).tobytes()

    with ThreadPoolExecutor(len(counts)) as pool:
        results = list(pool.map(run, range(len(counts)), counts))
    assert all(alone == in_company for alone, in_company in results)


@pytest.mark.parametrize("every", [1, 3, 50])
def test_results_that_are_kept_of_some_iterations_are_those_of_these_iterations(hasty: Service, every: int) -> None:
    def run(data: Data, *, reads: bool) -> list[bytes]:
        state, momentum, kept = data.start, data.shift, []
        for step in range(120):
            state, momentum = body(data, state, momentum)
            if reads:
                state.numpy()
            if step % every == 0:
                kept.append(state)
        return [each.numpy().tobytes() for each in kept]

    with hasty.connect() as session:
        data = data_of(session, 5)
        assert run(data, reads=False) == run(data, reads=True)


def test_scalars_windows_and_uploads_may_change_in_each_iteration(hasty: Service) -> None:
    noise = np.random.default_rng(1).standard_normal((200, 3, 24)).astype(np.float32)

    def run(session: fw.Session, data: Data, *, reads: bool) -> bytes:
        state = data.start
        for step in range(200):
            state = fw.tanh(state @ data.weights + data.rows[step : step + 3] * 0.99**step) + session.array(noise[step])
            if reads:
                state.numpy()
        return state.numpy().tobytes()

    with hasty.connect() as session:
        data = data_of(session, 6)
        assert run(session, data, reads=False) == run(session, data, reads=True)


def test_a_cancelled_loop_ends_between_its_iterations_and_leaves_nothing(hasty: Service) -> None:
    with hasty.connect() as session:
        awaited = begin_endless(hasty, session, 7).future()
        session.cancel()
        with pytest.raises(fw.Cancelled):
            awaited.result(_WITHIN_S)
        assert written_inline(data_of(session, 7), 3).numpy().shape == (4, 24)
    hasty.wait_until_empty()


def test_a_session_that_ends_within_a_loop_leaves_nothing(hasty: Service) -> None:
    with hasty.connect() as session:
        begin_endless(hasty, session, 8)
    hasty.wait_until_empty()


def test_a_long_loop_leaves_time_to_other_sessions(hasty: Service) -> None:
    with hasty.connect() as busy, hasty.connect() as other:
        begin_endless(hasty, busy, 9)
        assert written_inline(data_of(other, 10), 50).numpy(timeout=_WITHIN_S).shape == (4, 24)
        busy.cancel()
