"""Arrays of complex numbers that are made without an upload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fusewire as fw
from fusewire_protos.frames import Upload
from tests.client.api.complex.agreement import Call, check
from tests.client.peer import connect, entries

CALLS: dict[str, Call] = {
    "zeros": lambda xp, z, w, x, i: xp.zeros((2, 3), dtype=xp.complex64),
    "ones": lambda xp, z, w, x, i: xp.ones(3, dtype=complex),
    "full of a complex number": lambda xp, z, w, x, i: xp.full((2, 2), 1 + 2j),
    "full in a complex dtype": lambda xp, z, w, x, i: xp.full(2, 3, dtype=xp.complex64),
    "full_like": lambda xp, z, w, x, i: xp.full_like(z, 2 - 1j),
    "zeros_like": lambda xp, z, w, x, i: xp.zeros_like(z),
    "ones_like of floats": lambda xp, z, w, x, i: xp.ones_like(x, dtype=complex),
    "eye": lambda xp, z, w, x, i: xp.eye(3, 4, k=1, dtype=xp.complex64),
    "identity": lambda xp, z, w, x, i: xp.identity(3, complex),
    "tri": lambda xp, z, w, x, i: xp.tri(3, dtype=complex),
    "arange": lambda xp, z, w, x, i: xp.arange(4, dtype=complex),
    "linspace": lambda xp, z, w, x, i: xp.linspace(1j, 1 + 2j, 5),
    "linspace without its end": lambda xp, z, w, x, i: xp.linspace(0, 1 + 2j, 5, endpoint=False),
    "linspace in a complex dtype": lambda xp, z, w, x, i: xp.linspace(0, 1, 5, dtype=xp.complex64),
    "distance of linspace": lambda xp, z, w, x, i: complex(xp.linspace(0, 4 + 2j, 5, retstep=True)[1]),
    "copy": lambda xp, z, w, x, i: xp.copy(z),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_array_is_made_as_numpy_makes_it(session: fw.Session, name: str) -> None:
    check(session, CALLS[name])


def test_nothing_is_uploaded() -> None:
    peer = connect()
    with peer.session:
        made = [fw.zeros(3, complex), fw.full(3, 1j), fw.eye(2, dtype=complex), fw.linspace(0, 1j, 3)]
        for each in made:
            each.numpy()
    assert entries(peer, Upload) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: fw.full(2, 1j, dtype=fw.float32), TypeError),
        (lambda: fw.linspace(0, 1j, 3, dtype=fw.float64), fw.DtypeError),
    ],
)
def test_a_real_dtype_takes_no_complex_number(session: fw.Session, call: Callable[[], Any], error: Any) -> None:
    with pytest.raises(error):
        call()
