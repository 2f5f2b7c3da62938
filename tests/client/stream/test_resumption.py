"""When a lost connection is made again, and when a session is given up."""

from __future__ import annotations

import pytest

from fusewire._stream.resumption import Resumption


def test_the_first_attempt_comes_at_once_and_later_ones_ever_later() -> None:
    resumption = Resumption(30)
    delays_s = [attempt.delay_s for _ in range(8) if (attempt := resumption.next_attempt(0, 1))]
    assert delays_s == [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2]


def test_many_clients_spread_their_attempts() -> None:
    delays_s = [attempt.delay_s for at in (0.0, 0.5, 1.0) if (attempt := Resumption(30).next_attempt(0, at))]
    assert delays_s == pytest.approx([0.05, 0.075, 0.1])


def test_no_attempt_begins_after_the_time_is_over() -> None:
    resumption = Resumption(30)
    assert resumption.next_attempt(100, 1)
    assert resumption.next_attempt(129.9, 1)
    assert resumption.next_attempt(130, 1) is None
    assert resumption.is_under_way


def test_an_attempt_ends_while_others_may_follow() -> None:
    resumption = Resumption(30)
    within_s = [attempt.within_s for now_s in (0, 25, 29.99) if (attempt := resumption.next_attempt(now_s, 1))]
    assert within_s == pytest.approx([10, 4.8, 1])


def test_each_loss_has_the_whole_time() -> None:
    resumption = Resumption(30)
    first = resumption.next_attempt(0, 1)
    resumption.next_attempt(1, 1)
    resumption.succeed()
    assert not resumption.is_under_way
    assert resumption.next_attempt(40, 1) == first
    assert resumption.next_attempt(69, 1)


def test_a_session_that_is_not_to_be_resumed_makes_no_attempt() -> None:
    resumption = Resumption(0)
    assert resumption.next_attempt(0, 1) is None
    assert not resumption.is_under_way
