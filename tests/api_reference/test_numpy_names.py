"""The table of names is NumPy's, and says of each where it is or what to write."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType

import numpy as np
import pytest

import fusewire as fw
from tests.api_reference.numpy_names import NUMPY, NUMPY_VERSION, STANDARD, STANDARD_VERSION, text

# These are not of the same size on every platform, or test NumPy itself.
_LEFT_OUT = {"complex192", "complex256", "float96", "float128", "little_endian", "test"}
_FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum))


def _is_listed(value: object) -> bool:
    """Functions, ufuncs, dtypes and constants."""
    is_dtype = isinstance(value, type) and issubclass(value, np.generic | np.finfo | np.iinfo)
    return is_dtype or isinstance(value, (*_FUNCTIONS, float, bool, np.bool_, type(None)))


@pytest.mark.skipif(not np.__version__.startswith(f"{NUMPY_VERSION}."), reason=f"the names are of {NUMPY_VERSION}")
def test_the_names_are_those_of_numpy() -> None:
    public = {name for name in np.__all__ if _is_listed(getattr(np, name))}
    assert {*NUMPY} == public - _LEFT_OUT | {"__array_namespace_info__"}


def test_all_of_the_standard_is_here() -> None:
    assert fw.__array_api_version__ == STANDARD_VERSION
    assert {*fw.__all__} >= STANDARD


def test_each_name_says_where_it_is_or_what_to_write() -> None:
    rows = text({"add": "pointwise.md#add"}).splitlines()
    assert "| `add` | yes | yes | [`add`](pointwise.md#add) |" in rows
    assert "| `gradient` | yes |  | NumPy computes it from values, `np.gradient(x.numpy())` |" in rows
    assert "| `half` | yes |  | another name of `fw.float16` |" in rows
    assert "| `longdouble` | yes |  | it is no dtype here |" in rows
    assert "| `fromiter` | yes |  | uploads what NumPy makes, `np.fromiter` |" in rows
    assert "| `isscalar` | yes |  | NumPy's own, `np.isscalar` |" in rows


@pytest.mark.skipif(not np.__version__.startswith(f"{NUMPY_VERSION}."), reason=f"the names are of {NUMPY_VERSION}")
def test_no_name_is_left_without_a_word() -> None:
    rows = text(dict.fromkeys(fw.__all__, "page.md")).splitlines()
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_namespaces_of_numpy_have_a_line_each() -> None:
    lines = [line for line in text({}).splitlines() if line.startswith("- `numpy.")]
    assert [line.split("`")[1] for line in lines] == ["numpy.linalg", "numpy.fft", "numpy.random"]
