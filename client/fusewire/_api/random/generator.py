"""`Generator`: random numbers by the names of NumPy's generator, drawn on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import less
from fusewire._api.functions.ordering.sorting import argsort
from fusewire._api.missing_names import instead_of_draw
from fusewire._api.ops.operands import apply_to_any, array_beside
from fusewire._api.ops.operations import astype, axis_of, dtype_of, take_places
from fusewire._api.random.choice import checked_population, drawn_indices, is_text, places_without_replacement
from fusewire._api.random.counts import Counts
from fusewire._api.random.draws import Size, check_probability, drawn_shape, float_dtype, moved, parameter
from fusewire._api.random.integers import integers_from, range_of
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME


class Generator(Counts):
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

    if not TYPE_CHECKING:  # a type checker would allow every attribute

        def __getattr__(self, name: str) -> NoReturn:
            text = f"'Generator' object has no attribute {name!r}{instead_of_draw(name)}"
            raise AttributeError(text, name=name)

    # ---- bits ----

    def bits(self, size: Size = None, dtype: Any = dtypes.uint64) -> Array:
        """Returns integers of a dtype, all of whose bits are random. Raises DtypeError for other dtypes."""
        wanted = dtype_of(dtype)
        if not wanted.is_integer:
            raise DtypeError(f"random bits have an integer dtype, not {wanted.name}")
        return astype(self._upper_bits(drawn_shape(size), 8 * wanted.itemsize_bytes, ()), wanted, copy=False)

    # ---- numbers of one distribution ----

    def random(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns floats of [0, 1), of as many random bits as the significand of the dtype has: 53, 24, 11 or 8."""
        return self._random(drawn_shape(size), float_dtype(dtype), ())

    def standard_normal(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns normal numbers of mean 0 and variance 1: quantiles of 52 random bits, with an error below 1e-10."""
        return self._transformed("normal_of_bits", drawn_shape(size), dtype, ())

    def standard_exponential(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns exponentially distributed numbers of mean 1: −log(u) of 52 random bits."""
        return self._transformed("exponential_of_bits", drawn_shape(size), dtype, ())

    # ---- with parameters, which are numbers or arrays ----

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns floats of [low, high), but rounding may give `high`. Raises OverflowError for an infinite width."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, low, high)
        width = parameter(high) - parameter(low)
        if not isinstance(width, Array) and not np.all(np.isfinite(width)):
            raise OverflowError(f"uniform numbers from {low} to {high}: the width is not finite")
        return moved(self._random(shape, wanted, (low, high)), low, width, wanted)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns normal numbers of mean `loc` and standard deviation `scale`."""
        return self._scaled("normal_of_bits", loc, scale, size, dtype)

    def exponential(self, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns exponentially distributed numbers of mean `scale`."""
        return self._scaled("exponential_of_bits", 0.0, scale, size, dtype)

    def bernoulli(self, p: Any = 0.5, size: Size = None) -> Array:
        """Returns booleans that are true with probability `p`, exact to 2^-53."""
        check_probability(p)
        return less(self._random(drawn_shape(size, p), dtypes.float64, (p,)), parameter(p))

    # ---- integers, orders and choices ----

    def integers(
        self, low: Any, high: Any = None, size: Size = None, dtype: Any = dtypes.int64, *, endpoint: bool = False
    ) -> Array:
        """Returns integers of [low, high), or of [0, low) without `high`; with `endpoint` the last one too.

        The bounds are integers of this machine. No value is likelier than another by more than 2^-32 of its
        probability. Raises ArgumentError for an empty range and for bounds that the dtype does not hold.
        """
        first, span, wanted = range_of(low, high, dtype, endpoint=endpoint)
        shape = drawn_shape(size)
        return integers_from(lambda: self._bits(shape), first, span, wanted)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Returns `x` with its slices along `axis` in random order, or for an integer the numbers below it.

        All orders are equally likely, but for equal random bits: of n slices, with a probability below n^2 · 2^-65.
        """
        if isinstance(x, int | np.integer):
            return argsort(self._bits(drawn_shape(int(x))))
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
        those of an array on the server are divided by their sum. Without `replace` no slice is drawn twice. Text, for
        which there is no dtype, stays on this machine: the call waits for the places, and returns what NumPy takes.
        Raises ArgumentError for too few slices, and for probabilities that are negative or whose sum is not 1.
        """
        if is_text(a):
            texts: Any = np.asarray(a)
            chosen: Array = texts.take(self.choice(texts.shape[axis], size, replace, p).numpy(), axis)  # one of NumPy's
            return chosen
        values = None if isinstance(a, int | np.integer) else array_beside(a, p, self._key)
        along = 0 if values is None else axis_of(axis, values.ndim)
        shape, beside = drawn_shape(size), (a, p)
        population = checked_population(a if values is None else values.shape[along], shape, p, replace=replace)
        if replace and p is None:
            places = integers_from(lambda: self._bits(shape, beside), 0, max(population, 1), dtypes.int64)
        elif replace:
            places = drawn_indices(self._random(shape, dtypes.float64, beside), p)
        elif p is None:
            places = places_without_replacement(self._bits((population,), beside), shape)
        else:
            waits = self._transformed("exponential_of_bits", (population,), None, beside) / parameter(p)
            places = places_without_replacement(waits, shape)
        return places if values is None else take_places(values, places, along)


def default_rng(seed: Any = None) -> Generator:
    """Returns a generator of this seed or key, or `seed` itself if it is a generator."""
    return seed if isinstance(seed, Generator) else Generator(seed)
