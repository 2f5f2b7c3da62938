"""Amounts of credit."""

from __future__ import annotations

import pytest

from fusewire_protos.credit import Amount


def test_amounts_add_up_and_are_taken_away_unit_by_unit() -> None:
    assert Amount(1, 20, 3).plus(Amount(10, 2, 4)) == Amount(11, 22, 7)
    assert Amount(11, 22, 7).minus(Amount(10, 2, 4)) == Amount(1, 20, 3)


@pytest.mark.parametrize(
    ("amount", "fits"),
    [(Amount(), True), (Amount(4, 5, 6), True), (Amount(5), False), (Amount(bytes=6), False), (Amount(0, 0, 7), False)],
)
def test_an_amount_fits_a_limit_that_it_exceeds_in_no_unit(amount: Amount, fits: bool) -> None:
    assert amount.fits(Amount(4, 5, 6)) == fits
