"""With `debug`, an index on the server that is out of range raises at the next read, and names its line."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S

DATA = np.arange(5, dtype=np.float32)


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = connect(debug=True)
    with peer.session:
        yield peer


def here() -> str:
    """The line of the caller, as errors name it."""
    return re.escape(f"recorded at {__file__}:{sys._getframe(1).f_lineno})")


def read(x: fw.Array) -> Any:
    return x.numpy(timeout=HANGS_S)


async def _awaited(x: fw.Array) -> Any:
    return await x


READERS: list[Callable[[fw.Array], Any]] = [
    read,
    lambda x: x.future().result(HANGS_S),
    lambda x: asyncio.run(asyncio.wait_for(_awaited(x), 10)),
]


@pytest.mark.parametrize("reader", READERS)
def test_the_next_read_names_the_first_line_and_later_reads_go_on(peer: Peer, reader: Callable[[Any], Any]) -> None:
    x, other = peer.session.array(DATA), peer.session.array(1.0)
    x[peer.session.array(4)], x[peer.session.array([-5])]
    y, first = x[peer.session.array([0, 5])], here()
    x.take(peer.session.array(-6))
    with pytest.raises(IndexError, match=f"out of range for an axis of length 5 .*{first}"):
        reader(other)
    assert reader(other) == 1
    np.testing.assert_array_equal(reader(y), [0, 4])


def test_an_assignment_names_its_line(peer: Peer) -> None:
    x = peer.session.array(DATA)
    x[peer.session.array(9)] = 1
    line = sys._getframe().f_lineno - 1
    with pytest.raises(IndexError, match=rf"{re.escape(__file__)}:{line}\)"):
        read(x)


def test_an_unsigned_index_of_a_long_axis_is_never_outside(peer: Peer) -> None:
    x = peer.session.array(np.arange(300.0))
    assert read(x[peer.session.array(255, "uint8")]) == 255


def test_a_line_of_a_python_loop_is_named(peer: Peer) -> None:
    x, place, line = peer.session.array(DATA), peer.session.array(0), ""
    for _ in range(200):
        y, line = x[place], here()
        place = place + (y < 0)
        place = place + 1
    with pytest.raises(IndexError, match=line):
        read(place)


@pytest.mark.parametrize(("iterations", "is_outside"), [(2, False), (4, True)])
def test_a_line_in_the_body_of_a_loop_is_named(peer: Peer, iterations: int, is_outside: bool) -> None:
    x, line = peer.session.array(DATA), ""

    def body(i: fw.Array, total: fw.Array) -> fw.Array:
        nonlocal line
        total, line = total + x[i * i], here()
        return total

    total = fw.fori_loop(iterations, body, fw.zeros((), "float32"))
    if is_outside:
        with pytest.raises(IndexError, match=line):
            read(total)
    assert read(total) == sum(min(i * i, 4) for i in range(iterations))


def test_a_loop_without_such_an_index_is_as_it_was(peer: Peer) -> None:
    assert read(fw.fori_loop(3, lambda i, x: x + i, peer.session.array(0))) == 3


def test_a_line_of_a_recorded_function_is_named_at_each_call(peer: Peer) -> None:
    line = ""

    @fw.function
    def pick(x: fw.Array, place: fw.Array) -> fw.Array:
        nonlocal line
        picked, line = x[place], here()
        return picked

    x, inside, outside = peer.session.array(DATA), peer.session.array(2), peer.session.array(7)
    assert read(pick(x, inside)) == 2
    for _ in range(2):
        y = pick(x, outside)
        with pytest.raises(IndexError, match=line):
            read(y)
        assert read(y) == 4


def test_a_body_that_fails_leaves_no_check_behind(peer: Peer) -> None:
    x = peer.session.array(DATA)

    def body(i: fw.Array, carry: fw.Array) -> fw.Array:
        x[i * i]
        raise KeyError

    with pytest.raises(KeyError):
        fw.fori_loop(9, body, x)
    np.testing.assert_array_equal(read(x), DATA)


def test_an_index_of_another_thread_raises_where_the_value_is_read(peer: Peer) -> None:
    x = peer.session.array(DATA)
    with ThreadPoolExecutor(1) as executor:
        y = executor.submit(lambda: x[peer.session.array(8)]).result(HANGS_S)
    with pytest.raises(IndexError):
        read(y)


def test_a_failed_value_raises_its_own_error(peer: Peer) -> None:
    x = peer.session.array(DATA)
    y = x + 1
    peer.server.failing[y._handle] = "out_of_memory"
    z = y[y.astype("int64")]
    with pytest.raises(fw.OutOfMemory):
        read(z)


def test_without_debug_nothing_is_recorded() -> None:
    with connect().session as session:
        x, place = session.array(DATA), session.array(8)
        before = session.stats.ops_recorded
        x[place]
        assert session.stats.ops_recorded - before == 4  # take, and three ops that count from the back
        assert read(x[place]) == 4
