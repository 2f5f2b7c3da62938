"""Draws places at random, by probabilities or without repetition, from numbers that are given."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.ordering.searching import searchsorted
from fusewire._api.functions.ordering.sorting import argsort, cumulative_sum
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Shape

_TOLERANCE = 2.0**-26  # of the sum of probabilities: that of NumPy


def is_text(population: Any) -> bool:
    """Returns whether what is to be drawn are texts or other objects of Python."""
    if isinstance(population, np.ndarray):
        return population.dtype.kind in "OSU"
    return isinstance(population, list | tuple) and any(isinstance(each, str | bytes) for each in population)


def checked_population(count: int, shape: Shape, p: Any, *, replace: bool) -> int:
    """Returns how many places there are to draw from. Raises ArgumentError or ShapeError as `Generator.choice` says."""
    population, draws = int(count), prod(shape)
    if population < 0 or (population == 0 and draws > 0):
        raise ArgumentError(f"{draws} draws from {population} places")
    if not replace and draws > population:
        raise ArgumentError(f"{draws} draws from {population} places without replacement")
    if p is not None:
        _check_probabilities(p, population, 0 if replace else draws)
    return population


def _check_probabilities(p: Any, population: int, least_possible: int) -> None:
    shape = p.shape if isinstance(p, Array) else np.shape(p)
    if shape != (population,):
        raise ShapeError(f"probabilities of shape {shape} for {population} places")
    if isinstance(p, Array):
        return
    known = np.asarray(p, np.float64)
    if not (known >= 0).all():
        raise ArgumentError("probabilities are not negative, and not NaN")
    if abs(float(known.sum()) - 1.0) > _TOLERANCE:
        raise ArgumentError(f"probabilities have the sum 1, not {known.sum()}")
    if np.count_nonzero(known) < least_possible:
        raise ArgumentError(f"{least_possible} draws without replacement, but fewer probabilities above 0")


def drawn_indices(uniform: Array, p: Any) -> Array:
    """Returns the place for each uniform number of [0, 1): the first whose cumulated probability is greater."""
    if isinstance(p, Array):
        sums = cumulative_sum(p, dtype=dtypes.float64)
        return searchsorted(sums / sums[-1], uniform, side="right")
    known = np.cumsum(np.asarray(p, np.float64))
    return searchsorted(uniform.session.array(known / known[-1]), uniform, side="right")


def places_without_replacement(keys: Array, shape: Shape) -> Array:
    """Returns the places of the least keys in order.

    If the keys are exponential numbers divided by probabilities, the places are drawn by these one after another
    (Efraimidis and Spirakis, 2006).
    """
    return argsort(keys)[: prod(shape)].reshape(shape)
