"""Every function returns a value of its own: assigning to it, or to its operand, does not change the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
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
    "dsplit": lambda x: fw.dsplit(x[None, None], 1)[0][0, 0],
    "einsum": lambda x: fw.einsum("i", x),
    "tile": lambda x: fw.tile(x, 1),
    "pad": lambda x: fw.pad(x, 0),
    "broadcast_arrays": lambda x: fw.broadcast_arrays(x)[0],
    "apply_along_axis": lambda x: fw.apply_along_axis(lambda row: row, 0, x),
    "piecewise": lambda x: fw.piecewise(x, [x < 9, x > 9], [lambda each: each, 0]),
    "select": lambda x: fw.select([x < 99], [x]),
    "meshgrid": lambda x: fw.meshgrid(x)[0],
    "to_device": lambda x: x.to_device(x.device),
}
# Functions that return arrays and have none as an argument, or none of their arguments' values.
_WITHOUT_ARRAYS = {"arange", "connect", "default_session", "eye", "fori_loop", "function", "linspace", "replay"}
_WITHOUT_ARRAYS |= {"empty", "full", "geomspace", "identity", "ones", "tri", "zeros"}
_WITHOUT_ARRAYS |= {"__array_namespace_info__", "broadcast_shapes", "can_cast", "finfo", "iinfo", "isdtype"}
_WITHOUT_ARRAYS |= {"promote_types", "result_type", "shape", "ndim", "size", "isrealobj", "iscomplexobj"}
_WITHOUT_ARRAYS |= {"add_at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}  # return None
_WITHOUT_ARRAYS |= {"bartlett", "blackman", "hamming", "hanning", "kaiser", "fromfunction", "diag_indices"}
_WITHOUT_ARRAYS |= {"ravel_multi_index", "unravel_index"}  # which return indices of this machine for such
_WITHOUT_ARRAYS |= {"diag_indices_from", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from"}
_WITHOUT_ARRAYS |= {"grad", "value_and_grad", "vjp"}  # which take a function
_WITHOUT_ARRAYS |= {"explain", "profile"}  # which return no array
_WITH_OTHERS = {"apply_along_axis", "dsplit", "einsum", "piecewise", "select"}  # cases above
_RETURNING_THEIR_ARGUMENT = {"asarray"}  # as documented
FUNCTIONS = sorted(
    name
    for name in {*fw.__all__} - _WITHOUT_ARRAYS - _WITH_OTHERS - _RETURNING_THEIR_ARGUMENT
    if callable(getattr(fw, name)) and not isinstance(getattr(fw, name), type | fw.DType)
)
_STATE = {"__reduce_cython__", "__setstate__", "__setstate_cython__"}  # of a compiled object, for pickle alone
_IN_PLACE = {f"__i{op}__" for op in ("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow")}
_IN_PLACE |= {f"__i{op}__" for op in ("rshift", "sub", "truediv", "xor")}  # they return the array, as Python asks
_WITHOUT_CALLS = {*_STATE, "__await__"}  # a coroutine awaits
MEMBERS = sorted(
    name
    for name in {*dir(fw.Array)} - {*dir(object)} - _WITHOUT_CALLS - _IN_PLACE
    if not name.startswith("_") or name.startswith("__")
)
# What a function may be called with besides an array. Those that give no effect are the likeliest to return it itself.
_BESIDES: list[Callable[[Any], tuple[Any, ...]]] = [
    lambda x: (),
    lambda x: (x,),
    lambda x: (x, x),
    lambda x: (x + 0, x + 0),
    lambda x: (0,),
    lambda x: (1,),
    lambda x: ((),),
    lambda x: (None,),
    lambda x: (None, None),
    lambda x: (0, 0),
    lambda x: (x.shape,),
    lambda x: (x.dtype,),
    lambda x: (slice(None),),
    lambda x: (...,),
    lambda x: ([0],),
    lambda x: (range(x.shape[0]), 0),
]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_assigning_to_a_result_leaves_the_operand(session: fw.Session, name: str) -> None:
    x = session.array([1.0, 2.0, 3.0])
    result = CASES[name](x)
    result[0] = 9
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
        result = CASES[name](x)
        result[0] = 9
        return x + 1

    x = session.array([1.0, 2.0, 3.0])
    assert fw.fori_loop(3, body, x).tolist() == [4, 5, 6]
    recorded = fw.function(lambda each: body(0, each))
    assert [recorded(x).tolist(), recorded(x).tolist(), x.tolist()] == [[2, 3, 4], [2, 3, 4], [1, 2, 3]]


Call = Callable[[Any], Any]


def _arrays_in(result: Any) -> list[fw.Array]:
    given = result if isinstance(result, list | tuple) else [result]
    return [each for each in given if isinstance(each, fw.Array)]


def _returns_arrays(call: Call, x: fw.Array) -> bool:
    try:
        return bool(_arrays_in(call(x)))
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, fw.FusewireError):
        return False


def _calls_of(name: str) -> list[Call]:
    """All ways that may be tried to call a function with an array, also as one of a list, or as the last operand."""
    function = getattr(fw, name)
    calls: list[Call] = [lambda x, besides=besides: function(x, *besides(x)) for besides in _BESIDES]  # type: ignore[misc]
    calls += [lambda x: function([x]), lambda x: function([x], 0)]
    return [*calls, lambda x: function(0, x), lambda x: function(1, x), lambda x: function(True, x, x)]


def _calls_of_member(name: str) -> list[Call]:
    def call(x: fw.Array, besides: Callable[[Any], tuple[Any, ...]]) -> Any:
        member = getattr(x, name)
        return member(*besides(x)) if callable(member) and not isinstance(member, fw.Array) else member

    return [lambda x, besides=besides: call(x, besides) for besides in _BESIDES]  # type: ignore[misc]


def _inputs(session: fw.Session) -> Iterator[fw.Array]:
    """Arrays whose shapes and dtypes let most functions have no effect."""
    for dtype, shape in (("float32", (3,)), ("int64", (1,)), ("bool", (1, 2)), ("float32", (1, 1, 3))):
        yield session.array((np.arange(np.prod(shape)) % 3).reshape(shape).astype(dtype))


def _own_values_of(call: Call, x: fw.Array) -> None:
    """Asserts that what a call returns and its operand do not change one another: alone, in a loop, and in a body."""
    before = x.numpy()
    results = _arrays_in(call(x))
    for result in results:
        assert result is not x
        result[...] = 1
    assert x.numpy().tobytes() == before.tobytes()

    expected = [each.numpy() for each in _arrays_in(call(x))]
    changed = x.copy()
    results = _arrays_in(call(changed))
    changed[...] = 1
    assert [each.numpy().tobytes() for each in results] == [each.tobytes() for each in expected]

    kept = x.copy()
    for _ in range(4):
        for result in _arrays_in(call(kept)):
            result[...] = 1
    assert kept.numpy().tobytes() == before.tobytes()

    def body(_: Any, carried: Any) -> Any:
        for result in _arrays_in(call(carried)):
            result[...] = 1
        return carried

    with suppress(fw.RequestError):  # of a call that reads values, such as one of a list of arrays
        assert fw.fori_loop(2, body, x).numpy().tobytes() == before.tobytes()
    assert x.numpy().tobytes() == before.tobytes()


def _assert_own_values(session: fw.Session, calls: list[Call]) -> int:
    """Tries all calls on all inputs. Returns how many of them returned arrays."""
    tried = 0
    for x in _inputs(session):
        for call in calls:
            if _returns_arrays(call, x.copy()):
                tried += 1
                _own_values_of(call, x.copy())
    return tried


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_of_the_namespace_returns_values_of_its_own(session: fw.Session, name: str) -> None:
    assert _assert_own_values(session, _calls_of(name)) > 0


@pytest.mark.parametrize("name", MEMBERS)
def test_each_member_of_an_array_returns_values_of_its_own(session: fw.Session, name: str) -> None:
    _assert_own_values(session, _calls_of_member(name))


def test_no_function_of_the_namespace_returns_its_argument(session: fw.Session) -> None:
    tried = 0
    for name in FUNCTIONS:
        for x in _inputs(session):
            try:
                result = getattr(fw, name)(x)
            except (TypeError, ValueError, AttributeError, fw.FusewireError):
                continue
            tried += isinstance(result, fw.Array)
            assert result is not x, name
    assert tried > 90
