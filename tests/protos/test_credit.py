"""Amounts of credit."""

from __future__ import annotations

import pytest

from fusewire_protos.credit import Amount, cost_of
from fusewire_protos.frames import NO_REPETITION, Repetition


def test_amounts_add_up_and_are_taken_away_unit_by_unit() -> None:
    assert Amount(1, 20, 3).plus(Amount(10, 2, 4)) == Amount(11, 22, 7)
    assert Amount(11, 22, 7).minus(Amount(10, 2, 4)) == Amount(1, 20, 3)


@pytest.mark.parametrize(
    ("amount", "fits"),
    [(Amount(), True), (Amount(4, 5, 6), True), (Amount(5), False), (Amount(bytes=6), False), (Amount(0, 0, 7), False)],
)
def test_an_amount_fits_a_limit_that_it_exceeds_in_no_unit(amount: Amount, fits: bool) -> None:
    assert amount.fits(Amount(4, 5, 6)) == fits


@pytest.mark.parametrize(
    ("repetition", "cost"),
    [
        (NO_REPETITION, Amount(30, 12, 1)),
        (Repetition(1, 0, (1, 0)), Amount(20, 4, 1)),
        (Repetition(5, 2, (3, 1)), Amount(20, 20, 1)),
    ],
)
def test_a_loop_takes_credit_for_what_it_keeps_and_for_no_more_ops_than_there_is(
    repetition: Repetition, cost: Amount
) -> None:
    assert cost_of(repetition, Amount(30, 12, 1), (4, 8), credit_ops=20) == cost
