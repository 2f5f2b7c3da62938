"""Bounds on the numbers of a load test."""

from __future__ import annotations

import pytest

from loadtests.reports.bounds import AT_LEAST, AT_MOST, Bound, failures, read_bound

_DOCUMENT = {"p99_s": 0.02, "steps_per_s": 100.0, "rows_per_ready": None}


def test_a_bound_is_a_name_and_a_number() -> None:
    assert read_bound("p99_s=0.01") == Bound("p99_s", 0.01)


@pytest.mark.parametrize("text", ["p99=1", "p99_s", "p99_s=", "p99_s=fast", "=1", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be bounded|could not convert"):
        read_bound(text)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
def test_a_bound_that_is_not_finite_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match=f"the bound of p99_s is {number}; expected a finite number"):
        read_bound(f"p99_s={number}")


def test_no_number_has_bounds_on_both_sides() -> None:
    assert not set(AT_MOST) & set(AT_LEAST)


@pytest.mark.parametrize(("field", "kept", "exceeded"), [("p99_s", 0.02, 0.019), ("steps_per_s", 100, 101)])
def test_a_number_at_its_bound_keeps_it(field: str, kept: float, exceeded: float) -> None:
    assert failures([Bound(field, kept)], _DOCUMENT) == []
    (failure,) = failures([Bound(field, exceeded)], _DOCUMENT)
    assert failure.startswith(f"{field} is ")


def test_a_number_that_was_not_measured_keeps_no_bound() -> None:
    assert failures([Bound("rows_per_ready", 0.9)], _DOCUMENT) == [
        "rows_per_ready was not measured, and its bound is 0.9"
    ]
