"""A function of an array computes in the array's session, and never asks for the default one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.functions.arrangement.test_arrangement import ARRANGEMENTS, METHODS
from tests.client.api.functions.elementwise.test_elementwise_composites import SIMPLE
from tests.client.api.functions.products.test_products import PRODUCTS
from tests.client.api.functions.values import OF_ONE, OF_TWO
from tests.client.peer import connect

A = np.arange(1.0, 13).reshape(3, 4)

OTHERS: dict[str, Callable[[Any], Any]] = {
    "diag": lambda x: fw.diag(x[0], 1),
    "isclose": lambda x: fw.isclose(x, 1.0),
    "array_equal": lambda x: fw.array_equal(x, A[:1]),
    "nanvar": lambda x: fw.nanvar(x, axis=0),
    "nan_to_num": fw.nan_to_num,
    "signbit": fw.signbit,
    "meshgrid": lambda x: fw.meshgrid(x[0], [1, 2])[1],
    "convolve": lambda x: fw.convolve(x[0], x[1]),
    "pad": lambda x: fw.pad(x, 2, "edge"),
    "take_along_axis": lambda x: fw.take_along_axis(x, np.zeros((3, 1), int)),
    "searchsorted": lambda x: fw.searchsorted(x[0], 2.5),
    "interp": lambda x: fw.interp(2.5, x[0], x[1]),
    "isin": lambda x: fw.isin(x, [1, 2]),
    "einsum": lambda x: fw.einsum("ij,->i", x, 2.0),
    "out": lambda x: np.add(A, x, out=x),
    "reduce": np.add.reduce,
    "outer": lambda x: np.multiply.outer(A, x),
}


def _product(call: Callable[..., Any], x: Any) -> Any:
    return call(fw, x, x.T[:, :3], x[None], x)


ALL: dict[str, Callable[[Any], Any]] = {
    **{name: partial(call, fw) for name, call in {**ARRANGEMENTS, **SIMPLE}.items()},
    **{name: partial(_product, call) for name, call in PRODUCTS.items()},
    **{name: getattr(fw, name) for name in OF_ONE},
    **{name: partial(getattr(fw, name), 2.0) for name in OF_TWO},
    **METHODS,
    **OTHERS,
}


def test_a_function_of_an_array_needs_no_default_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEWIRE_TARGET", raising=False)
    with connect().session as session:
        monkeypatch.setattr("fusewire._connect._connected_last", [])
        refused = {}
        for name, call in ALL.items():
            try:
                result = call(session.array(A))
            except fw.ConfigurationError as no_target:
                refused[name] = str(no_target)
                continue
            except (fw.ShapeError, fw.DtypeError):  # of operands made for another function
                continue
            for each in result if isinstance(result, tuple | list) else [result]:
                assert each.session is session
        assert refused == {}
