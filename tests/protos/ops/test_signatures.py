"""Signatures are found again, told apart where equality does not, and forgotten when they are many."""

from __future__ import annotations

from typing import Any

import pytest

from fusewire_protos.errors import ShapeError
from fusewire_protos.ops import catalogue, dtypes, signatures
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import MOST_OPERANDS, kind_of, signature_of

VECTOR = Spec(dtypes.float32, (8,))
ADD, SUM, CONCAT, RESHAPE = (catalogue.BY_NAME[name] for name in ("add", "sum", "concat", "reshape"))


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins with a memory of its own."""
    monkeypatch.setattr(signatures, "_kinds", {})
    monkeypatch.setattr(signatures, "_signatures", {})
    monkeypatch.setattr(signatures, "known", signatures._signatures.get)


def test_equal_parts_give_one_signature_with_its_result() -> None:
    signature = signature_of(ADD, (VECTOR, VECTOR), ())
    assert signature is signature_of(ADD, (VECTOR, Spec(dtypes.float32, (8,))), ())
    assert (signature.result, signature.size_bytes, signature.starts) == (VECTOR, 32, 0)
    assert signature.kind == kind_of(VECTOR)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((ADD, (VECTOR, VECTOR), ()), (ADD, (VECTOR, Spec(dtypes.float32, (1,))), ())),
        ((ADD, (VECTOR, VECTOR), ()), (ADD, (VECTOR, Spec(dtypes.float64, (8,))), ())),
        ((SUM, (VECTOR,), ((0,), True)), (SUM, (VECTOR,), ((0,), False))),
        ((RESHAPE, (VECTOR,), ((1, 8),)), (RESHAPE, (VECTOR,), ((8, 1),))),
    ],
    ids=["shape", "dtype", "flag", "dims"],
)
def test_other_parts_give_another(first: Any, second: Any) -> None:
    assert signature_of(*first) is not signature_of(*second)
    assert signature_of(*first) is signature_of(*first)


def test_attributes_that_are_equal_in_another_type_have_keys_of_their_own() -> None:
    keys = {signatures.attributes_key(attributes) for attributes in ((1,), (True,), (1.0,), ((1,),), ())}
    assert len(keys) == 5


def test_what_the_rules_refuse_leaves_nothing_behind() -> None:
    with pytest.raises(ShapeError):
        signature_of(ADD, (VECTOR, Spec(dtypes.float32, (3,))), ())
    assert not signatures._signatures


def test_an_op_of_many_operands_is_not_remembered() -> None:
    many = (VECTOR,) * (MOST_OPERANDS + 1)
    assert signature_of(CONCAT, many, (0,)) is not signature_of(CONCAT, many, (0,))
    assert not signatures._signatures


def test_when_many_are_remembered_all_are_forgotten_and_no_number_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "MOST_REMEMBERED", 4)
    first = signature_of(ADD, (VECTOR, VECTOR), ())
    for length in range(10, 20):
        signature_of(ADD, (Spec(dtypes.float32, (length,)),) * 2, ())
        assert len(signatures._signatures) <= 4
        assert len(signatures._kinds) <= 5
    again = signature_of(ADD, (VECTOR, VECTOR), ())
    assert again is not first
    assert again.kind != first.kind
