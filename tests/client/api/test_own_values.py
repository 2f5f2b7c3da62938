"""Every function returns a value of its own: assigning to it, or to its operand, does not change the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

Case = Callable[[Any], Any]

CASES: dict[str, Case] = {
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "x[()]": lambda x: x[()],
    "x[0:]": lambda x: x[0:],
    "x[:2]": lambda x: x[:2],
    "x[None][0]": lambda x: x[None][0],
    "x[[0, 1, 2]]": lambda x: x[[0, 1, 2]],
    "+x": lambda x: +x,
    "x + 0": lambda x: x + 0,
    "x.T": lambda x: x.T,
    "x.ravel()": lambda x: x.ravel(),
    "x.copy()": lambda x: x.copy(),
    "x.reshape(3)": lambda x: x.reshape(3),
    "x.squeeze()": lambda x: x.squeeze(),
    "x.round()": lambda x: x.round(),
    "round(x)": round,
    "x.clip()": lambda x: x.clip(),
    "x.astype": lambda x: x.astype(x.dtype),
    "x.sum(())": lambda x: x.sum(axis=()),
    "x.take": lambda x: x.take([0, 1, 2]),
    "array": fw.array,
    "asarray copy": lambda x: fw.asarray(x, copy=True),
    "clip": lambda x: fw.clip(x, None, None),
    "concat": lambda x: fw.concat([x]),
    "split": lambda x: fw.split(x, 1)[0],
    "flip": lambda x: fw.flip(x, ()),
    "roll": lambda x: fw.roll(x, 0),
    "squeeze": lambda x: fw.squeeze(x, ()),
    "expand_dims": lambda x: fw.expand_dims(x, ()),
    "broadcast_to": lambda x: fw.broadcast_to(x, (3,)),
    "swapaxes": lambda x: fw.swapaxes(x, 0, 0),
    "where": lambda x: fw.where(True, x, x),  # the condition
    "rint": np.rint,
}
RETURNING_THEIR_ARGUMENT = {"asarray"}  # as documented


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_assigning_to_a_result_leaves_the_operand(session: fw.Session, name: str) -> None:
    x = session.array([1.0, 2.0, 3.0])
    CASES[name](x)[0] = 9
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", CASES)
def test_assigning_to_an_operand_leaves_the_result(session: fw.Session, name: str) -> None:
    x = session.array([1.0, 2.0, 3.0])
    result = CASES[name](x)
    before = CASES[name](session.array([1.0, 2.0, 3.0])).tolist()
    x[0] = 9
    assert result.tolist() == before


@pytest.mark.parametrize("name", CASES)
def test_assigning_in_a_loop_leaves_the_operand(session: fw.Session, name: str) -> None:
    x = session.array([1.0, 2.0, 3.0])
    for _ in range(40):
        result = CASES[name](x)
        result[0] = 9
        x = x + 1
    assert x.tolist() == [41, 42, 43]


@pytest.mark.parametrize("name", CASES)
def test_assigning_in_a_body_leaves_the_operand(session: fw.Session, name: str) -> None:
    def body(_: Any, x: Any) -> Any:
        CASES[name](x)[0] = 9
        return x + 1

    x = session.array([1.0, 2.0, 3.0])
    assert fw.fori_loop(3, body, x).tolist() == [4, 5, 6]
    recorded = fw.function(lambda each: body(0, each))
    assert [recorded(x).tolist(), recorded(x).tolist(), x.tolist()] == [[2, 3, 4], [2, 3, 4], [1, 2, 3]]


def test_no_function_of_the_namespace_returns_its_argument(session: fw.Session) -> None:
    tried = 0
    for name in sorted({*fw.__all__} - RETURNING_THEIR_ARGUMENT):
        function = getattr(fw, name)
        for dtype in ("float32", "int64", "bool"):
            x = session.array(np.ones(1, dtype))
            try:
                result = function(x)
            except (TypeError, ValueError, AttributeError, fw.FusewireError):
                continue
            tried += isinstance(result, fw.Array)
            assert result is not x, name
    assert tried > 100
