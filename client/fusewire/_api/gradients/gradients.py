"""Gradients of functions of arrays: `grad`, `value_and_grad`, `vjp`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.gradients.pull_back import Run
from fusewire._api.ops.filled import filled
from fusewire._api.recorded_once.nested import Form, flatten, unflatten
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._recording.default_session import default_session

Argnums = int | Sequence[int]


def grad(function: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Makes a function that returns the gradient of `function`, which returns one float, as an array of rank 0.

    The gradient is that by the argument of number `argnums`, or a tuple of those by several arguments. Such an argument
    is an array of floats or of complex numbers, or nested tuples, lists and dicts of these, and its gradient has the
    same form, dtypes and shapes. By a complex number x + yi it is d/dx + i · d/dy, as in PyTorch. `function` runs as it
    is: it may branch, read values, and assign to elements of its arguments, which are copies. Arrays that it takes from
    its surroundings are constants.

    The gradient consists of ordinary ops: it may stand in the body of `fori_loop` or `function`, where the client
    records it once, and may itself be differentiated. All values that it takes are kept until it is computed. Of
    a `fori_loop` these are the carries of all iterations, each in one array with an axis of iterations, but for what no
    derivative takes; and the loop runs once more to store them.

    Where a function has a kink, the gradient is that of one side, or between: `abs` and `relu` have 0 at 0, and
    elements that are equally the greatest or the least share it. Of ops that are constant between jumps, as comparisons
    and rounding, it is 0. What other threads record is not seen.

    Raises DtypeError for arguments of other dtypes and a result that is no float, ShapeError for a result of another
    rank, and ArgumentError for arrays of different sessions, and for decompositions whose gradient is not defined.
    """
    compute = value_and_grad(function, argnums)

    @wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, found = compute(*args, **kwargs)
        return found

    return gradient


def value_and_grad(function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:  # noqa: FBT001, FBT002 - as JAX has it
    """Makes a function that returns what `function` returns, and the gradient of it. See `grad`.

    If `has_aux`, `function` returns a pair, and the gradient is that of its first part; the other may be anything.
    """

    @wraps(function)
    def compute(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        numbers = _numbers(argnums, len(args))
        leaves, form = flatten([args[number] for number in numbers])
        sources = _sources(leaves, (args, kwargs))
        run = Run(sources)
        copied = dict(zip(numbers, unflatten(form, run.copies), strict=True))
        given = [copied.get(number, argument) for number, argument in enumerate(args)]
        returned = run.call(lambda: function(*given, **kwargs))
        value = _first_of(returned) if has_aux else returned
        _check_value(value, sources[0].session)
        run.end([value])
        pulled = run.pull([filled(value.session, (), 1.0, value.dtype)], is_last=True)
        found = unflatten(form, pulled)
        return returned, found[0] if isinstance(argnums, int) else tuple(found)

    return compute


def vjp(function: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Returns what `function` returns for the arguments, and the function that pulls cotangents back. See `grad`.

    The arguments and the result are arrays of floats or complex numbers, or nested tuples, lists and dicts of these.
    The second function takes cotangents of the form of the result: how much a number, of which a gradient is wanted,
    changes with each element of the result. It returns a tuple of those of the arguments, and may be called several
    times. It keeps the values that it takes. Arrays may be assigned to meanwhile, but those whose values it takes: then
    it raises RequestError.
    """
    leaves, form = flatten(args)
    sources = _sources(leaves, args)
    run = Run(sources)
    returned = run.call(lambda: function(*unflatten(form, run.copies)))
    results, returned_form = flatten(returned)
    for result in results:
        _check_result(result, sources[0].session)
    specs = [result._spec for result in results]
    run.end(results)
    session = sources[0].session

    def pull_back(cotangents: Any) -> tuple[Any, ...]:
        pulled: tuple[Any, ...] = unflatten(
            form, run.pull(_cotangents(session, cotangents, returned_form, specs), is_last=False)
        )
        return pulled

    return returned, pull_back


def _numbers(argnums: Argnums, count: int) -> list[int]:
    """Returns the numbers of the arguments, counted from the front. Raises ArgumentError."""
    numbers = [operator.index(each) for each in ([argnums] if isinstance(argnums, int) else argnums)]
    if not numbers or any(not -count <= number < count for number in numbers):
        raise ArgumentError(f"argnums = {argnums!r} names no arguments of {count} that are given by position")
    counted = [number % count for number in numbers]
    if len({*counted}) != len(counted):
        raise ArgumentError(f"argnums = {argnums!r} names an argument twice")
    return counted


def _sources(leaves: Sequence[Any], given: Any) -> list[Array]:
    """Returns what is differentiated as arrays of one session. Raises ArgumentError and DtypeError."""
    among, _ = flatten(given)
    session = next((each.session for each in [*leaves, *among] if isinstance(each, Array)), None) or default_session()
    if not leaves:
        raise ArgumentError("there is no argument to differentiate")
    return [_source(leaf, session) for leaf in leaves]


def _source(leaf: Any, session: Any) -> Array:
    if not isinstance(leaf, Array | np.ndarray | np.generic | float | int):
        raise DtypeError(f"an array of floats is differentiated, not {type(leaf).__name__}")
    if isinstance(leaf, Array) and leaf.session is not session:
        raise ArgumentError(
            "the arguments belong to different sessions; fetch one and upload it to the other's session"
        )
    array: Array = session.array(leaf)
    if not array.dtype.is_floating:
        raise DtypeError(f"an array of floats is differentiated, not one of {array.dtype.name}; cast by astype")
    return array


def _first_of(returned: Any) -> Any:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ArgumentError("with has_aux the function returns a pair: the value, and what else it computes")
    return returned[0]


def _check_value(value: Any, session: Any) -> None:
    _check_result(value, session)
    if value.shape:
        raise ShapeError(f"a gradient is that of one number, not of an array of shape {value.shape}; see vjp")


def _check_result(result: Any, session: Any) -> None:
    if not isinstance(result, Array):
        raise DtypeError(f"a function that is differentiated returns arrays of floats, not {type(result).__name__}")
    if not result.dtype.is_floating:
        raise DtypeError(f"a function that is differentiated returns arrays of floats, not of {result.dtype.name}")
    if result.session is not session:
        raise ArgumentError("the result and the arguments belong to different sessions")


def _cotangents(session: Any, given: Any, form: Form, specs: Sequence[Any]) -> list[Array]:
    leaves, given_form = flatten(given)
    if given_form != form:
        raise ArgumentError(f"the function returns a result of the form {form}, but the cotangents have {given_form}")
    arrays: list[Array] = [session.array(leaf) for leaf in leaves]
    for array, spec in zip(arrays, specs, strict=True):
        if array.shape != spec.shape:
            raise ShapeError(f"a cotangent of shape {array.shape} for a result of shape {spec.shape}")
    return [array.astype(spec.dtype, copy=False) for array, spec in zip(arrays, specs, strict=True)]
