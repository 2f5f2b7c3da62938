"""The array of complex numbers as a whole: upload and reads, parts, assignment, copies, and what it refuses."""

from __future__ import annotations

import asyncio
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire._api.complex.complex_array import ComplexArray
from fusewire_protos.frames import Upload
from tests.client.api.complex.agreement import W, X, Z
from tests.client.peer import connect, entries

V = np.array([1 + 2j, -3.5j, 2])


def test_the_parts_are_two_arrays_of_one_shape_and_dtype(session: fw.Session) -> None:
    z = ComplexArray(session.array(X), session.array(-X))
    assert (z.dtype, z.shape, z.nbytes, z.itemsize, z.ndim) == (fw.complex64, (3, 3), 72, 8, 2)
    assert isinstance(z, fw.Array)
    np.testing.assert_array_equal(z.numpy(), X - 1j * X)
    with pytest.raises(fw.ShapeError, match="one shape"):
        ComplexArray(session.array(X), session.array(X[0]))
    for other in (X.astype(np.float64), X.astype(np.int32)):
        with pytest.raises(fw.DtypeError, match="both float32 or both float64"):
            ComplexArray(session.array(X), session.array(other))


@pytest.mark.parametrize("lost", ["z[1][0] = 9", "z[1][0] += 9", "z.T[0] = 9"])
def test_an_assignment_to_complex_numbers_without_a_name_is_lost_with_a_warning(session: fw.Session, lost: str) -> None:
    z = session.array(W)
    with pytest.warns(UserWarning, match="the assignment is lost") as caught:
        exec(compile(lost, "program.py", "exec"), {"z": z})  # noqa: S102
    assert [each.filename for each in caught] == ["program.py"]
    np.testing.assert_array_equal(z.numpy(), W)


def test_the_real_and_the_imaginary_part_are_values_of_their_own(session: fw.Session) -> None:
    z = session.array(V)
    real, imag = z.real, z.imag
    real += 1
    imag[0] = 7
    np.testing.assert_array_equal(z.numpy(), V)
    np.testing.assert_array_equal(real.numpy(), V.real + 1)


# ---- upload and reads ----


@given(st.lists(st.complex_numbers(allow_nan=False), max_size=8), st.sampled_from([np.complex64, np.complex128]))
def test_values_come_back_with_their_bits(numbers: list[complex], dtype: Any) -> None:
    with np.errstate(over="ignore"):
        host = np.array(numbers, dtype)
    with connect().session as session:
        assert session.array(host).numpy().tobytes() == host.tobytes()


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2j, 3.5], None, np.array([1, 2j, 3.5])),
        ([[1, 2j]], "complex64", np.array([[1, 2j]], np.complex64)),
        (1j, None, np.array(1j)),
        (np.complex64(1j), None, np.array(1j, np.complex64)),
        (X, complex, X.astype(complex)),
        ([1, 2], np.complex64, np.array([1, 2], np.complex64)),
        (Z[::-1, 1:], None, Z[::-1, 1:]),
        (Z.astype(">c8"), None, Z),
    ],
)
def test_whatever_numpy_takes_is_uploaded(session: fw.Session, data: Any, dtype: Any, expected: Any) -> None:
    uploaded = session.array(data, dtype)
    assert uploaded.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(uploaded.numpy(), expected, strict=True)


def test_lists_of_arrays_and_complex_numbers_are_stacked(session: fw.Session) -> None:
    z, x = session.array(V), session.array(X)
    np.testing.assert_array_equal(fw.asarray([[z[0], x[0, 1]], [1, 2j]]).numpy(), [[V[0], 2], [1, 2j]])


def test_a_session_that_debugs_tells_of_an_index_out_of_range() -> None:
    with connect(debug=True).session as session:
        with pytest.raises(IndexError):
            session.array(V)[session.array([5])].numpy(60)
        future = session.array(V)[session.array([5])].future()
        with pytest.raises(IndexError):
            future.result(60)


def test_both_parts_come_in_one_round_trip() -> None:
    peer = connect(is_manual=True)
    future = (peer.session.array(V) * 2).future()
    peer.transport.run_once()
    np.testing.assert_array_equal(future.result(0), V * 2)


def test_both_parts_are_asked_for_before_either_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect()
    z = peer.session.array(V)
    asked: list[str] = []

    def noting(name: str) -> Any:
        act = getattr(fw.Session, name)

        def noted(*given: Any) -> Any:
            asked.append(name)
            return act(*given)

        return noted

    for name in ("fetch", "read"):
        monkeypatch.setattr(fw.Session, name, noting(name))
    z.numpy()
    assert asked == ["fetch", "read"]


def test_a_value_is_read_in_all_the_ways_of_a_real_one(session: fw.Session) -> None:
    z = session.array(V)
    assert (complex(z[0]), z[0].item(), z.item(1), z.tolist()) == (1 + 2j, 1 + 2j, -3.5j, V.tolist())
    assert (z.tobytes(), bool(z[0]), 2 in z, f"{z[0]:.1f}") == (V.tobytes(), True, True, "1.0+2.0j")
    assert (str(z), repr(z)) == (str(V), "<fusewire.Array complex128[3]>")
    for read in (z.numpy(timeout=60), z.future().result(60), np.asarray(z), np.from_dlpack(z)):
        np.testing.assert_array_equal(read, V)
    for read in (session.fetch(z).result(60), session.read(z, 60)):
        np.testing.assert_array_equal(read, V)
    assert [each.item() for each in z] == list(z.flat) == V.tolist()

    async def awaited() -> Any:
        return await z

    np.testing.assert_array_equal(asyncio.run(awaited()), V)


@pytest.mark.parametrize("convert", [int, float])
def test_a_complex_number_is_no_real_one(session: fw.Session, convert: Any) -> None:
    with pytest.raises(TypeError, match=r"take x\.real first"):
        convert(session.array(1j))


def test_a_read_that_takes_too_long_ends() -> None:
    peer = connect(is_manual=True)
    z = peer.session.array(V)
    with pytest.raises(fw.WaitTimeout):
        z.numpy(timeout=0.01)


def test_a_read_in_a_session_that_has_ended_raises_its_reason() -> None:
    session = connect().session
    z = session.array(V)
    session.close()
    for read in (z.numpy, z.future):
        with pytest.raises(fw.SessionClosed):
            read()


def test_real_data_are_asked_for_of_a_real_dtype(session: fw.Session) -> None:
    with pytest.raises(fw.DtypeError, match="complex128 is not cast to float32"):
        session.array(V, "float32")


# ---- copies ----


def test_an_array_is_copied_and_pickled_as_a_real_one(session: fw.Session) -> None:
    z = session.array(V)
    unpickled = pickle.loads(pickle.dumps(z))  # noqa: S301 - our own
    for other in (z.copy(), copy.copy(z), copy.deepcopy(z), unpickled, fw.asarray(z, copy=True)):
        other[0] = 9
        np.testing.assert_array_equal(other.numpy(), [9, *V[1:]])
    np.testing.assert_array_equal(z.numpy(), V)
    assert fw.asarray(z) is z


# ---- assignment ----


def test_assignments_are_numpys(session: fw.Session) -> None:
    def assigned(xp: Any, z: Any, x: Any) -> Any:
        z[0, 1] = 7
        z[:, 2] = [1j, 2, 3]
        z[1] = x[1]
        z[x > 4] = 1 - 1j
        z[[0, 2]] = np.complex128(5j)
        z[z == 5j] = 4
        xp.fill_diagonal(z, 9j)
        return z

    with np.errstate(all="ignore"):
        expected = assigned(np, Z.copy(), X)
    actual = assigned(fw, session.array(Z), session.array(X))
    np.testing.assert_array_equal(actual.numpy(), expected, strict=True)


def test_in_place_operators_keep_the_object_and_its_dtype(session: fw.Session) -> None:
    z, host = session.array(Z), Z.copy()
    other = z
    z += 1j
    z -= session.array(X)
    z *= session.array(W)
    z /= 2
    z **= 2
    z @= session.array(Z)
    host += 1j
    host -= X
    host = (host * W).astype(np.complex64)
    host /= 2
    host **= 2
    assert (z is other, z.dtype) == (True, fw.complex64)
    np.testing.assert_allclose(z.numpy(), host @ Z, rtol=1e-5)


def test_an_operator_in_place_refuses_another_shape(session: fw.Session) -> None:
    z = session.array(V)
    with pytest.raises(fw.ShapeError, match="keeps the shape"):
        z += session.array(np.ones((2, 3)))


def test_values_of_one_element_are_combined(session: fw.Session) -> None:
    z = session.array(V)
    np.add.at(z, [0, 0, 2], 1j)
    np.testing.assert_array_equal(z.numpy(), V + [2j, 0, 1j])
    np.testing.assert_array_equal(z.at[0].multiply(1j).numpy(), np.array([1j, 1, 1]) * (V + [2j, 0, 1j]))
    np.testing.assert_array_equal(z.at[1].set(5).numpy()[1], 5)


def test_a_real_array_takes_no_complex_numbers(session: fw.Session) -> None:
    x = session.array(X)
    with pytest.raises(fw.DtypeError, match="float32 cannot hold complex numbers"):
        x[0] = 1j
    with pytest.raises(fw.DtypeError, match="keeps float32, but its result is complex64"):
        x += 1j
    with pytest.raises(fw.DtypeError, match="the values are complex64"):
        x.at[0].add(1j)
    np.testing.assert_array_equal(x.numpy(), X)


# ---- what has no complex numbers ----


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda z: z < 1, "less"),
        (lambda z: z // 2, "floor_divide"),
        (lambda z: z % 2, "remainder"),
        (lambda z: z.max(), "max"),
        (fw.sort, "argsort"),
        (fw.argmin, "argmin"),
        (lambda z: fw.maximum(z, 1), "maximum"),
        (fw.floor, "floor"),
        (lambda z: fw.hypot(z, z), "hypot"),
        (lambda z: z & z, "bitwise_and"),
        (fw.relu, "relu"),
        (fw.softmax, "softmax"),
    ],
)
def test_what_is_not_defined_is_refused_by_its_name(session: fw.Session, call: Any, name: str) -> None:
    with pytest.raises(fw.DtypeError, match=name):
        call(session.array(V))


def test_arrays_of_another_thread_are_operands(session: fw.Session) -> None:
    z = session.array(V)
    with ThreadPoolExecutor(1) as pool:
        np.testing.assert_array_equal(pool.submit((z + z * 2j).numpy).result(60), V + V * 2j)


def test_the_server_is_sent_real_arrays_alone() -> None:
    peer = connect()
    with peer.session as session:
        (session.array(Z) * 2j).numpy()
    assert {upload.spec.dtype for upload in entries(peer, Upload)} == {fw.float32}
