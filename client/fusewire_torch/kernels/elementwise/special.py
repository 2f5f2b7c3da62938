"""Special functions that are no ops of Fusewire. Each names the source of its formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, factorial, log, pi, sqrt
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.elementwise.pointwise import elementwise, in_single
from fusewire_torch.promotion import Kind
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

# Lanczos's approximation of the gamma function with g = 7: coefficients of Godfrey.
_LANCZOS = (
    (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059)
    + (12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
)  # fmt: skip
# Chebyshev's coefficients of erfc: Press et al., Numerical Recipes, third edition, section 6.2.2.
_ERFC = (
    (-1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4)
    + (3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.303655835580e-6)
    + (1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10)
    + (9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15)
    + (-1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17)
)  # fmt: skip
# The first guess of the inverse of erf, near and far from the middle: Giles, Approximating the erfinv function, 2010.
_ERFINV_NEAR = (
    (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087)
    + (-0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
)  # fmt: skip
_ERFINV_FAR = (
    (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773)
    + (-0.0076224613, 0.00943887047, 1.00167406, 2.83297682)
)  # fmt: skip
# B(2j) / (2j)! of Bernoulli's numbers B, for the formula of Euler and Maclaurin.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
_ZETA_TERMS = 20  # sums so many terms as they are, which brings operands above -9 to where the formula is exact
_DIGAMMA_STEPS = 8


def _polynomial(coefficients: Sequence[float], x: Array) -> Any:
    """Returns the value of a polynomial, the highest power first, by Horner's scheme."""
    value: Any = coefficients[0]
    for each in coefficients[1:]:
        value = value * x + each
    return value


def _lgamma(x: Array) -> Array:
    is_mirrored = x < 0.5
    right = fw.where(is_mirrored, 1 - x, x) - 1
    total: Any = _LANCZOS[0]
    for number, coefficient in enumerate(_LANCZOS[1:], start=1):
        total = total + coefficient / (right + number)
    base = right + 7.5
    value = (right + 0.5) * fw.log(base) - base + fw.log(total) + 0.5 * log(2 * pi)
    mirrored = log(pi) - fw.log(fw.abs(fw.sin(pi * (x - fw.floor(x))))) - value
    return fw.where(fw.isinf(x), fw.inf, fw.where(is_mirrored, mirrored, value))


def digamma(x: Array) -> Array:
    """Returns the derivative of lgamma by its recurrence and its series for great operands (Abramowitz, 6.3)."""
    is_mirrored = x < 0
    right = fw.where(is_mirrored, 1 - x, x)
    steps: Any = 0.0
    for number in range(_DIGAMMA_STEPS):
        steps = steps + 1 / (right + number)
    great = right + _DIGAMMA_STEPS
    square = 1 / (great * great)
    series = _polynomial((1 / 240, -1 / 252, 1 / 120, -1 / 12), square) * square
    value = fw.log(great) - 0.5 / great + series - steps
    mirrored = value - pi / fw.tan(pi * (x - fw.ceil(x)))
    at_pole = fw.logical_and(is_mirrored, x == fw.floor(x))
    found = fw.where(at_pole, fw.nan, fw.where(is_mirrored, mirrored, value))
    return fw.where(x == 0, fw.copysign(fw.inf, -x), found)


def _scaled_erfc_of_positive(z: Array) -> Array:
    """Returns exp(z * z) * erfc(z) for z >= 0, by Clenshaw's sum."""
    t = 2 / (2 + z)
    argument = 4 * t - 2
    current, before = fw.zeros_like(z), fw.zeros_like(z)
    for coefficient in reversed(_ERFC[1:]):
        current, before = argument * current - before + coefficient, current
    return t * fw.exp(0.5 * (_ERFC[0] + argument * current) - before)


def _erfc(x: Array) -> Array:
    z = fw.abs(x)
    right = _scaled_erfc_of_positive(z) * fw.exp(-z * z)
    return fw.where(z < 0.5, 1 - fw.erf(x), fw.where(x < 0, 2 - right, right))


def _erfcx(x: Array) -> Array:
    right = _scaled_erfc_of_positive(fw.abs(x))
    return fw.where(x < 0, 2 * fw.exp(x * x) - right, right)


def _erfinv(x: Array) -> Array:
    """Returns the inverse of erf: a guess and two steps of Newton."""
    w = -fw.log((1 - x) * (1 + x))
    near = _polynomial(_ERFINV_NEAR, w - 2.5)
    far = _polynomial(_ERFINV_FAR, fw.sqrt(fw.maximum(w, 5.0)) - 3)
    guess = fw.where(w < 5, near, far) * x
    for _ in range(2):
        guess = guess - (fw.erf(guess) - x) / (2 / sqrt(pi) * fw.exp(-guess * guess))
    return fw.where(fw.abs(x) == 1, fw.copysign(fw.inf, x), guess)


def _ndtri(x: Array) -> Array:
    return sqrt(2) * _erfinv(2 * x - 1)


def _zeta(s: Any, q: Any) -> Any:
    """Returns Hurwitz's zeta function, the sum of (q + k) ** -s, by the formula of Euler and Maclaurin."""
    total: Any = 0.0
    for number in range(_ZETA_TERMS):
        total = total + (q + number) ** (-s)
    end = q + _ZETA_TERMS
    total = total + end ** (1 - s) / (s - 1) + 0.5 * end ** (-s)
    factor, power = s, end ** (-s - 1)
    for number, coefficient in enumerate(_BERNOULLI):
        total = total + coefficient * factor * power
        factor = factor * (s + 2 * number + 1) * (s + 2 * number + 2)
        power = power / (end * end)
    found = fw.where(fw.logical_and(q <= 0, q == fw.floor(q)), fw.inf, total)
    found = fw.where(fw.logical_and(q < 0, s != fw.floor(s)), fw.nan, found)
    return fw.where(s == 1, fw.inf, fw.where(s < 1, fw.nan, found))


def bessel_i(order: int, *, is_scaled: bool) -> Callable[[Array], Array]:
    """Returns the modified Bessel function of the first kind of an order, times exp(-|x|) if it is scaled.

    It is the mean of exp(x * cos(t)) * cos(order * t), which the trapezoidal rule finds to all digits for small x
    (Trefethen and Weideman, 2014). For large x it is the asymptotic series (Abramowitz, 9.7.1), and for x near 0, where
    the terms of the mean cancel if the order is 1, the power series (9.6.10).
    """
    nodes = 24

    def compute(x: Array) -> Array:
        size = fw.abs(x)
        small = fw.minimum(size, 20.0)
        total: Any = 0.0
        for number in range(nodes + 1):
            angle = pi * number / nodes
            weight = (0.5 if number in (0, nodes) else 1.0) / nodes
            total = total + weight * cos(order * angle) * fw.exp(small * (cos(angle) - 1))
        great = fw.maximum(size, 20.0)
        term: Any = 1.0
        series: Any = 1.0
        for number in range(1, 12):
            term = term * (-(4 * order * order - (2 * number - 1) ** 2) / (8.0 * number)) / great
            series = series + term
        if order:
            least = fw.minimum(size, 1.0)
            powers = [1 / (factorial(k) * factorial(k + order)) for k in reversed(range(10))]
            tiny = (least / 2) ** order * _polynomial(powers, least * least / 4) * fw.exp(-least)
            total = fw.where(size < 1, tiny, total)
        scaled = fw.where(size < 20, total, series / fw.sqrt(2 * pi * great))
        value = scaled if is_scaled else scaled * fw.exp(size)
        return value * fw.sign(x) if order % 2 else value

    return compute


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lgamma": _lgamma,
    "digamma": digamma,
    "erfc": _erfc,
    "special_erfcx": _erfcx,
    "erfinv": _erfinv,
    "special_ndtri": _ndtri,
    "special_zeta": _zeta,
    "i0": bessel_i(0, is_scaled=False),
    "special_i0e": bessel_i(0, is_scaled=True),
    "special_i1": bessel_i(1, is_scaled=False),
    "special_i1e": bessel_i(1, is_scaled=True),
}
for _name, _function in _FUNCTIONS.items():
    TABLE.values[_name] = elementwise(in_single(_function), Kind.INT_TO_FLOAT)


@TABLE.value("polygamma")
def _polygamma(n: int, x: torch.Tensor) -> Array:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return elementwise(in_single(digamma), Kind.INT_TO_FLOAT)(x)
    scale = (-1.0) ** (n + 1) * factorial(n)
    return elementwise(in_single(lambda array: scale * _hurwitz_of_order(n + 1, array)), Kind.INT_TO_FLOAT)(x)


def _hurwitz_of_order(s: int, q: Array) -> Array:
    """Returns zeta for an integral order, which may be raised to powers by products."""
    total: Any = 0.0
    for number in range(_ZETA_TERMS):
        total = total + (q + number) ** (-s)
    end = q + _ZETA_TERMS
    total = total + end ** (1 - s) / (s - 1) + 0.5 * end ** (-s)
    factor, power = float(s), end ** (-s - 1)
    for number, coefficient in enumerate(_BERNOULLI):
        total = total + coefficient * factor * power
        factor *= (s + 2 * number + 1) * (s + 2 * number + 2)
        power = power / (end * end)
    return fw.asarray(total)


@TABLE.value("frexp.Tensor")
def _mantissa_and_exponent(x: torch.Tensor) -> tuple[Array, Array]:
    return fw.frexp(array_of(x))
