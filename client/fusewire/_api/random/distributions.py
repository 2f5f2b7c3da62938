"""Random numbers of distributions that are made of uniform, normal and exponential ones by a formula."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import (
    divide,
    exp,
    expm1,
    less,
    log,
    matmul,
    maximum,
    power,
    sqrt,
)
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.linalg.decompositions import eigh
from fusewire._api.ops.operands import array_beside
from fusewire._api.ops.operations import astype
from fusewire._api.random.draws import (
    Draws,
    Size,
    check_not_negative,
    check_positive,
    drawn_shape,
    first_accepted,
    float_dtype,
    moved,
    parameter,
)
from fusewire._errors import ShapeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Shape

# Each try to draw a gamma number is refused with a probability below 0.05: all of them with one below 2^-51.
_TRIES = 12


class Distributions(Draws):
    """Draws numbers of the distributions that NumPy's generator names. Parameters are numbers or arrays."""

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers whose logarithm is normal, of mean `mean` and standard deviation `sigma`."""
        check_not_negative("sigma", sigma)
        return exp(self._scaled("normal_of_bits", mean, sigma, size, dtype))

    def rayleigh(self, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns lengths of vectors of two normal numbers of standard deviation `scale`."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, scale)
        check_not_negative("scale", scale)
        squares = self._transformed("exponential_of_bits", shape, wanted, (scale,)) * 2.0
        return moved(sqrt(squares), 0.0, scale, wanted)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the double exponential distribution about `loc`: differences of two exponential ones."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, loc, scale)
        check_not_negative("scale", scale)
        one, other = (self._transformed("exponential_of_bits", shape, wanted, (loc, scale)) for _ in range(2))
        return moved(one - other, loc, scale, wanted)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the Gumbel distribution: −log of exponential ones."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, loc, scale)
        check_not_negative("scale", scale)
        drawn = -log(self._transformed("exponential_of_bits", shape, wanted, (loc, scale)))
        return moved(drawn, loc, scale, wanted)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the logistic distribution: logarithms of quotients of two exponential ones."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, loc, scale)
        check_not_negative("scale", scale)
        one, other = (self._transformed("exponential_of_bits", shape, wanted, (loc, scale)) for _ in range(2))
        return moved(log(one / other), loc, scale, wanted)

    def weibull(self, a: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the Weibull distribution of shape `a`: powers of exponential ones."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, a)
        check_not_negative("a", a)
        return astype(power(self._exponentials(shape, a), divide(1.0, parameter(a))), wanted, copy=False)

    def pareto(self, a: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the Pareto distribution II (Lomax) of shape `a`: exp(e / `a`) − 1 of exponential ones."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, a)
        check_positive("a", a)
        return astype(expm1(self._exponentials(shape, a) / parameter(a)), wanted, copy=False)

    def power(self, a: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of [0, 1] whose density is a power with exponent `a` − 1."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, a)
        check_positive("a", a)
        return astype(exp(-self._exponentials(shape, a) / parameter(a)), wanted, copy=False)

    def standard_cauchy(self, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the Cauchy distribution: quotients of two normal ones."""
        wanted, shape = float_dtype(dtype), drawn_shape(size)
        one, other = (self._transformed("normal_of_bits", shape, None, ()) for _ in range(2))
        return astype(one / other, wanted, copy=False)

    def triangular(self, left: Any, mode: Any, right: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers from `left` to `right` whose density is a triangle with its top at `mode`."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, left, mode, right)
        low, top, high = (parameter(each) for each in (left, mode, right))
        check_not_negative("mode - left", top - low)
        check_not_negative("right - mode", high - top)
        check_positive("right - left", high - low)
        part = self._random(shape, dtypes.float64, (left, mode, right))
        rising = low + sqrt(part * ((high - low) * (top - low)))
        falling = high - sqrt((1.0 - part) * ((high - low) * (high - top)))
        return astype(where(part * (high - low) < top - low, rising, falling), wanted, copy=False)

    def wald(self, mean: Any, scale: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the inverse Gaussian distribution, by Michael, Schucany and Haas (1976)."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, mean, scale)
        check_positive("mean", mean)
        check_positive("scale", scale)
        middle, spread = parameter(mean), parameter(scale)
        normal = self._transformed("normal_of_bits", shape, None, (mean, scale))
        ratio = normal * normal * middle / (spread * 2.0)
        lesser = middle / (1.0 + ratio + sqrt(ratio * (ratio + 2.0)))
        is_lesser = self._random(shape, dtypes.float64, (mean, scale)) * (middle + lesser) <= middle
        return astype(where(is_lesser, lesser, middle * middle / lesser), wanted, copy=False)

    def multivariate_normal(self, mean: Any, cov: Any, size: Size = None) -> Array:
        """Returns vectors of normal numbers of these means and covariances, in float64, along the last axis.

        The covariances are a symmetric matrix without negative eigenvalues, which is not checked: negative ones count
        as 0. Raises ShapeError unless `mean` is a vector and `cov` a matrix of its length.
        """
        means, covariances = array_beside(mean, cov, self._key), array_beside(cov, mean, self._key)
        if means.ndim != 1 or covariances.shape != means.shape * 2:
            raise ShapeError(f"a mean of shape {means.shape} does not go with covariances of shape {covariances.shape}")
        variances, axes = eigh(astype(covariances, dtypes.float64, copy=False))
        shape = (*drawn_shape(size), means.size)
        along_axes = self._transformed("normal_of_bits", shape, None, (means,)) * sqrt(maximum(variances, 0.0))
        return matmul(along_axes, axes.mT) + means

    # ---- of gamma numbers ----

    def standard_gamma(self, shape: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the gamma distribution of this shape and scale 1. Draws 25 times as many numbers."""
        return self.gamma(shape, 1.0, size, dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of the gamma distribution of this shape and scale, as `standard_gamma` does."""
        wanted, dims = float_dtype(dtype), drawn_shape(size, shape, scale)
        check_not_negative("shape", shape)
        check_not_negative("scale", scale)
        return moved(self._gammas(dims, shape, (shape, scale)), 0.0, scale, wanted)

    def chisquare(self, df: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns sums of the squares of `df` normal numbers."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, df)
        check_positive("df", df)
        return astype(self._squares(shape, df, (df,)), wanted, copy=False)

    def standard_t(self, df: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of Student's distribution with `df` degrees of freedom."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, df)
        check_positive("df", df)
        normal = self._transformed("normal_of_bits", shape, None, (df,))
        return astype(normal / sqrt(self._squares(shape, df, (df,)) / parameter(df)), wanted, copy=False)

    def f(self, dfnum: Any, dfden: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns quotients of two `chisquare` numbers, each divided by its degrees of freedom."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, dfnum, dfden)
        check_positive("dfnum", dfnum)
        check_positive("dfden", dfden)
        above, below = (self._squares(shape, df, (dfnum, dfden)) / parameter(df) for df in (dfnum, dfden))
        quotient: Array = above / below
        return astype(quotient, wanted, copy=False)

    def beta(self, a: Any, b: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns numbers of [0, 1] of the beta distribution: the share of one gamma number in the sum of two."""
        wanted, shape = float_dtype(dtype), drawn_shape(size, a, b)
        check_positive("a", a)
        check_positive("b", b)
        one, other = (self._gammas(shape, each, (a, b)) for each in (a, b))
        return astype(one / (one + other), wanted, copy=False)

    def dirichlet(self, alpha: Any, size: Size = None, dtype: Any = None) -> Array:
        """Returns vectors of the Dirichlet distribution along the last axis: gamma numbers divided by their sum."""
        wanted, parameters = float_dtype(dtype), array_beside(alpha, self._key)
        if parameters.ndim != 1:
            raise ShapeError(f"dirichlet takes a vector, not rank {parameters.ndim}")
        check_not_negative("alpha", alpha)
        drawn = self._gammas((*drawn_shape(size), parameters.size), parameters, (parameters,))
        return astype(drawn / drawn.sum(-1, keepdims=True), wanted, copy=False)

    def _exponentials(self, shape: Shape, beside: Any) -> Array:
        return self._transformed("exponential_of_bits", shape, None, (beside,))

    def _squares(self, shape: Shape, df: Any, beside: tuple[Any, ...]) -> Array:
        return self._gammas(shape, parameter(df) / 2.0, beside) * 2.0

    def _gammas(self, shape: Shape, a: Any, beside: tuple[Any, ...]) -> Array:
        """Returns gamma numbers in float64, by Marsaglia and Tsang (2000): the first of several tries that is accepted.

        Below shape 1, a number of shape `a` + 1 is multiplied by the power 1 / `a` of a uniform one.
        """
        given = array_beside(a, *beside, self._key)
        is_small = less(given, 1.0)
        most = astype(where(is_small, given + 1.0, given), dtypes.float64, copy=False) - 1.0 / 3.0
        tries = (_TRIES, *shape)
        normal = self._transformed("normal_of_bits", tries, None, beside)
        root = 1.0 + normal / sqrt(most * 9.0)
        cube = where(root > 0, root * root * root, 1.0)
        bound = normal * normal * 0.5 + most * (1.0 - cube + log(cube))
        accepted = (root > 0) & (self._transformed("exponential_of_bits", tries, None, beside) > -bound)
        number = first_accepted(accepted, cube) * most
        part = exp(-self._transformed("exponential_of_bits", shape, None, beside) / given)
        return where(is_small, number * part, number)
