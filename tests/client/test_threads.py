"""Several threads of a session: what one takes lives on until it is sent, whatever others do meanwhile."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._stream import sender as _sending
from fusewire.testing.memory_server import LIMITS
from fusewire_protos.frames import Free, Repetition, Segment
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.loops import H
from tests.client.peer import Peer, connect, entries
from tests.patience import HANGS_S


def in_another_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """What `work` returns there."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda *given: results.append(work(*given)), args=arguments)
    thread.start()
    thread.join(10)
    return results[0]


def read(peer: Peer, array: fw.Array) -> Any:
    """The value, on a transport that is stepped."""
    future = array.future()
    peer.transport.run_once()
    return future.result(0)


def tell_deaths(peer: Peer) -> None:
    peer.session._sender.send_frees()
    peer.transport.run_once()


def deaths(peer: Peer) -> list[int]:
    """All that the server has been told."""
    freed = [handle for free in entries(peer, Free) for handle in free.handles]
    dying = [segment.inputs[place] for segment in entries(peer, Segment) for place in segment.dying]
    return [*freed, *dying]


def assign(array: fw.Array, value: float) -> fw.Array:
    array[0] = value
    return array


def test_an_array_assigned_to_while_another_threads_op_takes_it_is_what_that_op_saw() -> None:
    peer = connect(is_manual=True)
    weights = peer.session.array(H) + 0
    result = in_another_thread(operator.mul, weights, 3)
    assign(weights, 9.0)
    np.testing.assert_array_equal(read(peer, weights)[0], 9.0)
    tell_deaths(peer)
    np.testing.assert_array_equal(read(peer, result), H * 3)


def test_an_array_may_be_assigned_to_by_a_thread_that_did_not_make_it() -> None:
    peer = connect(is_manual=True)
    buffer = peer.session.array(H) + 0
    in_another_thread(assign, buffer, 7.0)
    tell_deaths(peer)
    np.testing.assert_array_equal(read(peer, buffer)[0], 7.0)


def test_a_lent_handle_dies_once_all_ops_that_take_it_are_sent() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H) + 0
    handle = x._handle
    results = [in_another_thread(operator.mul, x, other) for other in (2, x)]
    del x
    tell_deaths(peer)
    assert handle not in deaths(peer)
    for result in results:
        read(peer, result)
    tell_deaths(peer)
    assert deaths(peer).count(handle) == 1


def test_an_array_that_ops_of_another_thread_take_again_and_again_lives_until_the_last_is_sent() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H) + 0
    handle = x._handle

    def multiply(given: fw.Array) -> list[fw.Array]:
        own = peer.session.array(H)
        first = own * given + given
        read(peer, first)
        return [first, given - own, own * given]

    results = in_another_thread(multiply, x)
    del x
    tell_deaths(peer)
    assert handle not in deaths(peer)
    for result, expected in zip(results, [H * H + H, H - H, H * H], strict=True):
        np.testing.assert_array_equal(read(peer, result), expected)
    tell_deaths(peer)
    assert deaths(peer).count(handle) == 1


def test_few_ops_of_a_segment_pin_what_they_take_from_another_thread() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H) + 0

    def multiply(given: fw.Array) -> int:
        own = peer.session.array(H)
        for _ in range(50):
            own = own * given
        return len(given._recorder.pinned)

    assert in_another_thread(multiply, x) == 1


def test_an_array_of_another_session_is_refused_even_if_it_has_the_handle_of_a_foreign_one() -> None:
    one, other = connect(is_manual=True), connect(is_manual=True)
    foreign, stranger = one.session.array(H), other.session.array(H)
    assert foreign._handle == stranger._handle

    def multiply() -> None:
        own = one.session.array(H) * foreign
        with pytest.raises(fw.ArgumentError, match="different sessions"):
            own * stranger
        with pytest.raises(fw.ArgumentError, match="different sessions"):
            stranger * own

    in_another_thread(multiply)


def test_an_op_recorded_between_the_taking_of_an_array_and_its_op_does_not_end_the_loan() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H) + 0

    def multiply(given: fw.Array) -> fw.Array:
        own = peer.session.array(H)

        class Interrupted(np.float32):
            """Whose reading is interrupted, as a handler may anywhere, by an op that is sent at once."""

            def item(self, *_: Any) -> Any:
                (own + 1).future()
                return 2.0

        result: fw.Array = given * Interrupted(2)
        return result

    result = in_another_thread(multiply, x)
    del x
    tell_deaths(peer)
    np.testing.assert_array_equal(read(peer, result), H * 2)


def test_an_array_assigned_to_as_it_is_taken_is_taken_before_or_after(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect(is_manual=True)
    weights = peer.session.array(H) + 0
    publish = peer.session.publish

    def publish_and_assign(*arguments: Any) -> None:
        monkeypatch.setattr(peer.session, "publish", publish)
        in_another_thread(assign, weights, 9.0)
        tell_deaths(peer)
        publish(*arguments)

    monkeypatch.setattr(peer.session, "publish", publish_and_assign)
    result = in_another_thread(operator.mul, weights, 3)
    tell_deaths(peer)
    np.testing.assert_array_equal(read(peer, result)[0], 27.0)


def test_an_array_assigned_to_as_it_is_read_is_read_before_or_after(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect(is_manual=True)
    weights = peer.session.array(H) + 0
    flush = peer.session._sender.flush

    def flush_and_assign(*arguments: Any, **options: Any) -> object:
        monkeypatch.setattr(peer.session._sender, "flush", flush)
        refused = flush(*arguments, **options)
        in_another_thread(assign, weights, 9.0)
        return refused

    monkeypatch.setattr(peer.session._sender, "flush", flush_and_assign)
    np.testing.assert_array_equal(read(peer, weights)[0], 9.0)


def test_a_program_that_another_thread_pushes_out_as_it_is_used_is_sent_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = wire.Limits()
    limits.CopyFrom(LIMITS)
    limits.programs = 2  # the session keeps one
    peer = connect(limits=limits)
    x, other = peer.session.array(H), peer.session.array(H[0])
    (x + 1).numpy(timeout=HANGS_S)
    original = _sending._repetition

    def pushed_out(*arguments: Any) -> Repetition:
        monkeypatch.setattr(_sending, "_repetition", original)
        in_another_thread(lambda: (other + 1).numpy(timeout=HANGS_S))
        return original(*arguments)

    monkeypatch.setattr(_sending, "_repetition", pushed_out)
    np.testing.assert_array_equal((x + 2).numpy(timeout=HANGS_S), H + 2)
    assert [new.number for new in peer.server.new_programs] == [0, 1, 2]
