"""Signatures: one for equal parts, though a finaliser interns in the midst of interning."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fusewire._recording import signature as _signature
from fusewire._recording.signature import Signature, intern_signature, intern_spec, signature_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec


def sum_of(elements: int) -> Signature:
    """The signature of adding two vectors of this length."""
    spec = intern_spec(Spec(dtypes.float32, (elements,)), 1 << 30)
    return intern_signature(BY_NAME["add"], (spec, spec), ())


def test_equal_parts_have_one_signature_which_its_number_leads_to() -> None:
    assert sum_of(12_001) is sum_of(12_001)
    assert sum_of(12_001).number != sum_of(12_002).number
    assert signature_of(sum_of(12_001).number) is sum_of(12_001)


@pytest.mark.parametrize(("outer", "inner"), [(12_003, 12_003), (12_004, 12_005)])
def test_a_finaliser_may_intern_in_the_midst_of_interning(
    monkeypatch: pytest.MonkeyPatch, outer: int, inner: int
) -> None:
    build, found = _signature._signature, []

    def interrupted(*parts: Any) -> Signature:
        monkeypatch.setattr(_signature, "_signature", build)
        found.append(sum_of(inner))
        return build(*parts)

    monkeypatch.setattr(_signature, "_signature", interrupted)
    thread = threading.Thread(target=lambda: found.append(sum_of(outer)), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert found == [sum_of(inner), sum_of(outer)]
    assert [signature_of(signature.number) for signature in found] == found
