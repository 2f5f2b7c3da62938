"""Through a real server: loops that one kernel can run give the bits of their iterations one by one.

On a CUDA device these loops run as persistent kernels: pointwise bodies, and bodies of products, reductions and
pointwise ops on matrices of the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np
import pytest

import fusewire as fw
from tests.contract.service import Service
from tests.patience import HANGS_S

STEPS = 1000
# A processor has no kernel of many iterations, and takes long for them one by one.
COUNTS = {"cpu": (1, 2, 3, 17, 40), "cuda": (1, 2, 3, 17, STEPS)}
COUNTS_OF_COMPANY = {"cpu": (50, 7, 25, 1, 11, 50, 4), "cuda": (300, 7, 150, 1, 64, 300, 23)}
_MOST_STATES = 60  # that are kept: the program has a result for each
_WITHIN_S = HANGS_S

State = tuple[fw.Array, ...]
Keeping = Callable[["Data", int, Any, State], State]  # a body that keeps rows; the integer is the last index


class Data(NamedTuple):
    """Operands of a loop over states of (rows, width). `noise` has a matrix for each iteration.

    `together` are the weights of four gates, and `joined` those of what is given and a state side by side.
    """

    weights: fw.Array
    gates: fw.Array
    more: fw.Array
    shift: fw.Array
    rest: fw.Array
    noise: fw.Array
    start: fw.Array
    together: fw.Array
    joined: fw.Array


def data_of(session: fw.Session, rows: int, width: int, seed: int) -> Data:
    random = np.random.default_rng(seed)
    shapes = (*[(width, width)] * 3, (width,), (rows, width), (STEPS * rows, width), (rows, width))
    shapes = (*shapes, *[(height, 4 * width) for height in (width, width // 3 + width)])
    return Data(*[session.array((random.standard_normal(shape) / width**0.5).astype(np.float32)) for shape in shapes])


def recurrent(data: Data, _: int, state: State) -> State:
    (h,) = state
    return (fw.sigmoid(-((h @ data.weights + data.shift) * 0.5)) + data.rest,)


def transposed(data: Data, _: int, state: State) -> State:
    (h,) = state
    return (fw.tanh(h @ data.weights.T + h * 0.5),)


def driven(data: Data, step: int, state: State) -> State:
    (h,) = state
    rows = data.start.shape[0]
    return (fw.tanh(h @ data.weights + data.noise[step * rows : (step + 1) * rows] * 0.99 ** (step % 7)),)


def with_a_cell(data: Data, _: int, state: State) -> State:
    h, cell, positive = state
    cell = cell * 0.9 + fw.tanh(h @ data.weights + data.shift)
    return fw.tanh(cell) * 0.5, cell, (cell > 0.0) | positive


def leaky(data: Data, _: int, state: State) -> State:
    (x,) = state
    return (x + (fw.tanh(x * 0.9 + data.shift) @ data.weights - x + data.rest) * 0.2,)


def gated(data: Data, _: int, state: State) -> State:
    (h,) = state
    update, reset = fw.sigmoid(h @ data.gates + data.shift), fw.sigmoid(h @ data.more)
    return (h + update * (fw.tanh((reset * h) @ data.weights + data.shift) - h),)


def with_memory(data: Data, _: int, state: State) -> State:
    h, cell = state
    cell = fw.sigmoid(h @ data.gates) * cell + fw.sigmoid(h @ data.more + data.rest) * fw.tanh(h @ data.weights)
    return fw.sigmoid(h @ data.gates.T + data.shift) * fw.tanh(cell), cell


def with_gates_together(data: Data, _: int, state: State) -> State:
    h, cell = state
    i, f, g, o = fw.split(h @ data.together + 0.1, 4, axis=1)
    cell = fw.sigmoid(f) * cell + fw.sigmoid(i + data.shift) * fw.tanh(g)
    return fw.sigmoid(o) * fw.tanh(cell), cell


def stacked(data: Data, step: int, state: State) -> State:
    lower, upper = state
    rows = data.start.shape[0]
    lower = fw.tanh(lower @ data.weights + data.noise[step * rows : (step + 1) * rows])
    return lower, fw.tanh(lower @ data.gates + upper @ data.more)


def fed(data: Data, step: int, state: State) -> State:
    (h,) = state
    rows, width = data.start.shape
    given = data.noise[step * rows : (step + 1) * rows, : width // 2] @ data.gates[: width // 2]
    return (fw.tanh(given + h @ data.weights + data.shift),)


def joined(data: Data, step: int, state: State) -> State:
    """Long short-term memory by one product of what is given and the state, side by side."""
    h, cell = state
    rows, width = data.start.shape
    few = width // 3
    given = data.noise[step * rows : (step + 1) * rows, :few]
    i, f, g, o = fw.split(fw.concatenate([given, h], axis=1) @ data.joined, 4, axis=1)
    cell = fw.sigmoid(f) * cell + fw.sigmoid(i + data.shift) * fw.tanh(g)
    return fw.sigmoid(o) * fw.tanh(cell), cell


def bottleneck(data: Data, _: int, state: State) -> State:
    (h,) = state
    few = data.start.shape[1] // 3
    return (fw.tanh(fw.tanh(h @ data.gates[:, :few] + 0.1) @ data.more[:few]) + h * 0.5,)


def descending(data: Data, _: int, state: State) -> State:
    w, b = state
    points, labels = data.noise[:150], data.noise[150:300, 0] > 0.0
    error = fw.sigmoid(points @ w + b) - labels
    return w - (points.T @ error) * 0.1, b - error.mean() * 0.1


def turned(data: Data, _: int, state: State) -> State:
    (x,) = state
    y = data.weights @ x
    return (y * 0.5 + y / (fw.abs(y).max(axis=0) + 1.0),)


def solving(data: Data, _: int, state: State) -> State:
    x, r, p, squared = state
    q = p @ data.weights
    step = fw.tanh(squared + (p * q).sum(axis=1, keepdims=True))
    r = r * 0.5 - step * q
    new = (r * r).sum(axis=1, keepdims=True)
    return fw.tanh(x + step * p), r, r + p * fw.tanh(new - squared), new


def attending(data: Data, step: int, state: State) -> State:
    (q,) = state
    rows = data.start.shape[0]
    score = q @ data.gates + data.noise[step * rows : (step + 1) * rows]
    weight = fw.exp(score - score.max(axis=1, keepdims=True))
    return (q * 0.5 + (weight / weight.sum(axis=1, keepdims=True)) @ data.more,)


def pointwise(data: Data, step: int, state: State) -> State:
    h, count, half = state
    h = fw.tanh(h * 0.9 + data.shift) + data.rest * step
    return h, count + (h > 0.0).astype(fw.int32), half * 0.5 + h.astype(fw.float16)


def start_of(body: Callable[..., State], data: Data) -> State:
    if body is with_a_cell:
        return data.start, data.rest, data.start > 1.0
    if body in (with_memory, with_gates_together, joined, stacked):
        return data.start, data.rest
    if body is descending:
        return data.shift, data.rest[0, 0]
    if body is turned:
        return (data.start.T * 1.0,)
    if body is solving:
        return data.rest, data.start, data.start, (data.start * data.start).sum(axis=1, keepdims=True)
    if body is pointwise:
        return data.start, (data.start > 1.0).astype(fw.int32), data.start.astype(fw.float16)
    return (data.start,)


BODIES = (
    *(recurrent, transposed, driven, with_a_cell, leaky, gated, with_memory, with_gates_together, stacked),
    *(fed, joined, bottleneck, descending, turned, solving, attending, pointwise),
)
SHAPES = ((1, 64), (5, 100), (33, 256), (2, 289))


def bytes_of(state: State) -> list[bytes]:
    return [each.numpy(timeout=_WITHIN_S).tobytes() for each in state]


def send_alone(state: State) -> State:
    """Sends what makes a state, and nothing else with it. Does not wait: a wait an iteration is most of a test."""
    state[0].future()
    return state


def one_by_one(body: Callable[..., State], data: Data, count: int) -> list[State]:
    """The states of all iterations, none of which may run with another."""
    state, states = start_of(body, data), []
    for step in range(count):
        state = send_alone(body(data, step, state))
        states.append(state)
    return states


def inline(body: Callable[..., State], data: Data, count: int, *, every: int = STEPS) -> list[State]:
    """Every `every`th state, and the last."""
    state, kept = start_of(body, data), []
    for step in range(count):
        state = body(data, step, state)
        if step % every == 0:
            kept.append(state)
    return [*kept, state]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("body", BODIES)
def test_a_loop_gives_the_bits_of_its_iterations_one_by_one(
    service: Service, hasty: Service, backend: str, body: Callable[..., State], shape: tuple[int, int]
) -> None:
    counts = COUNTS[backend]
    with service.connect() as session:
        states = one_by_one(body, data_of(session, *shape, seed=1), max(counts))
        expected = {count: bytes_of(states[count - 1]) for count in counts}
    for server in (service, hasty):
        with server.connect() as session:
            data = data_of(session, *shape, seed=1)
            for count in counts:
                for _ in range(2):  # op by op perhaps, and then by its plan
                    assert bytes_of(inline(body, data, count)[-1]) == expected[count]
                    server.wait_until_planned()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_loop_that_takes_rows_by_its_counter_gives_the_bits_of_its_iterations_one_by_one(
    service: Service, hasty: Service, backend: str, shape: tuple[int, int]
) -> None:
    rows, width = shape

    def body(data: Data, step: Any, state: State) -> State:
        h, cell = state
        driven = h @ data.together + given[step] @ data.together[: width // 2] + given[count - step, :, :1]
        i, f, g, o = fw.split(driven, 4, axis=1)
        cell = fw.sigmoid(f) * cell + fw.sigmoid(i + noise[step * rows : (step + 1) * rows]) * fw.tanh(g)
        return fw.sigmoid(o) * fw.tanh(cell), cell

    for server in (service, hasty):
        with server.connect() as session:
            data = data_of(session, *shape, seed=1)
            noise, given = data.noise * 1.0, data.noise.reshape(STEPS, rows, width)[:, :, : width // 2] * 1.0
            for count in (1, 3, 17, min(COUNTS[backend][-1], 300)):
                state: State = (data.start, data.rest)
                for step in range(count):
                    state = send_alone(body(data, step, state))
                for _ in range(2):  # op by op perhaps, and then by its plan
                    looped = fw.fori_loop(count, partial(body, data), (data.start, data.rest))
                    assert bytes_of(looped) == bytes_of(state)
                    server.wait_until_planned()


def keeping(data: Data, last: int, step: Any, state: State) -> State:
    """Keeps the new state of each iteration, and the old one in the opposite order."""
    h, rows, columns = state
    following = fw.tanh(h @ data.weights + data.shift)
    rows[step] = following
    columns[:, last - step] = h * 0.5
    return following, rows, columns


def along_rows(data: Data, last: int, step: Any, state: State) -> State:
    h, rows, columns = state
    rows[step + 1] = fw.tanh(rows[step] @ data.weights + h)
    return h * 0.9, rows, columns * 1.0


def gates_along_rows(data: Data, last: int, step: Any, state: State) -> State:
    h, rows, columns = state
    rows[step + 1] = fw.sigmoid(rows[step] @ data.gates) * fw.tanh(rows[step] @ data.weights) + rows[step] * 0.5
    return h + 0.0, rows, columns + 0.0


def along_columns(data: Data, last: int, step: Any, state: State) -> State:
    """Goes from the last to the first, with one column of pointwise values for each iteration."""
    h, rows, columns = state
    columns[:, last - step - 1] = fw.tanh(columns[:, last - step] * 0.9 + data.rest)
    return h + 0.0, rows + 0.0, columns


def from_the_first_row(data: Data, last: int, step: Any, state: State) -> State:
    h, rows, columns = state
    rows[step + 1] = fw.tanh(rows[0] @ data.weights) + h * 0.5
    return h + 0.0, rows, columns + 0.0


def from_two_rows(data: Data, last: int, step: Any, state: State) -> State:
    h, rows, columns = state
    rows[step + 2] = fw.tanh(rows[step + 1] @ data.weights) + rows[step] * 0.5
    return h + 0.0, rows, columns + 0.0


def of_two_rows(data: Data, last: int, step: Any, state: State) -> State:
    h, rows, columns = state
    rows[step + 2] = fw.tanh(rows[step + 1] @ data.weights + rows[step] @ data.gates)
    return h + 0.0, rows, columns + 0.0


def turned_over(data: Data, last: int, step: Any, state: State) -> State:
    """Assigns to the row that it reads, of which each element takes another one."""
    h, rows, columns = state
    rows[step] = fw.tanh(rows[step][:, ::-1] * 0.9)
    return h + 0.0, rows, columns + 0.0


KEEPING = (
    *(keeping, along_rows, gates_along_rows, along_columns),
    *(from_the_first_row, from_two_rows, of_two_rows, turned_over),
)


def kept_one_by_one(body: Keeping, data: Data, start: State, count: int) -> list[bytes]:
    state: State = (start[0], start[1].copy(), start[2].copy())
    for step in range(count):
        state = send_alone(body(data, start[1].shape[0] - 1, step, state))
    return bytes_of(state)


def to_keep(session: fw.Session, data: Data, most: int) -> State:
    """The start of `keeping`: arrays for `most` iterations, which have elements before."""
    rows, width = data.start.shape
    random = np.random.default_rng(5)
    shapes = ((most, rows, width), (rows, most, width))
    return data.start, *[session.array(random.standard_normal(shape).astype(np.float32)) for shape in shapes]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("body", KEEPING)
def test_a_loop_that_keeps_a_row_of_each_iteration_gives_the_bits_of_its_iterations_one_by_one(
    service: Service, hasty: Service, backend: str, body: Keeping, shape: tuple[int, int]
) -> None:
    for server in (service, hasty):
        with server.connect() as session:
            data = data_of(session, *shape, seed=1)
            start = to_keep(session, data, 102)
            before = bytes_of(start)
            for count in (1, 3, 17, min(COUNTS[backend][-1], 100)):
                expected = kept_one_by_one(body, data, start, count)
                for _ in range(3):  # op by op perhaps, then by its plan
                    looped = fw.fori_loop(count, partial(body, data, 101), start)
                    assert bytes_of(looped) == expected
                    server.wait_until_planned()
            assert bytes_of(start) == before


@pytest.mark.parametrize("body", [keeping, along_rows])
def test_loops_that_keep_rows_give_in_company_what_they_give_alone(hasty: Service, backend: str, body: Keeping) -> None:
    counts = COUNTS_OF_COMPANY[backend]
    together = Barrier(len(counts))

    def run(seed: int, count: int) -> tuple[list[bytes], list[list[bytes]]]:
        with hasty.connect() as session:
            data = data_of(session, 4, 64, seed)
            start = to_keep(session, data, 301)
            alone = kept_one_by_one(body, data, start, count)
            together.wait(_WITHIN_S)
            looped = [bytes_of(fw.fori_loop(count, partial(body, data, 300), start)) for _ in range(3)]
            return alone, looped

    with ThreadPoolExecutor(len(counts)) as pool:
        results = list(pool.map(run, range(len(counts)), counts))
    assert all(each == alone for alone, looped in results for each in looped)


@pytest.mark.parametrize("every", [1, 3, 30])
@pytest.mark.parametrize("body", BODIES)
def test_states_that_are_kept_are_those_of_their_iterations(
    hasty: Service, backend: str, body: Callable[..., State], every: int
) -> None:
    count = min(COUNTS[backend][-1], _MOST_STATES)
    with hasty.connect() as session:
        data = data_of(session, 3, 100, seed=2)
        expected = one_by_one(body, data, count)
        for _ in range(2):
            kept = inline(body, data, count, every=every)
            assert [*map(bytes_of, kept)] == [*map(bytes_of, [*expected[::every], expected[-1]])]
            hasty.wait_until_planned()


@pytest.mark.parametrize(
    "body",
    [
        recurrent,
        with_a_cell,
        driven,
        leaky,
        gated,
        with_gates_together,
        stacked,
        fed,
        joined,
        bottleneck,
        descending,
        solving,
        attending,
    ],
)
def test_rows_of_other_counts_and_data_give_in_company_what_they_give_alone(
    hasty: Service, backend: str, body: Callable[..., State]
) -> None:
    counts = COUNTS_OF_COMPANY[backend]
    together = Barrier(len(counts))

    def run(seed: int, count: int) -> tuple[Any, Any]:
        with hasty.connect() as session:
            data = data_of(session, 4, 64, seed)
            alone = bytes_of(one_by_one(body, data, count)[-1])
            together.wait(_WITHIN_S)
            return alone, bytes_of(inline(body, data, count)[-1])

    with ThreadPoolExecutor(len(counts)) as pool:
        results = list(pool.map(run, range(len(counts)), counts))
    assert all(alone == in_company for alone, in_company in results)
