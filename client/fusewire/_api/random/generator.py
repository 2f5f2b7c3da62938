"""`Generator`: random numbers by the names of NumPy's generator, drawn on the server."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import add, exp, less, log, multiply, sqrt
from fusewire._api.functions.ordering.sorting import argsort
from fusewire._api.ops.operands import apply_to_any, array_beside, session_of
from fusewire._api.ops.operations import astype, axis_of, dtype_of, shape_of, take_places
from fusewire._api.random.choice import checked_population, drawn_indices, places_without_replacement
from fusewire._api.random.integers import integers_from, range_of
from fusewire._api.random.keys import Key, check_key, key_number, random_bits
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._recording.body import check_may_draw
from fusewire._recording.record_op import apply_to_one
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape

Size = int | Sequence[int] | None

_COUNTERS = 2**64
_NUMBERS = (int, float)  # NumPy takes microseconds for what Python finds at once
# Bits of a significand: a float below 1 that has so many random bits is exact.
_SIGNIFICAND_BITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


class Generator:
    """Draws random numbers on the server. Names, parameters and defaults are those of NumPy's generator.

    `seed` is what `numpy.random.default_rng` takes, or a key (`fw.random.key`). Generators of equal seeds or keys draw
    the same numbers, in every session. The numbers are not NumPy's. Each element that is drawn takes one counter of
    Philox, from 0 on. The generator keeps count of them on this machine, and threads may share it.

    The numbers are in the session of the key, else in that of the first array among the arguments, else in the default
    session. `size` None means the shape of the parameters; `dtype` None means float64.

    Within a body that is recorded once (`fori_loop`, `function`) only a generator draws whose key belongs to the body:
    RequestError is raised for others, because they would draw the same numbers each time.

    Raises ShapeError, a ValueError, for a size that does not take the shape of the parameters; DtypeError, a TypeError,
    for a dtype that is not of floats; and ArgumentError, a ValueError, where NumPy raises ValueError for parameters, if
    this machine knows them.
    """

    def __init__(self, seed: Any = None) -> None:
        if isinstance(seed, Array):
            check_key(seed)
        self._key: Key = seed if isinstance(seed, Array) else key_number(seed)
        self._next_counter = 0
        self._lock = Lock()

    # ---- bits ----

    def bits(self, size: Size = None, dtype: Any = dtypes.uint64) -> Array:
        """Returns integers of a dtype, all of whose bits are random. Raises DtypeError for other dtypes."""
        wanted = dtype_of(dtype)
        if not wanted.is_integer:
            raise DtypeError(f"random bits have an integer dtype, not {wanted.name}")
        return astype(self._upper_bits(_shape(size), 8 * wanted.itemsize_bytes, ()), wanted, copy=False)

    def _upper_bits(self, shape: Shape, count: int, beside: Sequence[Any]) -> Array:
        bits = self._bits(shape, beside)
        return bits if count == 64 else bits >> (64 - count)

    def _bits(self, shape: Shape, beside: Sequence[Any] = ()) -> Array:
        """Returns random bits at the next counters, in the session of the arrays that are drawn for."""
        key = self._key if isinstance(self._key, Array) else None
        session = session_of(beside) if key is None else key.session
        check_may_draw(session.recorder(), key)
        with self._lock:
            start = self._next_counter
            self._next_counter = (start + prod(shape)) % _COUNTERS
        return random_bits(session, self._key, shape, start)

    # ---- numbers of one distribution ----

    def random(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns floats of [0, 1), of as many random bits as the significand of the dtype has: 53, 24, 11 or 8."""
        return self._random(_shape(size), _float_dtype(dtype), ())

    def _random(self, shape: Shape, dtype: DType, beside: Sequence[Any]) -> Array:
        count = _SIGNIFICAND_BITS[dtype]
        return astype(self._upper_bits(shape, count, beside), dtype) * 2.0**-count

    def standard_normal(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns normal numbers of mean 0 and variance 1: quantiles of 52 random bits, with an error below 1e-10."""
        return self._transformed("normal_of_bits", _shape(size), dtype, ())

    def standard_exponential(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns exponentially distributed numbers of mean 1: −log(u) of 52 random bits."""
        return self._transformed("exponential_of_bits", _shape(size), dtype, ())

    def _transformed(self, name: str, shape: Shape, dtype: Any, beside: Sequence[Any]) -> Array:
        wanted = _float_dtype(dtype)
        return astype(apply_to_one(BY_NAME[name], self._bits(shape, beside), ()), wanted, copy=False)

    # ---- with parameters, which are numbers or arrays ----

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns floats of [low, high), but rounding may give `high`. Raises OverflowError for an infinite width."""
        wanted, shape = _float_dtype(dtype), _shape(size, low, high)
        width = _parameter(high) - _parameter(low)
        if not isinstance(width, Array) and not np.all(np.isfinite(width)):
            raise OverflowError(f"uniform numbers from {low} to {high}: the width is not finite")
        return _moved(self._random(shape, wanted, (low, high)), low, width, wanted)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns normal numbers of mean `loc` and standard deviation `scale`."""
        return self._scaled("normal_of_bits", loc, scale, size, dtype)

    def exponential(self, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns exponentially distributed numbers of mean `scale`."""
        return self._scaled("exponential_of_bits", 0.0, scale, size, dtype)

    def _scaled(self, name: str, loc: Any, scale: Any, size: Size, dtype: Any) -> Array:
        wanted, shape = _float_dtype(dtype), _shape(size, loc, scale)
        _check_not_negative("scale", scale)
        return _moved(self._transformed(name, shape, wanted, (loc, scale)), loc, scale, wanted)

    def bernoulli(self, p: Any = 0.5, size: Size = None) -> Array:
        """Returns booleans that are true with probability `p`, exact to 2^-53."""
        _check_probability(p)
        return less(self._random(_shape(size, p), dtypes.float64, (p,)), _parameter(p))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers whose logarithm is normal, of mean `mean` and standard deviation `sigma`."""
        _check_not_negative("sigma", sigma)
        return exp(self._scaled("normal_of_bits", mean, sigma, size, dtype))

    def rayleigh(self, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns lengths of vectors of two normal numbers of standard deviation `scale`."""
        wanted, shape = _float_dtype(dtype), _shape(size, scale)
        _check_not_negative("scale", scale)
        squares = self._transformed("exponential_of_bits", shape, wanted, (scale,)) * 2.0
        return _moved(sqrt(squares), 0.0, scale, wanted)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the double exponential distribution about `loc`: differences of two exponential ones."""
        wanted, shape = _float_dtype(dtype), _shape(size, loc, scale)
        _check_not_negative("scale", scale)
        one, other = (self._transformed("exponential_of_bits", shape, wanted, (loc, scale)) for _ in range(2))
        return _moved(one - other, loc, scale, wanted)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the Gumbel distribution: −log of exponential ones."""
        wanted, shape = _float_dtype(dtype), _shape(size, loc, scale)
        _check_not_negative("scale", scale)
        drawn = -log(self._transformed("exponential_of_bits", shape, wanted, (loc, scale)))
        return _moved(drawn, loc, scale, wanted)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the logistic distribution: logarithms of quotients of two exponential ones."""
        wanted, shape = _float_dtype(dtype), _shape(size, loc, scale)
        _check_not_negative("scale", scale)
        one, other = (self._transformed("exponential_of_bits", shape, wanted, (loc, scale)) for _ in range(2))
        return _moved(log(one / other), loc, scale, wanted)

    # ---- integers, orders and choices ----

    def integers(
        self, low: Any, high: Any = None, size: Size = None, dtype: Any = dtypes.int64, *, endpoint: bool = False
    ) -> Array:
        """Returns integers of [low, high), or of [0, low) without `high`; with `endpoint` the last one too.

        The bounds are integers of this machine. No value is likelier than another by more than 2^-32 of its
        probability. Raises ArgumentError for an empty range and for bounds that the dtype does not hold.
        """
        first, span, wanted = range_of(low, high, dtype, endpoint=endpoint)
        shape = _shape(size)
        return integers_from(lambda: self._bits(shape), first, span, wanted)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Returns `x` with its slices along `axis` in random order, or for an integer the numbers below it.

        All orders are equally likely, but for equal random bits: of n slices, with a probability below n^2 · 2^-65.
        """
        if isinstance(x, int | np.integer):
            return argsort(self._bits(_shape(int(x))))
        given = array_beside(x, self._key)
        along = axis_of(axis, given.ndim)
        return take_places(given, argsort(self._bits((given.shape[along],), (given,))), along)

    def permuted(self, x: Any, axis: int | None = None) -> Array:
        """Returns `x` with the elements of each line along `axis` in a random order of its own, or with all of them."""
        given = array_beside(x, self._key)
        if axis is None:
            return self.permutation(given.reshape(-1)).reshape(given.shape)
        along = axis_of(axis, given.ndim)
        order = argsort(self._bits(given.shape, (given,)), axis=along)
        return apply_to_any(BY_NAME["take_along_axis"], given, order, attributes=(along,))

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Gives the array object `x` the value of `permutation(x, axis)`, as an assignment to its elements does."""
        if not isinstance(x, Array):
            raise TypeError(f"shuffle changes an array on the server, not a {type(x).__name__}")
        x[...] = self.permutation(x, axis)

    def choice(  # NumPy's parameters, in its order
        self,
        a: Any,
        size: Size = None,
        replace: bool = True,  # noqa: FBT001, FBT002
        p: Any = None,
        axis: int = 0,
    ) -> Array:
        """Returns slices of `a` along `axis`, or for an integer numbers below it, drawn at random.

        `p` are the probabilities of the slices, by default equal ones. If this machine knows them, they are checked;
        those of an array on the server are divided by their sum. Without `replace` no slice is drawn twice.
        Raises ArgumentError for too few slices, and for probabilities that are negative or whose sum is not 1.
        """
        values = None if isinstance(a, int | np.integer) else array_beside(a, p, self._key)
        along = 0 if values is None else axis_of(axis, values.ndim)
        shape, beside = _shape(size), (a, p)
        population = checked_population(a if values is None else values.shape[along], shape, p, replace=replace)
        if replace and p is None:
            places = integers_from(lambda: self._bits(shape, beside), 0, max(population, 1), dtypes.int64)
        elif replace:
            places = drawn_indices(self._random(shape, dtypes.float64, beside), p)
        elif p is None:
            places = places_without_replacement(self._bits((population,), beside), shape)
        else:
            waits = self._transformed("exponential_of_bits", (population,), None, beside) / _parameter(p)
            places = places_without_replacement(waits, shape)
        return places if values is None else take_places(values, places, along)


def default_rng(seed: Any = None) -> Generator:
    """Returns a generator of this seed or key, or `seed` itself if it is a generator."""
    return seed if isinstance(seed, Generator) else Generator(seed)


def _shape(size: Size, *parameters: Any) -> Shape:
    """Returns the shape of what is drawn."""
    ranked = [each for each in map(_shape_of_parameter, parameters) if each]
    of_parameters = shapes.broadcast(*ranked) if ranked else ()
    if size is None:
        return of_parameters
    wanted = shape_of(size)
    if ranked and shapes.broadcast(wanted, of_parameters) != wanted:
        raise ShapeError(f"the size {wanted} does not take parameters of shape {of_parameters}")
    return wanted


def _shape_of_parameter(given: Any) -> Shape:
    if isinstance(given, _NUMBERS):
        return ()
    return given.shape if isinstance(given, Array) else np.shape(given)


def _parameter(given: Any) -> Any:
    """Returns a parameter as an operand: what is neither an array nor a scalar becomes an array of NumPy's."""
    return given if isinstance(given, Array | float | int | np.generic) else np.asarray(given)


def _float_dtype(dtype: Any) -> DType:
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    if not wanted.is_floating:
        raise DtypeError(f"random floats have a float dtype, not {wanted.name}")
    return wanted


def _moved(drawn: Array, loc: Any, scale: Any, dtype: DType) -> Array:
    """Returns loc + scale · drawn in the dtype of what is drawn."""
    moved = drawn
    if not (isinstance(scale, _NUMBERS) and scale == 1):
        moved = multiply(moved, _parameter(scale))
    if not (isinstance(loc, _NUMBERS) and loc == 0):
        moved = add(moved, _parameter(loc))
    return astype(moved, dtype, copy=False)


def _check_not_negative(name: str, given: Any) -> None:
    """Raises ArgumentError for a number below 0 that this machine knows."""
    is_negative = given < 0 if isinstance(given, _NUMBERS) else not isinstance(given, Array) and np.less(given, 0).any()
    if is_negative:
        raise ArgumentError(f"{name} < 0: {given}")


def _check_probability(p: Any) -> None:
    if not isinstance(p, Array) and not np.all((np.asarray(p) >= 0) & (np.asarray(p) <= 1)):
        raise ArgumentError(f"a probability is from 0 to 1, not {p}")
