"""What the array API standard lets a program ask about the namespace, its devices and its exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire_protos.ops import dtypes
from tests.client.peer import connect


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def test_the_namespace_says_what_it_can_do(session: fw.Session) -> None:
    info = fw.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 16}
    assert info.devices() == [info.default_device()] == [session.backend]
    assert info.default_dtypes()["indexing"] is fw.int64
    assert [*info.dtypes(kind="real floating")] == ["float32", "float64"]
    assert [*info.dtypes(kind=("bool", "unsigned integer"))] == ["bool", "uint8", "uint16", "uint32", "uint64"]
    assert set(info.dtypes()) == {dtype.name for dtype in (*dtypes.ALL, *dtypes.COMPLEX)} - {"float16", "bfloat16"}
    for ask in (info.dtypes, info.default_dtypes):
        with pytest.raises(fw.ArgumentError, match="one device"):
            ask(device="elsewhere")


@pytest.mark.parametrize("version", [None, "2021.12", "2024.12"])
def test_an_array_knows_its_namespace(session: fw.Session, version: str | None) -> None:
    assert session.array(1.0).__array_namespace__(api_version=version) is fw


@pytest.mark.parametrize("version", ["2020.12", "2025.12", "newest"])
def test_an_unknown_version_is_refused(session: fw.Session, version: str) -> None:
    assert fw.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"known are 2021\.12"):
        session.array(1.0).__array_namespace__(api_version=version)


CREATES: list[Callable[..., fw.Array]] = [
    lambda **on: fw.full((2,), 7.0, **on),
    lambda **on: fw.zeros(2, **on),
    lambda **on: fw.ones(2, **on),
    lambda **on: fw.empty(2, **on),
    lambda **on: fw.full_like(np.zeros(2), 7, **on),
    lambda **on: fw.zeros_like(fw.zeros(2), **on),
    lambda **on: fw.ones_like(fw.zeros(2), **on),
    lambda **on: fw.empty_like(np.zeros(2), **on),
    lambda **on: fw.arange(2.0, **on),
    lambda **on: fw.linspace(0, 1, 2, **on),
    lambda **on: fw.eye(2, 1, **on),
    lambda **on: fw.asarray([1.0, 2.0], **on),
    lambda **on: fw.asarray(fw.zeros(2), **on),
    lambda **on: fw.array([1.0, 2.0], **on),
    lambda **on: fw.astype(fw.zeros(2), "int8", **on),
    lambda **on: fw.from_dlpack(np.zeros(2), **on),
]


@pytest.mark.parametrize("create", CREATES)
def test_an_array_is_made_on_the_sessions_device_alone(session: fw.Session, create: Callable[..., fw.Array]) -> None:
    made = create(device=session.backend)
    assert made.device == session.backend
    np.testing.assert_array_equal(made.numpy(), create(device=None).numpy(), strict=True)
    with pytest.raises(fw.ArgumentError, match=f"one device, '{session.backend}'"):
        create(device="elsewhere")


def test_an_array_stays_on_its_device(session: fw.Session) -> None:
    x = session.array([1.0])
    assert x.to_device(x.device).tolist() == [1.0]
    with pytest.raises(fw.ArgumentError, match="one device"):
        x.to_device("elsewhere")
    for asks in (lambda: x.to_device(x.device, stream=1), lambda: x.__dlpack__(stream=1)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no streams"):
            asks()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32"])
def test_values_travel_by_dlpack_both_ways(session: fw.Session, dtype: str) -> None:
    host = np.array([[0, 1, 2]], dtype)
    x = fw.from_dlpack(host)
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), host, strict=True)
    assert fw.from_dlpack(x, copy=False) is x


@pytest.mark.parametrize(
    ("asks", "error"),
    [
        (lambda x: x.__dlpack__(copy=False), BufferError),
        (lambda x: x.__dlpack__(dl_device=(2, 0)), BufferError),
        (lambda x: fw.from_dlpack(np.zeros(2), copy=False), ValueError),
        (lambda x: fw.asarray([1.0], copy=False), ValueError),
        (lambda x: fw.asarray(x, dtype="int8", copy=False), ValueError),
        (lambda x: np.asarray(x, copy=False), ValueError),
        (lambda x: fw.reshape(x, (1, 2), copy=False), ValueError),
        (lambda x: fw.from_dlpack([1.0]), AttributeError),
    ],
)
def test_where_a_copy_is_needed_it_may_not_be_refused(
    session: fw.Session, asks: Callable[[Any], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        asks(session.array([1.0, 2.0]))


def test_without_a_copy_an_array_is_itself(session: fw.Session) -> None:
    x = session.array([1.0])
    assert fw.asarray(x, copy=False) is fw.asarray(x, dtype=fw.float64, copy=False) is x
    assert fw.asarray(x, copy=True) is not x


def test_an_array_of_one_element_is_a_python_number(session: fw.Session) -> None:
    x = session.array([2])
    assert (int(x), float(x), complex(x), f"{x[0]:03d}") == (2, 2.0, 2 + 0j, "002")
    assert [1, 2, 3][x[0]] == 3
    assert x.itemsize == 8
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match="one element"):
            convert(session.array([1.0, 2.0]))
    with pytest.raises(TypeError, match="is an index"):
        [1][session.array(0.0)]
