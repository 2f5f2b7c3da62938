"""Compares gradients with central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import fusewire as fw
from tests.patience import HANGS_S

Values = npt.NDArray[np.float64]
STEP = 1e-6
_TOLERANCE = 2e-7  # of the error of a difference: STEP² · f''' / 6, and the rounding of f / STEP


class Case(NamedTuple):
    """A function of arrays, and the values at which it is differentiated."""

    function: Callable[..., Any]
    values: tuple[Values, ...]


def drawn(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Values:
    """Values between two bounds, far enough from each other that no step makes two equal."""
    count = int(np.prod(shape))
    values = np.linspace(low, high, count + 2)[1:-1] if count else np.zeros(0)
    return np.random.default_rng(seed).permutation(values).reshape(shape)


def matrix(*shape: int, seed: int = 0) -> Values:
    """Well-conditioned matrices, square or not, whose singular values differ."""
    *_batch, rows, columns = shape
    random = np.random.default_rng(seed)
    u, _, vh = np.linalg.svd(random.standard_normal(shape), full_matrices=False)
    return np.asarray((u * np.linspace(1, 2, min(rows, columns))) @ vh, np.float64)


def check(session: fw.Session, function: Callable[..., Any], *values: Values) -> None:
    """Compares the gradients of the weighted sum of what the function returns with differences."""

    def weighted(*arrays: fw.Array) -> fw.Array:
        returned = function(*arrays)
        results = returned if isinstance(returned, tuple) else (returned,)
        weights = [np.cos(np.arange(each.size) + 1.0).reshape(each.shape) for each in results]
        total = sum((each * weight).sum() for each, weight in zip(results, weights, strict=True))
        assert isinstance(total, fw.Array)
        return total

    arrays = [session.array(each) for each in values]
    found = fw.grad(weighted, tuple(range(len(values))))(*arrays)
    for number, gradient in enumerate(found):
        assert (gradient.dtype, gradient.shape) == (fw.float64, values[number].shape)
        expected = differences(session, weighted, values, number)
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(gradient.numpy(timeout=HANGS_S), expected, rtol=0, atol=_TOLERANCE * scale)


def check_twice(session: fw.Session, function: Callable[..., Any], *values: Values) -> None:
    """Compares second derivatives with differences of gradients."""

    def gradients(*arrays: fw.Array) -> tuple[fw.Array, ...]:
        found: tuple[fw.Array, ...] = fw.grad(
            lambda *given: (function(*given) * function(*given)).sum(), tuple(range(len(values)))
        )(*arrays)
        return found

    check(session, gradients, *values)


def differences(
    session: fw.Session, function: Callable[..., fw.Array], values: tuple[Values, ...], number: int
) -> Values:
    """Central differences of a number by each element of one argument."""
    results = []
    for index in np.ndindex(values[number].shape):
        for step in (STEP, -STEP):
            moved = values[number].copy()
            moved[index] += step
            given = [moved if each == number else value for each, value in enumerate(values)]
            results.append(function(*[session.array(each) for each in given]))
    if not results:
        return np.zeros(values[number].shape)
    read = np.array([each.numpy(timeout=HANGS_S) for each in results]).reshape(-1, 2)
    return np.asarray((read[:, 0] - read[:, 1]) / (2 * STEP)).reshape(values[number].shape)
