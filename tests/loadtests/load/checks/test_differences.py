"""How a value differs from the expected one."""

from __future__ import annotations

import numpy as np
import pytest

from loadtests.load.checks.differences import difference_in_bits, difference_in_numbers

_VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_equal_bits_are_no_difference() -> None:
    assert difference_in_bits(_VALUE, _VALUE.copy()) is None
    assert difference_in_bits(None, None) is None


def test_the_first_element_that_differs_is_named_with_both_numbers() -> None:
    wrong = _VALUE.copy()
    wrong[1, 0] = 7
    wrong[1, 2] = 8
    text = "float32 [1, 0] is 7.0 (bits 40e00000), expected 3.0 (bits 40400000); 2 of 6 elements differ"
    assert (difference_in_bits(wrong, _VALUE), difference_in_numbers(wrong, _VALUE)) == (text, text)


def test_the_sign_of_a_zero_is_a_bit_and_no_number() -> None:
    assert difference_in_bits(np.array([-0.0], np.float32), np.array([0.0], np.float32)) is not None
    assert difference_in_numbers(np.array([-0.0], np.float32), np.array([0.0], np.float32)) is None


def test_an_array_without_axes_has_no_index() -> None:
    difference = difference_in_bits(np.array(2, np.int32), np.array(3, np.int32))
    assert difference == "int32 [] is 2 (bits 00000002), expected 3 (bits 00000003); 1 of 1 elements differ"


def test_a_nan_is_no_number_but_equals_a_nan() -> None:
    nan = np.array([np.nan], np.float32)
    assert difference_in_numbers(nan, np.array([1], np.float32)) is not None
    assert difference_in_numbers(nan, nan.copy()) is None


@pytest.mark.parametrize("compare", [difference_in_bits, difference_in_numbers])
def test_what_is_missing_is_told(compare) -> None:  # type: ignore[no-untyped-def]  # either function
    assert compare(None, _VALUE) == "nothing, expected float32 of shape (2, 3)"
    assert compare(_VALUE, None) == "float32 of shape (2, 3), expected nothing"
    assert compare(_VALUE[:1], _VALUE) == "float32 of shape (1, 3), expected float32 of shape (2, 3)"
