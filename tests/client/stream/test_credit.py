"""The account of what is in flight."""

from __future__ import annotations

from fusewire._stream.credit import Credit
from fusewire_protos.credit import Amount


def test_what_fits_is_admitted() -> None:
    credit = Credit(Amount(ops=10, bytes=100, segments=2))
    credit.sent = Amount(5, 50, 1)
    assert credit.admits(Amount(5, 50, 1))
    assert not credit.admits(Amount(6, 0, 1))
    assert not credit.admits(Amount(0, 51, 1))
    assert not credit.admits(Amount(0, 0, 2))


def test_with_nothing_in_flight_anything_is_admitted() -> None:
    assert Credit(Amount(1, 1, 1)).admits(Amount(1000, 1000, 1))


def test_what_was_sent_is_completed_whatever_is_sent_later() -> None:
    credit = Credit(Amount(10, 10, 10))
    credit.sent = sent = Amount(4, 0, 1)
    credit.sent = Amount(8, 0, 2)
    assert not credit.has_completed(sent)
    credit.complete(Amount(4, 0, 1))
    assert credit.has_completed(sent)
    assert not credit.is_free


def test_completion_is_a_total() -> None:
    credit = Credit(Amount(10, 10, 10))
    credit.sent = Amount(8, 0, 2)
    credit.complete(Amount(4, 0, 1))
    assert credit.in_flight == Amount(4, 0, 1)
    credit.complete(Amount(8, 0, 2))
    assert credit.is_free
