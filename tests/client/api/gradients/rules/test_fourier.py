"""The derivatives of Fourier transforms are those of central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.gradients.rules import fourier
from fusewire._api.ops.several_results import apply_for_several
from fusewire_protos.ops.op import Op
from tests.client.api.gradients.differences import Case, check, check_twice, drawn

LINE, BATCH = drawn(5), drawn(2, 6)


def _complex(real: Any, imag: Any) -> ComplexArray:
    return ComplexArray(real * 1.0, imag * 1.0)


def _parts(x: ComplexArray) -> Any:
    """Something of both parts that is not linear."""
    return x.real * x.real, x.imag * fw.exp(x.real)


CASES: dict[str, list[Case]] = {
    "fft": [
        Case(lambda x, y: _parts(fw.fft.fft(_complex(x, y))), (LINE, drawn(5, seed=1))),
        Case(lambda x, y: _parts(fw.fft.ifft(_complex(x, y), norm="forward")), (BATCH, drawn(2, 6, seed=1))),
        Case(lambda x: _parts(fw.fft.fft(x, axis=0)), (BATCH,)),
        Case(lambda x: _parts(fw.fft.fft2(x, (3, 8), norm="ortho")), (BATCH,)),
    ],
    "rfft": [
        Case(lambda x: _parts(fw.fft.rfft(x)), (LINE,)),
        Case(lambda x: _parts(fw.fft.rfft(x)), (BATCH,)),
        Case(lambda x: _parts(fw.fft.rfft(x, 1)), (BATCH,)),
        Case(lambda x: _parts(fw.fft.ihfft(x, 2)), (BATCH,)),
    ],
    "irfft": [
        Case(lambda x, y: fw.fft.irfft(_complex(x, y)) ** 2, (LINE, drawn(5, seed=1))),
        Case(lambda x, y: fw.fft.irfft(_complex(x, y), 5) ** 2, (BATCH, drawn(2, 6, seed=1))),
        Case(lambda x, y: fw.fft.hfft(_complex(x, y), 1) ** 2, (LINE, drawn(5, seed=1))),
        Case(lambda x: fw.fft.irfft(x, 9, norm="forward") ** 2, (LINE,)),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    for case in CASES[name]:
        check(session, case.function, *case.values)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: fw.fft.fft(_complex(x, y)).imag * x,
        lambda x, y: fw.fft.rfft(x * y).imag ** 2,
        lambda x, y: fw.fft.irfft(_complex(x, y)) ** 2,
    ],
)
def test_a_second_derivative_is_that_of_differences(session: fw.Session, function: Any) -> None:
    check_twice(session, function, LINE, drawn(5, seed=1))


def test_a_line_that_is_transformed_and_back_has_the_gradient_of_itself(session: fw.Session) -> None:
    x = session.array(BATCH)
    gradient = fw.grad(lambda x: (fw.fft.irfft(fw.fft.rfft(x), 6) ** 3).sum())(x)
    np.testing.assert_allclose(gradient.numpy(), 3 * BATCH**2, rtol=1e-12)


def test_the_cotangents_of_both_parts_take_one_transform(session: fw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []

    def counted(op: Op, *operands: Any) -> Any:
        computed.append(op.name)
        return apply_for_several(op, *operands)

    monkeypatch.setattr(fourier, "apply_for_several", counted)
    real, imag = session.array(LINE), session.array(LINE)
    fw.grad(lambda x, y: fw.fft.fft(_complex(x, y)).real.sum(), (0, 1))(real, imag)
    assert computed == ["fft"]
