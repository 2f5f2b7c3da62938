"""Calls that NumPy refuses: they raise an error of the same class, at the line, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import Peer, connect

A = np.arange(12.0).reshape(3, 4)

REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "sum axis": lambda xp, a: xp.sum(a, axis=2),
    "mean axis": lambda xp, a: a.mean(-3),
    "max axes": lambda xp, a: xp.max(a, axis=(0, 2)),
    "any axis": lambda xp, a: xp.any(a, axis=5),
    "argmax axis": lambda xp, a: xp.argmax(a, axis=2),
    "std axis": lambda xp, a: xp.std(a, axis=7),
    "axis twice": lambda xp, a: xp.sum(a, axis=(0, -2)),
    "axis of no integer": lambda xp, a: xp.sum(a, axis=1.5),
    "axis of a text": lambda xp, a: xp.sum(a, axis="rows"),
    "concatenate axis": lambda xp, a: xp.concatenate([a, a], axis=2),
    "concatenate shapes": lambda xp, a: xp.concatenate([a, a[:, 1:]]),
    "concatenate ranks": lambda xp, a: xp.concatenate([a, a[0]]),
    "concatenate nothing": lambda xp, a: xp.concatenate([]),
    "stack axis": lambda xp, a: xp.stack([a, a], axis=3),
    "stack shapes": lambda xp, a: xp.stack([a, a[0]]),
    "split": lambda xp, a: xp.split(a, 2),
    "expand_dims axis": lambda xp, a: xp.expand_dims(a, 4),
    "squeeze axis": lambda xp, a: xp.squeeze(a, 2),
    "squeeze length": lambda xp, a: xp.squeeze(a, 0),
    "swapaxes": lambda xp, a: xp.swapaxes(a, 0, 2),
    "moveaxis": lambda xp, a: xp.moveaxis(a, 0, 2),
    "transpose axes": lambda xp, a: xp.transpose(a, (0, 2)),
    "transpose twice": lambda xp, a: xp.transpose(a, (0, 0)),
    "flip axis": lambda xp, a: xp.flip(a, 2),
    "roll axis": lambda xp, a: xp.roll(a, 1, axis=2),
    "rot90 axes": lambda xp, a: xp.rot90(a, axes=(0, 5)),
    "take axis": lambda xp, a: xp.take(a, [0], axis=2),
    "take index": lambda xp, a: xp.take(a, [3], axis=0),
    "repeat axis": lambda xp, a: xp.repeat(a, 2, axis=2),
    "diff axis": lambda xp, a: xp.diff(a, axis=2),
    "diff order": lambda xp, a: xp.diff(a, n=-1),
    "trace": lambda xp, a: xp.trace(a[0]),
    "tensordot": lambda xp, a: xp.tensordot(a, a, axes=1),
    "einsum": lambda xp, a: xp.einsum("ij,jk", a, a),
    "einsum subscripts": lambda xp, a: xp.einsum("ijk", a),
    "cross": lambda xp, a: xp.cross(a, a),
    "average weights": lambda xp, a: xp.average(a, axis=0, weights=xp.zeros(2)),
    "pad": lambda xp, a: xp.pad(a, -1),
    "pad mode": lambda xp, a: xp.pad(a, 1, "no such mode"),
    "reshape": lambda xp, a: xp.reshape(a, (5, 2)),
    "reshape unknown": lambda xp, a: xp.reshape(a, (-1, -1)),
    "broadcast_to": lambda xp, a: xp.broadcast_to(a, (4, 3)),
    "broadcast": lambda xp, a: a + a[:, :3],
    "where": lambda xp, a: xp.where(a > 0, a, a[:2]),
    "matmul": lambda xp, a: a @ a,
    "matmul of a scalar": lambda xp, a: xp.matmul(a, 2.0),
    "min of nothing": lambda xp, a: xp.min(a[:0]),
    "argmin of nothing": lambda xp, a: xp.argmin(a[:0]),
    "bitwise": lambda xp, a: a & a,
    "shift": lambda xp, a: xp.left_shift(a, 1),
    "invert": lambda xp, a: ~a,
    "negative of bool": lambda xp, a: -(a > 0),
    "subtract of bool": lambda xp, a: (a > 0) - (a > 0),
    "positive of bool": lambda xp, a: xp.positive(a > 0),
    "index": lambda xp, a: a[3],
    "index of an axis": lambda xp, a: a[0, -5],
    "too many indices": lambda xp, a: a[0, 0, 0],
    "two ellipses": lambda xp, a: a[..., ...],
    "index of a float": lambda xp, a: a[1.5],
    "index of a text": lambda xp, a: a["rows"],
    "index of floats": lambda xp, a: a[[0.0, 1.0]],
    "index in a list": lambda xp, a: a[[0, 3]],
    "step of 0": lambda xp, a: a[::0],
    "length": lambda xp, a: len(a[0, 0]),
    "iteration": lambda xp, a: list(a[0, 0]),
    "truth": lambda xp, a: bool(a),
    "float": lambda xp, a: float(a),
    "index of an array": lambda xp, a: range(3)[a],
    "dtype": lambda xp, a: a.astype("no such dtype"),
    "shape": lambda xp, a: xp.zeros((2, -1)),
    "shape of a float": lambda xp, a: xp.zeros(1.5),
    "fill": lambda xp, a: xp.full(2, 300, "uint8"),
    "out of range": lambda xp, a: xp.asarray(300, "int8"),
    "linspace": lambda xp, a: xp.linspace(0, 1, -1),
    "geomspace": lambda xp, a: xp.geomspace(0, 1),
    "isdtype": lambda xp, a: xp.isdtype(xp.float32, "no such kind"),
    "can_cast": lambda xp, a: xp.can_cast(1, xp.int8),
    "result_type": lambda xp, a: xp.result_type(),
    "meshgrid": lambda xp, a: xp.meshgrid(a, indexing="no such indexing"),
}
CLASSES = (np.exceptions.AxisError, IndexError, TypeError, OverflowError, ZeroDivisionError, ValueError)


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    opened = connect()
    with opened.session:
        yield opened


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused_by_the_same_class(peer: Peer, name: str) -> None:
    with pytest.raises(CLASSES) as theirs:
        REFUSED[name](np, A)
    (expected, *_) = [each for each in CLASSES if isinstance(theirs.value, each)]
    with pytest.raises(expected) as ours:
        REFUSED[name](fw, peer.session.array(A))
    assert str(ours.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: fw.tile(x, 10**8),
        lambda x: fw.repeat(x, 10**8),
        lambda x: fw.pad(x, 10**5),
        lambda x: fw.convolve(fw.zeros(10**5), fw.zeros(10**5)),
        lambda x: fw.meshgrid(*[fw.zeros(10**4)] * 3),
        lambda x: fw.einsum("i,j->ij", fw.zeros(10**5), fw.zeros(10**5)),
        lambda x: fw.tri(10**5),
    ],
)
def test_a_result_beyond_a_limit_names_the_limit(peer: Peer, call: Callable[[Any], Any]) -> None:
    with pytest.raises(fw.QuotaExceeded, match=r"limits\.array_bytes = "):
        call(peer.session.array(A))


def test_a_refused_call_sends_nothing() -> None:
    peer = connect()
    with peer.session as session:
        x = session.array(A)
        refused: tuple[Callable[[], Any], ...] = (
            lambda: fw.sum(x, axis=2),
            lambda: x[3],
            lambda: fw.einsum("ij,jk", x, x),
            lambda: fw.tensordot(x, x, 1),
        )
        for refuse in refused:
            with pytest.raises((ValueError, IndexError)):
                refuse()
        assert session.stats.ops_recorded == 0
