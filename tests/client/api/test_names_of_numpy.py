"""Names that are about no array on the server mean what they mean in NumPy, so that `fw` may stand for `np`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.names_of_numpy import ABOUT_NO_ARRAY, MAKE_ARRAYS
from tests.client.peer import connect

A = np.arange(6.0).reshape(2, 3)
NAMESPACE: Any = fw


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("name", ABOUT_NO_ARRAY)
def test_a_name_about_no_array_is_numpys_own(name: str) -> None:
    assert getattr(fw, name) is getattr(np, name)
    assert name not in fw.__all__


def test_the_class_of_arrays_has_numpys_name_for_annotations(session: fw.Session) -> None:
    assert NAMESPACE.ndarray is fw.Array
    assert isinstance(session.array(A), NAMESPACE.ndarray)


def test_what_numpy_reads_from_files_and_iterators_is_uploaded() -> None:
    assert {*MAKE_ARRAYS} <= {*dir(np)}
    made = [NAMESPACE.fromiter(iter([1, 2]), dtype="int32"), NAMESPACE.loadtxt(["1 2", "3 4"])]
    assert [each.tolist() for each in made] == [[1, 2], [[1.0, 2.0], [3.0, 4.0]]]
    assert all(isinstance(each, fw.Array) for each in made)


def test_what_is_saved_is_read_and_loaded_again(session: fw.Session) -> None:
    for save in (NAMESPACE.save, np.save):
        file = io.BytesIO()
        save(file, session.array(A))
        file.seek(0)
        np.testing.assert_array_equal(NAMESPACE.load(file).numpy(), A)
    text = io.StringIO()
    np.savetxt(text, session.array(A))
    assert len(text.getvalue().splitlines()) == 2
    assert np.array2string(session.array(A)) == np.array2string(A)  # type: ignore[arg-type]


def test_a_dtype_makes_scalars_and_casts_arrays(session: fw.Session) -> None:
    for name in ("float32", "int64", "uint8"):
        ours, numpys = getattr(fw, name), getattr(np, name)
        assert (type(ours(2)), ours(2), ours()) == (numpys, numpys(2), numpys())
    casts: Any = fw.int32
    assert (casts(session.array(A)).dtype, casts(A).dtype) == (fw.int32, np.int32)
    assert (str(fw.float32), f"{fw.int8}", repr(fw.int8)) == ("float32", "int8", "fusewire.int8")
    with pytest.raises(ValueError, match="could not convert"):
        fw.float32("text")
