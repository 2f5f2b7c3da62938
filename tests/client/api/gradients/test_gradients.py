"""`grad`, `value_and_grad` and `vjp`: what they take and return, and what they refuse."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.client.api.gradients.differences import check, drawn
from tests.patience import HANGS_S

X, W = drawn(2, 3), drawn(3, 2, seed=1)


class Weights(NamedTuple):
    first: Any
    rest: Any


def _network(weights: Weights, x: Any) -> Any:
    return (fw.tanh(x @ weights.first) * weights.rest["scale"] + weights.rest["shifts"][0]).sum()


# ---- what they return ----


def test_a_gradient_has_the_form_of_its_argument(session: fw.Session) -> None:
    weights = Weights(session.array(W), {"scale": session.array(2.0), "shifts": [session.array(np.ones(2))]})
    value, gradient = fw.value_and_grad(_network)(weights, session.array(X))
    assert isinstance(gradient, Weights)
    hidden = np.tanh(X @ W)
    assert value.item() == pytest.approx((hidden * 2 + 1).sum())
    np.testing.assert_allclose(gradient.first.numpy(), X.T @ (2 * (1 - hidden**2)))
    np.testing.assert_allclose(gradient.rest["scale"].numpy(), hidden.sum())
    np.testing.assert_allclose(gradient.rest["shifts"][0].numpy(), [2, 2])


def test_several_arguments_give_a_tuple_in_their_order(session: fw.Session) -> None:
    x, y = session.array(2.0), session.array(5.0)
    assert [each.item() for each in fw.grad(lambda x, y: x * x * y, (1, 0))(x, y)] == [4, 20]
    assert fw.grad(lambda x, y: x * x * y, -1)(x, y).item() == 4
    assert [each.item() for each in fw.grad(lambda x: x * x, [0])(x)] == [4]


def test_other_arguments_are_passed_on(session: fw.Session) -> None:
    def function(x: Any, count: int, *, scale: float) -> Any:
        return x * count * scale

    assert fw.grad(function)(session.array(1.0), 3, scale=0.5).item() == 1.5


def test_what_else_a_function_computes_is_returned_beside_its_value(session: fw.Session) -> None:
    (value, rest), gradient = fw.value_and_grad(lambda x: (x * x, {"twice": 2 * x, "name": "x"}), has_aux=True)(
        session.array(3.0)
    )
    assert (value.item(), rest["twice"].item(), rest["name"], gradient.item()) == (9, 6, "x", 6)


def test_numbers_and_numpy_arrays_are_uploaded(session: fw.Session) -> None:
    y = session.array(np.array([1.0, 2.0]))
    assert fw.grad(lambda x, y: (x * y).sum(), (0, 1))(np.array([3.0, 4.0]), y)[0].tolist() == [1, 2]
    assert fw.grad(lambda x, y: (x * y).sum())(0.5, y).item() == 3


def test_an_argument_that_is_not_used_has_a_gradient_of_zeros(session: fw.Session) -> None:
    gradient = fw.grad(lambda x, y: y.sum())(session.array(X), session.array(W))
    assert gradient.tolist() == np.zeros_like(X).tolist()
    assert fw.grad(lambda x: session.array(1.0))(session.array(X)).tolist() == np.zeros_like(X).tolist()


def test_a_choice_that_is_not_taken_makes_no_gradient_nan(session: fw.Session) -> None:
    for function in (fw.asinh, fw.sinh, fw.atanh):  # of large numbers, asinh is log(2x)
        assert fw.grad(lambda x, f=function: f(x))(session.array(0.0)).item() == 1


def test_a_function_may_return_its_argument(session: fw.Session) -> None:
    value, gradient = fw.value_and_grad(lambda x: x)(session.array(4.0))
    assert (value.item(), gradient.item()) == (4, 1)


def test_a_function_branches_and_reads_values(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        return x * x if x > 0 else float(x) * x

    assert fw.grad(function)(session.array(3.0)).item() == 6
    assert fw.grad(function)(session.array(-3.0)).item() == -3


def test_a_wrapped_function_keeps_its_name() -> None:
    assert fw.grad(_network).__name__ == fw.value_and_grad(_network).__name__ == "_network"


def test_gradients_are_values_of_their_own(session: fw.Session) -> None:
    by_x, by_y = fw.grad(lambda x, y: (x + y).sum(), (0, 1))(session.array(X), session.array(X))
    by_x[0] = 5.0
    assert by_y.tolist() == np.ones_like(X).tolist()
    given = session.array(np.ones(2))
    _, pull_back = fw.vjp(lambda x, y: x + y, session.array(np.ones(2)), session.array(np.ones(2)))
    for pulled in pull_back(given):
        pulled[0] = 7.0
    assert given.tolist() == [1, 1]


# ---- what is constant, and what changes ----


def test_an_array_from_the_surroundings_is_constant_even_if_it_is_the_argument(session: fw.Session) -> None:
    x = session.array(3.0)
    assert fw.grad(lambda y: x * y)(x).item() == 3
    assert fw.grad(lambda x: x * fw.grad(lambda y: x * y)(x))(x).item() == 6


def test_assignments_to_an_argument_are_differentiated_and_change_a_copy(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        x[0] = x[1] * x[2]
        x *= 2
        x[1:] += x[0]
        return (x * x).sum()

    given = session.array(X.ravel())
    fw.grad(function)(given)
    np.testing.assert_array_equal(given.numpy(), X.ravel())
    check(session, function, X.ravel())


def test_assignments_to_arrays_that_are_computed_are_differentiated(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        y = fw.exp(x)
        z = y * y  # takes the first value of y
        y[0] = 0.0
        w = y * x
        y -= w
        return (y * z).sum()

    check(session, function, X)


def test_an_array_from_the_surroundings_may_be_assigned_to(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        kept = session.array(np.ones(3))
        y = kept * x
        kept[1] = x[0]
        return (y * kept * x).sum()

    check(session, function, X[0])


def test_a_value_that_dies_in_the_function_is_there_for_the_gradient(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        y = x * session.array(np.array([2.0, 3.0, 4.0]))  # the upload has no other name
        return (y * y).sum()

    check(session, function, X[0])


def test_a_value_that_is_used_often_adds_its_cotangents(session: fw.Session) -> None:
    check(session, lambda x: sum((x * k for k in range(1, 5)), x), X)


def test_long_chains_are_no_recursion(session: fw.Session) -> None:
    def function(x: Any) -> Any:
        for _ in range(3000):
            x = x * 1.0001
        return x

    assert fw.grad(function)(session.array(1.0)).item() == pytest.approx(1.0001**3000)


def test_random_numbers_are_constants(session: fw.Session) -> None:
    noise = fw.random.Generator(7).normal(size=3).numpy()
    gradient = fw.grad(lambda x: (x * fw.random.Generator(7).normal(size=3)).sum())(session.array(np.ones(3)))
    np.testing.assert_array_equal(gradient.numpy(), noise)


# ---- vjp ----


def test_cotangents_are_pulled_back_several_times(session: fw.Session) -> None:
    (y, z), pull_back = fw.vjp(lambda x, w: (x @ w, fw.exp(x)), session.array(X), session.array(W))
    np.testing.assert_allclose(y.numpy(), X @ W)
    for scale in (1.0, 2.0):
        by_x, by_w = pull_back((np.full((2, 2), scale), session.array(X)))
        np.testing.assert_allclose(by_x.numpy(), scale * np.ones((2, 2)) @ W.T + X * np.exp(X))
        np.testing.assert_allclose(by_w.numpy(), scale * X.T @ np.ones((2, 2)))
    assert z.shape == X.shape


def test_arguments_and_results_may_change_before_the_pull(session: fw.Session) -> None:
    x = session.array(X)
    y, pull_back = fw.vjp(lambda x: x * x, x)
    x[0] = 0.0
    y[0] = 0.0
    np.testing.assert_allclose(pull_back(np.ones((2, 3)))[0].numpy(), 2 * X)


def test_a_value_that_is_taken_and_assigned_to_is_refused(session: fw.Session) -> None:
    y, pull_back = fw.vjp(fw.exp, session.array(X))
    y[0] = 0.0
    with pytest.raises(fw.RequestError, match="assigned to since"):
        pull_back(np.ones((2, 3)))


def test_a_cotangent_is_cast_to_the_dtype_of_its_result(session: fw.Session) -> None:
    _, pull_back = fw.vjp(lambda x: x * 2, session.array(np.ones(2, np.float32)))
    assert pull_back(np.ones(2))[0].dtype is fw.float32


def test_a_result_of_the_arguments_gives_their_cotangents(session: fw.Session) -> None:
    _, pull_back = fw.vjp(lambda x, y: {"both": [x, y, x]}, session.array(1.0), session.array(2.0))
    assert [each.item() for each in pull_back({"both": [1.0, 2.0, 3.0]})] == [4, 2]


def test_wrong_cotangents_are_refused(session: fw.Session) -> None:
    _, pull_back = fw.vjp(lambda x: (x, x * 2), session.array(X))
    with pytest.raises(fw.ArgumentError, match="form"):
        pull_back(np.ones((2, 3)))
    with pytest.raises(fw.ShapeError, match=r"\(3,\)"):
        pull_back((np.ones((2, 3)), np.ones(3)))


def test_a_pull_is_itself_differentiated(session: fw.Session) -> None:
    def directional(x: Any) -> Any:
        _, pull_back = fw.vjp(lambda y: fw.sin(y) * y, x)
        return pull_back(x)[0]

    check(session, directional, X)


# ---- gradients of gradients, and in functions and loops ----


def test_derivatives_of_higher_orders_are_those_of_a_power(session: fw.Session) -> None:
    function: Callable[..., Any] = lambda x: x**4  # noqa: E731 - it is wrapped anew below
    values = []
    for _ in range(5):
        values.append(function(session.array(2.0)).item())
        function = fw.grad(function)
    assert values == [16, 32, 48, 48, 24]


def test_a_hessian_is_that_of_differences(session: fw.Session) -> None:
    def hessian_times(x: Any) -> Any:
        return fw.grad(lambda y: (fw.grad(lambda z: fw.logsumexp(fw.sin(z) * z))(y) * x).sum())(x)

    check(session, hessian_times, X)


def test_a_recorded_function_computes_a_gradient_again(session: fw.Session) -> None:
    step = fw.function(fw.value_and_grad(lambda w, x: fw.tanh(x @ w).sum()))
    for scale in (1.0, 0.5, 0.25):
        value, gradient = step(session.array(W * scale), session.array(X))
        hidden = np.tanh(X @ W * scale)
        assert value.item() == pytest.approx(hidden.sum())
        np.testing.assert_allclose(gradient.numpy(), X.T @ (1 - hidden**2))


def test_a_recorded_function_is_differentiated(session: fw.Session) -> None:
    layer = fw.function(lambda x, w: fw.tanh(x @ w))
    layer(session.array(X), session.array(W))  # it is known
    check(session, lambda x, w: layer(layer(x, w), x * w.T), X[:, :2], W[:2])


def test_a_gradient_stands_in_the_body_of_a_loop(session: fw.Session) -> None:
    goal = session.array(X)

    def descend(i: Any, x: Any) -> Any:
        return x - 0.1 * fw.grad(lambda x: ((x - goal) ** 2).sum())(x)

    found = fw.fori_loop(50, descend, session.array(np.zeros_like(X)))
    np.testing.assert_allclose(found.numpy(timeout=HANGS_S), X * (1 - 0.8**50))


# ---- what is noted ends ----


def test_nothing_is_noted_after_a_gradient_or_an_error(session: fw.Session) -> None:
    x = session.array(1.0)
    recorder = x._recorder
    died: list[weakref.ref[Any]] = []

    def function(x: Any) -> Any:
        y = x * x
        died.append(weakref.ref(y))
        return y * 2

    fw.grad(function)(x)
    assert recorder.notes is None
    assert died[0]() is None
    with pytest.raises(ZeroDivisionError):
        fw.grad(lambda x: x / (1 // 0))(x)
    assert recorder.notes is None


def test_values_that_are_not_taken_are_not_kept(session: fw.Session) -> None:
    sums: list[weakref.ref[Any]] = []

    def function(x: Any) -> Any:
        y = fw.exp(x) + 1
        sums.append(weakref.ref(y))
        return y * 2

    _, pull_back = fw.vjp(function, session.array(X))
    assert sums[0]() is None
    np.testing.assert_allclose(pull_back(np.ones((2, 3)))[0].numpy(), 2 * np.exp(X))


def test_threads_note_their_own_ops(session: fw.Session) -> None:
    inside, recorded = threading.Event(), threading.Event()
    x = session.array(3.0)
    other: list[Any] = []

    def record_beside() -> None:
        assert inside.wait(HANGS_S)
        other.append(x * 5)
        recorded.set()

    def function(x: Any) -> Any:
        y = x * x
        inside.set()
        assert recorded.wait(HANGS_S)
        return y + other[0]

    thread = threading.Thread(target=record_beside)
    thread.start()
    assert fw.grad(function)(x).item() == 6
    thread.join(HANGS_S)


# ---- what is refused ----


@pytest.mark.parametrize("given", [np.arange(3), np.ones(3, np.bool_), 2, "x", None])
def test_arguments_that_are_no_floats_are_refused(session: fw.Session, given: Any) -> None:
    array = session.array(given) if isinstance(given, np.ndarray) else given
    with pytest.raises(fw.DtypeError, match="differentiated"):
        fw.grad(lambda x, y: y)(array, session.array(1.0))


def test_results_that_are_no_single_float_are_refused(session: fw.Session) -> None:
    x = session.array(X)
    with pytest.raises(fw.ShapeError, match=r"\(2, 3\)"):
        fw.grad(lambda x: x * 2)(x)
    with pytest.raises(fw.DtypeError, match="int64"):
        fw.grad(lambda x: x.argmax())(x)
    with pytest.raises(fw.DtypeError, match="float"):
        fw.grad(lambda x: 1.0)(x)
    with pytest.raises(fw.DtypeError, match="tuple"):
        fw.grad(lambda x: (x.sum(), x))(x)
    with pytest.raises(fw.DtypeError, match="bool"):
        fw.vjp(lambda x: x > 0, x)


@pytest.mark.parametrize("argnums", [1, -2, (), (0, 0), (0, -1)])
def test_numbers_of_no_arguments_are_refused(session: fw.Session, argnums: Any) -> None:
    with pytest.raises(fw.ArgumentError, match="argnums"):
        fw.grad(lambda x: x, argnums)(session.array(1.0))


def test_a_value_without_what_else_is_computed_is_refused(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="pair"):
        fw.value_and_grad(lambda x: x, has_aux=True)(session.array(1.0))


def test_no_arguments_are_refused(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="no argument"):
        fw.grad(lambda x: session.array(1.0))([])


def test_arrays_of_different_sessions_are_refused(session: fw.Session) -> None:
    with session_in_memory() as other:
        x, y = session.array(1.0), other.array(2.0)
        with pytest.raises(fw.ArgumentError, match="different sessions"):
            fw.grad(lambda x, y: x, (0, 1))(x, y)
        with pytest.raises(fw.ArgumentError, match="different sessions"):
            fw.grad(lambda x: y)(x)
