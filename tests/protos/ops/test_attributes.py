"""Which values attributes may have on the wire."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from fusewire_protos.ops.attributes import is_legal
from fusewire_protos.ops.op import AttributeKind


@pytest.mark.parametrize("value", [0.0, 0.1, -2.5, 1e308, 5e-324])
def test_a_finite_float_is_legal(value: float) -> None:
    assert is_legal(AttributeKind.FLOAT, value)


@pytest.mark.parametrize("value", [-0.0, nan, inf, -inf, 1, True, b"1", (0.1,)])
def test_what_is_no_float_or_has_an_equal_of_other_bits_is_refused(value: Any) -> None:
    assert not is_legal(AttributeKind.FLOAT, value)


@pytest.mark.parametrize("value", [0.5, True, 2**31])
def test_what_is_no_integer_in_range_is_refused(value: Any) -> None:
    assert not is_legal(AttributeKind.INTEGER, value)


@pytest.mark.parametrize("value", [(), (0, -3, 2**40, -(2**40))])
def test_strides_may_be_0_and_negative(value: Any) -> None:
    assert is_legal(AttributeKind.STRIDES, value)


@pytest.mark.parametrize("value", [3, [1], (2**40 + 1,), (-(2**40) - 1,), (1.0,), (True,), ((1,),), (1,) * 99])
def test_what_is_no_list_of_few_integers_in_range_is_refused(value: Any) -> None:
    assert not is_legal(AttributeKind.STRIDES, value)
