"""The gradient of a loop that is recorded once is that of the same loop in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.client.api.gradients.differences import check, check_twice, drawn
from tests.patience import HANGS_S

STEPS = 4
H, W, XS = drawn(3), drawn(3, 3, seed=1), drawn(STEPS, 3, seed=2)

Body = Callable[[Any, Any, Any, Any], Any]  # (i, carry, w, xs) -> carry


def _assigned(i: Any, h: Any, w: Any, xs: Any) -> Any:
    h[0] = h[1] * w[0, 0]
    return h + xs[i]


def _row_of_the_counter(i: Any, h: Any, w: Any, xs: Any) -> Any:
    return h * xs[STEPS - 1 - i] + xs[i : i + 1, 0]


BODIES: dict[str, Body] = {
    "recurrent": lambda i, h, w, xs: fw.tanh(h @ w),
    "of the inputs": lambda i, h, w, xs: fw.tanh(h @ w + xs[i]),
    "of the counter": lambda i, h, w, xs: fw.sin(h * (i + 1) * 0.5) + w[0],
    "of a row of the counter": _row_of_the_counter,
    "of an index on the server": lambda i, h, w, xs: h * fw.take(xs, (i * i) % STEPS, axis=0),
    "linear": lambda i, h, w, xs: h * 0.5 + w[1],
    "that assigns": _assigned,
    "passed through": lambda i, h, w, xs: h,
    "of the surroundings alone": lambda i, h, w, xs: w[0] * w[1],
}


def _looped(body: Body, count: int = STEPS) -> Callable[..., Any]:
    return lambda h, w, xs: fw.fori_loop(count, lambda i, h: body(i, h, w, xs), h)


@pytest.mark.parametrize("name", BODIES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    check(session, _looped(BODIES[name]), H, W, XS)


@pytest.mark.parametrize("name", ["of the inputs", "of a row of the counter", "that assigns", "linear"])
def test_a_second_derivative_is_that_of_differences(session: fw.Session, name: str) -> None:
    check_twice(session, _looped(BODIES[name], 3), H, W, XS)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_iterations_are_differentiated(session: fw.Session, count: int) -> None:
    check(session, _looped(BODIES["of the inputs"], count), H, W, XS)


def test_a_carry_of_several_arrays_is_differentiated(session: fw.Session) -> None:
    def function(h: Any, c: Any, w: Any) -> Any:
        def body(i: Any, carry: dict[str, Any]) -> dict[str, Any]:
            c = carry["c"] * fw.sigmoid(carry["h"]) + 1
            return {"h": fw.tanh(c @ carry["w"]), "c": c, "count": carry["count"] + i, "w": carry["w"]}

        ended = fw.fori_loop(STEPS, body, {"h": h, "c": c, "count": 0, "w": w})
        return ended["h"], ended["c"], ended["w"]

    check(session, function, H, H * 2, W)


def test_carries_that_change_places_are_differentiated(session: fw.Session) -> None:
    check(session, lambda a, b: fw.fori_loop(3, lambda i, ab: (ab[1], ab[0] * ab[1]), (a, b)), H, H + 2)
    check(session, lambda a, b: fw.fori_loop(3, lambda i, ab: (ab[0] * ab[1],) * 2, (a, b)), H, H + 2)


def test_what_a_carry_becomes_dependent_on_is_differentiated(session: fw.Session) -> None:
    """The second carry is a constant at first, and depends on the argument from the second iteration on."""

    def function(x: Any) -> Any:
        return fw.fori_loop(3, lambda i, carry: (carry[0] * x, carry[1] + carry[0]), (x, x.session.array(1.0)))[1]

    check(session, function, np.array(0.7))


def test_loops_one_behind_the_other_are_differentiated(session: fw.Session) -> None:
    def function(h: Any, w: Any) -> Any:
        first = fw.fori_loop(2, lambda i, h: fw.tanh(h @ w), h)
        second = fw.fori_loop(3, lambda i, h: h * first + w[0], first * 2)
        return first * second

    check(session, function, H, W)


def test_the_body_is_called_once(session: fw.Session) -> None:
    calls = []

    def function(x: Any) -> Any:
        scale = 2.0

        def body(i: Any, x: Any) -> Any:
            calls.append(i)
            return x * x * scale

        ended = fw.fori_loop(2, body, x)
        scale = 100.0
        return ended

    assert fw.grad(function)(session.array(0.5)).item() == pytest.approx(8 * 4 * 0.5**3)
    assert len(calls) == 1


def test_a_loop_may_be_as_long_as_its_carries_fit(session: fw.Session) -> None:
    gradient = fw.grad(lambda x: fw.fori_loop(2000, lambda i, x: x * 0.999, x))(session.array(1.0))
    assert gradient.numpy(timeout=HANGS_S) == pytest.approx(0.999**2000)


def test_the_carries_of_a_loop_fit_the_limit_of_an_array_unless_no_value_is_taken(session: fw.Session) -> None:
    """All carries of 600 iterations have 1.2 GiB, and an array of this session 1 GiB at most."""
    x = session.array(np.ones(2**18))
    _, pull_back = fw.vjp(lambda x: fw.fori_loop(600, lambda i, x: x + 1, x), x)
    assert pull_back(np.ones(2**18))[0][0].item() == 1
    _, pull_back = fw.vjp(lambda x: fw.fori_loop(600, lambda i, x: fw.sin(x), x), x)
    with pytest.raises(fw.QuotaExceeded, match="array_bytes"):
        pull_back(np.ones(2**18))


def test_a_loop_of_what_is_not_differentiated_is_left_alone(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        constant = fw.fori_loop(3, lambda i, y: y * 2, x.session.array(1.0))
        count = fw.fori_loop(3, lambda i, n: n + i, x.session.array(0))
        return x * constant + count

    assert fw.grad(function)(session.array(1.0)).item() == 8


def test_a_gradient_in_the_body_is_differentiated(session: fw.Session) -> None:
    def function(x: Any, w: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return x - 0.1 * fw.grad(lambda x: (fw.sin(x) * w[0] * x).sum())(x)

        return fw.fori_loop(3, body, x)

    check(session, function, H, W)


def test_a_loop_is_differentiated_in_a_session_that_checks_indices() -> None:
    with session_in_memory(debug=True) as session:
        check(session, _looped(BODIES["of an index on the server"]), H, W, XS)


def test_a_loop_within_a_recorded_function_is_differentiated(session: fw.Session) -> None:
    gradient = fw.function(fw.grad(lambda x: fw.fori_loop(2, lambda i, x: x * x, x)))
    for value in (1.5, -0.5):
        assert float(gradient(session.array(value))) == 4 * value**3
