"""What moves elements, sums them or chooses among them applies to both parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fusewire as fw
from tests.client.api.complex.agreement import Call, check
from tests.client.peer import connect
from tests.effort import of_a_hundred

MOVES: dict[str, Call] = {
    "reshape": lambda xp, z, w, x, i: z.reshape(1, 9),
    "reshape by columns": lambda xp, z, w, x, i: z.flatten("F"),
    "T": lambda xp, z, w, x, i: z.T,
    "mT": lambda xp, z, w, x, i: z.mT,
    "swapaxes": lambda xp, z, w, x, i: xp.swapaxes(z, 0, 1),
    "expand_dims": lambda xp, z, w, x, i: xp.expand_dims(z, 0),
    "squeeze": lambda xp, z, w, x, i: xp.squeeze(z[None]),
    "broadcast_to": lambda xp, z, w, x, i: xp.broadcast_to(z[0], (2, 3)),
    "concat": lambda xp, z, w, x, i: xp.concat([z, w]),
    "concat with a real array": lambda xp, z, w, x, i: xp.concat([x, z], axis=1),
    "stack with integers": lambda xp, z, w, x, i: xp.stack([i, z]),
    "block": lambda xp, z, w, x, i: xp.block([[z, w], [x, z]]),
    "append": lambda xp, z, w, x, i: xp.append(z[0], [1, 2j]),
    "tile": lambda xp, z, w, x, i: xp.tile(z, 2),
    "repeat": lambda xp, z, w, x, i: xp.repeat(z, [1, 0, 2], axis=0),
    "split": lambda xp, z, w, x, i: xp.split(z, 3)[1],
    "unstack": lambda xp, z, w, x, i: xp.unstack(z)[1],
    "flip": lambda xp, z, w, x, i: xp.flip(z),
    "roll": lambda xp, z, w, x, i: xp.roll(z, (1, 2), axis=(0, 1)),
    "rot90": lambda xp, z, w, x, i: xp.rot90(z),
    "take": lambda xp, z, w, x, i: xp.take(z, [0, 2], axis=1),
    "take at indices of the server": lambda xp, z, w, x, i: xp.take(z, i[0], axis=0),
    "take_along_axis": lambda xp, z, w, x, i: xp.take_along_axis(z, i, axis=1),
    "choose": lambda xp, z, w, x, i: xp.choose(i % 2, [z, w]),
    "insert": lambda xp, z, w, x, i: xp.insert(z[0], 1, 9j),
    "delete": lambda xp, z, w, x, i: xp.delete(z[0], 1),
    "pad": lambda xp, z, w, x, i: xp.pad(z, 1, constant_values=1j),
    "pad by the edge": lambda xp, z, w, x, i: xp.pad(z, 1, mode="edge"),
    "tril": lambda xp, z, w, x, i: xp.tril(z),
    "triu": lambda xp, z, w, x, i: xp.triu(z, 1),
    "diag of a matrix": lambda xp, z, w, x, i: xp.diag(z),
    "diag of a vector": lambda xp, z, w, x, i: xp.diag(z[0]),
    "trace": lambda xp, z, w, x, i: z.trace(),
    "meshgrid": lambda xp, z, w, x, i: xp.meshgrid(z[0], w[0])[1],
    "row": lambda xp, z, w, x, i: z[0],
    "element": lambda xp, z, w, x, i: z[0, 1],
    "slices": lambda xp, z, w, x, i: z[::-1, 1:],
    "new axis": lambda xp, z, w, x, i: z[..., None],
    "mask": lambda xp, z, w, x, i: z[x > 0],
    "list": lambda xp, z, w, x, i: z[[0, 2]],
    "indices": lambda xp, z, w, x, i: z[i, 0],
    "nonzero": lambda xp, z, w, x, i: z.nonzero()[1],
    "where": lambda xp, z, w, x, i: xp.where(x > 0, z, w),
    "where with a real array": lambda xp, z, w, x, i: xp.where(x > 0, x, 1j * x),
    "where with scalars": lambda xp, z, w, x, i: xp.where(x > 0, 1j, 2),
    "where with an array and a scalar": lambda xp, z, w, x, i: xp.where(x > 0, 1j, x),
    "select": lambda xp, z, w, x, i: xp.select([x > 0, x < 0], [z, w], 1j),
    "sum": lambda xp, z, w, x, i: z.sum(),
    "sum along an axis": lambda xp, z, w, x, i: z.sum(axis=1, keepdims=True),
    "sum in a dtype": lambda xp, z, w, x, i: xp.sum(x, dtype=complex),
    "sum of some": lambda xp, z, w, x, i: xp.sum(z, where=x > 0, initial=1j),
    "mean": lambda xp, z, w, x, i: xp.mean(z, axis=1),
    "mean of some": lambda xp, z, w, x, i: xp.mean(z, where=x > 0),
    "cumulative_sum": lambda xp, z, w, x, i: xp.cumulative_sum(z, axis=1, include_initial=True),
    "diff": lambda xp, z, w, x, i: xp.diff(z),
    "average": lambda xp, z, w, x, i: xp.average(z, weights=x),
    "round": lambda xp, z, w, x, i: xp.round(w * 1.2345, 2),
    "negative": lambda xp, z, w, x, i: -z,
    "copy": lambda xp, z, w, x, i: z.copy(),
    "astype complex128": lambda xp, z, w, x, i: z.astype(xp.complex128),
    "astype complex64 of floats": lambda xp, z, w, x, i: x.astype(xp.complex64),
    "astype complex of integers": lambda xp, z, w, x, i: i.astype(complex),
    "astype bool": lambda xp, z, w, x, i: z.astype(bool),
}


@pytest.mark.parametrize("name", MOVES)
def test_elements_are_moved_as_numpy_moves_them(session: fw.Session, name: str) -> None:
    check(session, MOVES[name])


def test_elements_keep_their_bits_when_they_are_moved(session: fw.Session) -> None:
    host = np.array([complex(-0.0, np.inf), complex(np.inf, -0.0), complex(-np.inf, 0.0)])
    moved = fw.concat([session.array(host)[::-1], session.array(host)]).reshape(2, 3).T
    expected = np.concatenate([host[::-1], host]).reshape(2, 3).T
    assert moved.numpy().tobytes() == np.ascontiguousarray(expected).tobytes()


def test_complex_numbers_are_not_cast_to_real_ones(session: fw.Session) -> None:
    for dtype in (fw.float64, fw.int32):
        with pytest.raises(fw.DtypeError, match=r"take|cast its part x\.real"):
            session.array([1j]).astype(dtype)


def test_complex_numbers_are_no_indices(session: fw.Session) -> None:
    z = session.array([1j])
    with pytest.raises(IndexError, match="this one is complex128"):
        z[z]
    with pytest.raises(fw.DtypeError, match="indices have dtype complex128"):
        fw.take(z, z)


_SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)
_VALUES = st.complex_numbers(max_magnitude=100, allow_nan=False)


@of_a_hundred(100)
@given(st.data(), _SHAPES)
def test_any_key_reads_and_assigns_as_in_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    host = data.draw(hnp.arrays(np.complex128, shape, elements=_VALUES))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True) | hnp.arrays(np.bool_, shape))
    value = data.draw(_VALUES)
    with connect().session as session:
        z = session.array(host)
        np.testing.assert_array_equal(z[key].numpy(), host[key])
        z[key] = value
        host[key] = value
        np.testing.assert_array_equal(z.numpy(), host)
        z[key] = z[key] * 2
        host[key] = host[key] * 2
        np.testing.assert_array_equal(z.numpy(), host)
