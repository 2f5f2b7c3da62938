"""Random counts: how often something happens that is rare, or that succeeds with a probability.

A small mean is searched among cumulated probabilities. A large one takes Hörmann's transformed rejection (Poisson:
1993, "The transformed rejection method for generating Poisson random variables"; binomial: 1993, "The generation of
binomial random variates"). Each element takes both ways, so that how much is drawn follows from shapes alone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, prod
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import ceil, exp, expm1, floor, less_equal, log, log1p, maximum, minimum, sqrt
from fusewire._api.functions.arrangement.joining import concat, stack
from fusewire._api.functions.creation.creation import arange, zeros_like
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.ordering.sorting import cumulative_prod, cumulative_sum
from fusewire._api.ops.operands import array_beside
from fusewire._api.ops.operations import astype, broadcast_to
from fusewire._api.random.distributions import Distributions
from fusewire._api.random.draws import (
    Size,
    check_not_negative,
    check_positive,
    check_probability,
    drawn_shape,
    first_accepted,
    float_dtype,
    parameter,
)
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Shape

_SMALL_MEAN = 10.0  # below it rejection would not do, and above it the search is long
_SEARCHED = 50  # a count of a small mean is greater with a probability below 2^-61
# Each try is refused with a probability below 0.3: all of them with one below 2^-34. Then the first one is taken.
_TRIES = 20
# So many numbers at most are drawn at once, as each takes some kilobytes of the device's memory meanwhile.
_SLAB = 1 << 16
_MOST_TRIALS = 2**63 - 1
_MOST_MEAN = 2.0**63 - 10 * 2.0**31.5  # as NumPy's: a greater one has counts above int64
_TOLERANCE = 1e-12  # of the sum of probabilities: that of NumPy
_TINY = 2.0**-1000  # in place of 0 below a fraction


class Counts(Distributions):
    """Draws counts in int64, and numbers of distributions that are mixed by counts."""

    def geometric(self, p: Any, size: Size = None) -> Array:
        """Returns how many trials it takes to the first success of probability `p`, in int64."""
        shape = drawn_shape(size, p)
        check_probability(p)
        check_positive("p", p)
        trials = ceil(self._exponentials(shape, p) / -log1p(-array_beside(p, self._key)))
        return astype(maximum(trials, 1.0), dtypes.int64)

    def poisson(self, lam: Any = 1.0, size: Size = None) -> Array:
        """Returns how often something happens that does so `lam` times on average, in int64. Draws 41 numbers each.

        Raises ArgumentError for a mean near 2^63. On the server, the counts of such a mean end at 2^63 - 1.
        """
        shape = drawn_shape(size, lam)
        check_not_negative("lam", lam)
        if not isinstance(lam, Array):
            _check_mean("lam", lam)
        return astype(self._poisson(shape, array_beside(lam, self._key)), dtypes.int64)

    def binomial(self, n: Any, p: Any, size: Size = None) -> Array:
        """Returns how many of `n` trials succeed, each with probability `p`, in int64. Draws 41 numbers each."""
        shape, trials = drawn_shape(size, n, p), _trials(n)
        check_probability(p)
        return astype(self._binomial(shape, *self._beside(trials, p)), dtypes.int64)

    def negative_binomial(self, n: Any, p: Any, size: Size = None) -> Array:
        """Returns how many trials fail before `n` succeed, each with probability `p`, in int64. Draws 66 numbers each.

        They are Poisson numbers whose means are gamma ones. `n` need not be an integer. Raises ArgumentError for an `n`
        so large, or a `p` so small, that the mean is near 2^63. On the server, the counts of these end at 2^63 - 1.
        """
        shape = drawn_shape(size, n, p)
        check_positive("n", n)
        check_probability(p)
        check_positive("p", p)
        if not isinstance(n, Array) and not isinstance(p, Array):
            most = np.asarray(n, np.float64) + 10.0 * np.sqrt(np.asarray(n, np.float64))
            _check_mean("(n + 10 sqrt(n)) (1 - p) / p", most * (np.subtract(1.0, p) / p))
        trials, chance = self._beside(n, p)
        means = self._gammas(shape, trials, (trials,)) * ((1.0 - chance) / chance)
        return astype(self._poisson(shape, means), dtypes.int64)

    def multinomial(self, n: Any, pvals: Any, size: Size = None) -> Array:
        """Returns how many of `n` trials have each result, in int64, along the last axis of `pvals`.

        `pvals` are the probabilities of the results. Of the last one it is what the others leave of 1. Draws about 41
        numbers for each result. Raises ShapeError if `pvals` has rank 0 or no results.
        """
        trials, chances = self._beside(_trials(n), pvals)
        if not chances.ndim or not chances.shape[-1]:
            raise ShapeError(f"multinomial takes a vector of probabilities, not the shape {chances.shape}")
        shape = drawn_shape(size, trials, chances[..., 0])
        check_probability(pvals)
        if not isinstance(pvals, Array) and np.any(np.sum(np.asarray(pvals)[..., :-1], -1) > 1 + _TOLERANCE):
            raise ArgumentError(f"probabilities have a sum of at most 1, unlike {pvals}")
        others = chances[..., :-1]
        last = maximum(1.0 - others.sum(-1, keepdims=True), 0.0)
        whole = broadcast_to(astype(array_beside(_trials(n), pvals, self._key), dtypes.int64)[..., None], (*shape, 1))
        return self._shared_out(whole, concat([others, last], axis=-1))

    def _shared_out(self, whole: Array, chances: Array) -> Array:
        """Returns how many of the trials, a last axis of length 1, have each of the results of the last axis.

        They are shared out among halves of the results, then among halves of these, as each half is a binomial number.
        """
        results = chances.shape[-1]
        if results == 1:
            return whole
        pairs = _pairs(chances)
        of_pairs = pairs.sum(-1)
        counts = self._shared_out(whole, of_pairs)
        drawn = self._binomial(counts.shape, astype(counts, dtypes.float64), pairs[..., 0] / maximum(of_pairs, _TINY))
        # A number of trials above 2^53 loses bits as a float: where the second has no chance, the first gets them all.
        firsts = where(pairs[..., 1] > 0, minimum(astype(drawn, dtypes.int64), counts), counts)
        return stack([firsts, counts - firsts], axis=-1).reshape((*counts.shape[:-1], 2 * counts.shape[-1]))[
            ..., :results
        ]

    def logseries(self, p: Any, size: Size = None) -> Array:
        """Returns integers k > 0 of a probability proportional to `p` ** k / k, in int64, by Kemp (1981)."""
        shape = drawn_shape(size, p)
        check_probability(p)
        if not isinstance(p, Array) and np.any(np.equal(p, 1)):
            raise ArgumentError(f"p is a number of [0, 1), not {p}")
        one, other = (self._random(shape, dtypes.float64, (p,)) for _ in range(2))
        chance = -expm1(log1p(-astype(array_beside(p, self._key), dtypes.float64, copy=False)) * other)
        above_two = floor(1.0 + log(maximum(one, 2.0**-54)) / log(chance))
        least = where((one < chance) & (one > chance * chance), 2.0, 1.0)
        return astype(where(one <= chance * chance, maximum(above_two, 1.0), least), dtypes.int64)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns sums of the squares of `df` normal numbers, the squares of whose means have the sum `nonc`."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, df, nonc)
        check_positive("df", df)
        check_not_negative("nonc", nonc)
        return astype(self._noncentral_squares(shape, df, nonc), wanted, copy=False)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns quotients of a `noncentral_chisquare` and a `chisquare` number, divided by degrees of freedom."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, dfnum, dfden, nonc)
        check_positive("dfnum", dfnum)
        check_positive("dfden", dfden)
        check_not_negative("nonc", nonc)
        above = self._noncentral_squares(shape, dfnum, nonc) / parameter(dfnum)
        quotient: Array = above / (self._squares(shape, dfden, (dfnum, dfden)) / parameter(dfden))
        return astype(quotient, wanted, copy=False)

    def _noncentral_squares(self, shape: Shape, df: Any, nonc: Any) -> Array:
        freedom, moved = self._beside(df, nonc)
        return self._squares(shape, freedom + self._poisson(shape, moved / 2.0) * 2.0, (freedom,))

    def _beside(self, *given: Any) -> list[Array]:
        """Returns parameters as arrays of float64 in one session."""
        return [astype(array_beside(each, *given, self._key), dtypes.float64, copy=False) for each in given]

    def _poisson(self, shape: Shape, mean: Array) -> Array:
        """Returns Poisson numbers in float64."""
        return _in_slabs(shape, self._slab_of_poisson, mean)

    def _binomial(self, shape: Shape, trials: Array, chance: Array) -> Array:
        """Returns binomial numbers in float64."""
        return _in_slabs(shape, self._slab_of_binomial, trials, chance)

    def _slab_of_poisson(self, shape: Shape, given: Array) -> Array:
        mean = _of_rank(given, len(shape))
        small = self._searched(shape, exp(-mean), mean / _numbers(mean))
        width = 0.931 + 2.53 * sqrt(mean)
        large = self._rejected(
            shape,
            slope=-0.059 + 0.02483 * width,
            width=width,
            centre=mean + 0.43,
            height=1.1239 + 1.1328 / (width - 3.4),
            log_probability=lambda count: _log_poisson(count, mean),
        )
        return where(mean < _SMALL_MEAN, small, maximum(large, 0.0))

    def _slab_of_binomial(self, shape: Shape, given_trials: Array, given_chance: Array) -> Array:
        """Counts the rarer of success and failure."""
        trials, chance = _of_rank(given_trials, len(shape)), _of_rank(given_chance, len(shape))
        rare = minimum(chance, 1.0 - chance)
        often, mean, number = 1.0 - rare, trials * rare, _numbers(trials * rare)
        ratios = maximum(trials + 1.0 - number, 0.0) / number * (rare / often)
        small = self._searched(shape, exp(trials * log1p(-rare)), ratios)

        def log_weight(count: Array) -> Array:
            return _log_poisson(count, mean) + _log_poisson(trials - count, trials * often)

        deviation, mode = sqrt(mean * often), log_weight(floor(mean + rare))
        width = 1.15 + 2.53 * deviation
        large = self._rejected(
            shape,
            slope=-0.0873 + 0.0248 * width + 0.01 * rare,
            width=width,
            centre=mean + 0.5,
            height=(2.83 + 5.1 / width) * deviation,
            log_probability=lambda count: log_weight(count) - mode,
        )
        count = minimum(maximum(where(mean < _SMALL_MEAN, small, large), 0.0), trials)
        return where(chance > 0.5, trials - count, count)

    def _searched(self, shape: Shape, first: Array, ratios: Array) -> Array:
        """Returns how many cumulated probabilities a uniform number reaches.

        `first` is the probability of 0, and element i of `ratios`, along its first axis, that of i + 1 divided by that
        of i.
        """
        probabilities = cumulative_prod(concat([first[None], ratios]), axis=0)
        reached = less_equal(cumulative_sum(probabilities, axis=0), self._random(shape, dtypes.float64, (first,)))
        return astype(reached.sum(0), dtypes.float64)

    def _rejected(
        self,
        shape: Shape,
        *,
        slope: Array,
        width: Array,
        centre: Array,
        height: Array,
        log_probability: Callable[[Array], Array],
    ) -> Array:
        """Returns counts by transformed rejection: the first of several tries that is accepted.

        Of an impossible count the logarithm is NaN, which accepts no try.
        """
        tries = (_TRIES, *shape)
        part = self._random(tries, dtypes.float64, (width,)) - 0.5
        edge = 0.5 - abs(part)
        count = floor((2.0 * slope / edge + width) * part + centre)
        bound = self._random(tries, dtypes.float64, (width,)) * height / (slope / (edge * edge) + width)
        return first_accepted(log(bound) <= log_probability(count), count)


def _check_mean(name: str, mean: Any) -> None:
    """Raises ArgumentError for a mean whose counts would be above int64, and for NaN."""
    if not np.all(np.asarray(mean) <= _MOST_MEAN):
        raise ArgumentError(f"{name} is at most {_MOST_MEAN:.10g}, so that the counts are of int64, not {mean}")


def _trials(n: Any) -> Any:
    """Returns numbers of trials: `n`, or the integer that a float of Python's or NumPy's is.

    Raises DtypeError for others than integers, and ArgumentError for one below 0, or above int64, that this machine
    knows.
    """
    trials = int(n) if isinstance(n, float | np.floating) and n.is_integer() else n
    if isinstance(trials, int) and trials > _MOST_TRIALS:
        raise ArgumentError(f"a number of trials is at most {_MOST_TRIALS}, not {n}")
    dtype = np.dtype(n.dtype.name) if isinstance(n, Array) else np.asarray(trials).dtype
    if np.size(trials) and not np.isdtype(dtype, ("integral", "bool")):
        raise DtypeError(f"a number of trials is an integer, not {n}")
    check_not_negative("n", trials)
    return trials


def _pairs(chances: Array) -> Array:
    """Returns neighbours of the last axis side by side along a further axis, the last one of an odd number with 0."""
    if chances.shape[-1] % 2:
        chances = concat([chances, zeros_like(chances[..., :1])], axis=-1)
    return chances.reshape((*chances.shape[:-1], chances.shape[-1] // 2, 2))


def _in_slabs(shape: Shape, draw: Callable[..., Array], *given: Array) -> Array:
    """Returns what `draw(shape, *given)` does, of `_SLAB` numbers after another if there are more."""
    count = prod(shape)
    if count <= _SLAB:
        return draw(shape, *given)
    flat = [each.reshape((1,)) if each.size == 1 else broadcast_to(each, shape).reshape((count,)) for each in given]
    slabs = [
        draw((min(_SLAB, count - start),), *[each if each.size == 1 else each[start : start + _SLAB] for each in flat])
        for start in range(0, count, _SLAB)
    ]
    return concat(slabs).reshape(shape)


def _of_rank(given: Array, rank: int) -> Array:
    """Returns an array with further axes of length 1 in front, so that another axis may come before them."""
    return given.reshape((1,) * (rank - given.ndim) + given.shape)


def _numbers(beside: Array) -> Array:
    """Returns the numbers from 1 on that are searched, along an axis before those of `beside`."""
    numbers = arange(1, _SEARCHED + 1, dtype=dtypes.float64, device=beside.session)
    return numbers.reshape((_SEARCHED,) + (1,) * beside.ndim)


def _log_poisson(count: Array, mean: Array) -> Array:
    """Returns the logarithm of a Poisson number's probability, by Stirling's series for the factorial.

    The series is off by less than 3e-4 for count 0, and less for greater ones. For large means, no large terms cancel.
    """
    next_count = count + 1.0
    distance = (next_count - mean) / mean
    away = log1p(distance)
    square = next_count * next_count
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / next_count
    return 0.5 * away - mean * ((1.0 + distance) * away - distance) - series - 0.5 * log(2.0 * pi * mean)
