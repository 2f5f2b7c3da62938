"""Bessel functions of the orders 0 and 1.

They are integrals that the trapezoidal rule finds to all digits (Trefethen and Weideman, The exponentially convergent
trapezoidal rule, 2014), and for large operands asymptotic series (Abramowitz and Stegun, 9.2 and 9.7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, cosh, factorial, pi, sin
from typing import Any

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.elementwise.pointwise import elementwise, in_single
from fusewire_torch.kernels.elementwise.special import bessel_i
from fusewire_torch.promotion import Kind
from fusewire_torch.table import Table

TABLE = Table()

_EULER = 0.5772156649015329
_LARGE = 25.0  # from here on the asymptotic series of J and Y has all digits
_QUARTER = 36  # intervals of the rule on a quarter of a circle
_NEUMANN_TERMS = 32  # J of higher orders vanish for operands below _LARGE
_ASYMPTOTIC_TERMS = 24
_SMALL_K = 2.0
_K_STEP, _K_NODES = 0.1, 40  # enough between _SMALL_K and _LARGE
_K_TERMS = 16


def _nodes() -> list[tuple[float, float]]:
    """Returns angles on a quarter of a circle, with what part of all nodes of the circle is symmetrical to each."""
    nodes = []
    for number in range(_QUARTER + 1):
        share = (0.5 if number in (0, _QUARTER) else 1.0) / _QUARTER
        nodes.append((pi / 2 * number / _QUARTER, share))
    return nodes


def _even(x: Array, weight: Callable[[float], float]) -> Any:
    """Returns the mean of cos(x sin t) · weight(t), for weights that are alike in all quarters of the circle."""
    total: Any = 0.0
    for angle, share in _nodes():
        total = total + share * weight(angle) * fw.cos(x * sin(angle))
    return total


def _odd(x: Array, weight: Callable[[float], float]) -> Any:
    """Returns the mean of sin(x sin t) · weight(t), for weights that have the sign of sin t in each half."""
    total: Any = 0.0
    for angle, share in _nodes():
        total = total + share * weight(angle) * fw.sin(x * sin(angle))
    return total


def _neumann_even(angle: float) -> float:
    """Returns the weight with which the mean is the sum of (−1)ᵏ J₂ₖ / k."""
    return sum((-1.0) ** k / k * cos(2 * k * angle) for k in range(1, _NEUMANN_TERMS))


def _neumann_odd(angle: float) -> float:
    """Returns the weight with which the mean is the sum of (−1)ᵏ (2k + 1) J₂ₖ₊₁ / (k (k + 1))."""
    return sum((-1.0) ** k * (2 * k + 1) / (k * (k + 1)) * sin((2 * k + 1) * angle) for k in range(1, _NEUMANN_TERMS))


def _asymptotic(order: int, x: Array) -> tuple[Any, Any]:
    """Returns J and Y of a large operand by Hankel's series (9.2.5 to 9.2.10)."""
    p, q, term = fw.zeros_like(x), fw.zeros_like(x), fw.ones_like(x)
    for number in range(_ASYMPTOTIC_TERMS):
        sign = -1 if number // 2 % 2 else 1
        if number % 2:
            q = q + sign * term
        else:
            p = p + sign * term
        term = term * ((4 * order * order - (2 * number + 1) ** 2) / (8.0 * (number + 1))) / x
    phase = x - (order / 2 + 0.25) * pi
    cosine, sine, size = fw.cos(phase), fw.sin(phase), fw.sqrt(2 / (pi * x))
    return size * (p * cosine - q * sine), size * (p * sine + q * cosine)


def _j0(x: Array) -> Array:
    size = fw.abs(x)
    near = _even(fw.minimum(size, _LARGE), lambda _: 1.0)
    far, _ = _asymptotic(0, fw.maximum(size, _LARGE))
    return fw.where(size < _LARGE, near, fw.where(fw.isinf(size), 0.0, far))


def _j1(x: Array) -> Array:
    size = fw.abs(x)
    near = _odd(fw.minimum(size, _LARGE), sin)
    far, _ = _asymptotic(1, fw.maximum(size, _LARGE))
    return fw.sign(x) * fw.where(size < _LARGE, near, fw.where(fw.isinf(size), 0.0, far))


def _y(x: Array, order: int) -> Array:
    """Returns Y by Neumann's series (9.1.88). Of 0 it is −∞, of numbers below NaN."""
    near = fw.clip(x, 1e-30, _LARGE)
    logarithm = fw.log(near / 2) + _EULER
    if order:
        found = 2 / pi * ((logarithm - 1) * _odd(near, sin) - _odd(near, _neumann_odd))
        found = found - 2 / (pi * near) * _even(near, lambda _: 1.0)
    else:
        found = 2 / pi * (logarithm * _even(near, lambda _: 1.0) - 2 * _even(near, _neumann_even))
    _, far = _asymptotic(order, fw.maximum(x, _LARGE))
    value = fw.where(x < _LARGE, found, fw.where(fw.isinf(x), 0.0, far))
    return fw.where(x == 0, -fw.inf, fw.where(x < 0, fw.nan, value))


def _k(order: int, *, is_scaled: bool) -> Callable[[Array], Array]:
    """Returns the modified Bessel function of the second kind, times exp(x) if it is scaled.

    Small operands have its series (9.6.11, 9.6.13), large ones the asymptotic series (9.7.2), and others the integral
    of exp(−x cosh t) cosh(order · t) (9.6.24).
    """
    bessel = bessel_i(order, is_scaled=False)

    def compute(x: Array) -> Array:
        near, middle, far = fw.clip(x, 1e-30, _SMALL_K), fw.clip(x, _SMALL_K, _LARGE), fw.maximum(x, _LARGE)
        square = near * near / 4
        series = _horner(_k_coefficients(order), square)
        logarithm = fw.log(near / 2)
        small = 1 / near + logarithm * bessel(near) - near / 4 * series if order else series - logarithm * bessel(near)
        total: Any = 0.0
        for number in range(_K_NODES):
            t = _K_STEP * number
            weight = (0.5 if number == 0 else 1.0) * _K_STEP * cosh(order * t)
            total = total + weight * fw.exp(-middle * (cosh(t) - 1))
        scaled = fw.where(x < _LARGE, total, _scaled_k_of_large(order, far))
        if is_scaled:
            small = small * fw.exp(near)
        else:
            scaled = scaled * fw.exp(-fw.maximum(x, _SMALL_K))
        value = fw.where(x <= _SMALL_K, small, scaled)
        return fw.where(x == 0, fw.inf, fw.where(x < 0, fw.nan, value))

    return compute


def _scaled_k_of_large(order: int, x: Array) -> Any:
    term, total = fw.ones_like(x), fw.ones_like(x)
    for number in range(1, _ASYMPTOTIC_TERMS):
        term = term * ((4 * order * order - (2 * number - 1) ** 2) / (8.0 * number)) / x
        total = total + term
    return total / fw.sqrt(2 / pi * x)


def _k_coefficients(order: int) -> list[float]:
    """Returns those of the series' part without a logarithm, in powers of x² / 4, from the lowest on."""
    coefficients, psi = [], -_EULER
    for k in range(_K_TERMS):
        following = psi + 1 / (k + 1)
        if order:
            coefficients.append((psi + following) / (factorial(k) * factorial(k + 1)))
        else:
            coefficients.append(psi / factorial(k) ** 2)
        psi = following
    return coefficients


def _horner(coefficients: Sequence[float], x: Array) -> Any:
    value: Any = 0.0
    for each in reversed(coefficients):
        value = value * x + each
    return value


def _spherical_j0(x: Array) -> Array:
    """Returns sin(x) / x, by its series near 0."""
    size = fw.abs(x)
    square = x * x
    near = _horner([(-1) ** k / factorial(2 * k + 1) for k in range(7)], square)
    far = fw.sin(x) / fw.where(size < 0.5, 1.0, x)
    return fw.where(size < 0.5, near, fw.where(fw.isinf(x), 0.0, far))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "special_bessel_j0": _j0,
    "special_bessel_j1": _j1,
    "special_bessel_y0": lambda x: _y(x, 0),
    "special_bessel_y1": lambda x: _y(x, 1),
    "special_modified_bessel_i0": bessel_i(0, is_scaled=False),
    "special_modified_bessel_i1": bessel_i(1, is_scaled=False),
    "special_modified_bessel_k0": _k(0, is_scaled=False),
    "special_modified_bessel_k1": _k(1, is_scaled=False),
    "special_scaled_modified_bessel_k0": _k(0, is_scaled=True),
    "special_scaled_modified_bessel_k1": _k(1, is_scaled=True),
    "special_spherical_bessel_j0": _spherical_j0,
}
for _name, _function in _FUNCTIONS.items():
    TABLE.values[_name] = elementwise(in_single(_function), Kind.INT_TO_FLOAT)
