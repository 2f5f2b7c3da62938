"""Derivatives of gamma and beta numbers with respect to their shape, for the gradients of `rsample`.

A number x of distribution function F and density f is a function of its shape a at a fixed probability, whose
derivative is −(dF/da) / f (Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018). F is a power
series, which is derived term by term (as by Moore, Algorithm AS 187, 1982). For large shapes it would be long, and
Rice's saddle-point expansion takes its place: the formulas that PyTorch has too (ATen/native/Distributions.h).
"""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.kernels.elementwise.special import digamma
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

_TERMS = 160
_LARGE_NUMBER = 13.0  # from where the terms of the power series, which are as large as e^x, cancel
_TERMS_OF_TAIL = 16
_LARGE_GAMMA, _LARGE_BETA = 8.0, 6.0  # shapes from where the expansion is near
_LEAST_SPREAD = 2.5  # of total · x · (1 − x), for the expansion


@TABLE.value("_standard_gamma_grad")
def _gamma_gradient(shape: torch.Tensor, drawn: torch.Tensor) -> Array:
    a, x = _doubles(shape), _above_zero(_doubles(drawn))
    is_large = fw.logical_and(a > _LARGE_GAMMA, x > 1)
    small = fw.where(x > _LARGE_NUMBER, _tail_of_gamma(x, a), _small_gamma(x, a))
    return fw.where(is_large, _large_gamma(x, a), small).astype(fusewire_of(shape.dtype))


@TABLE.value("_dirichlet_grad")
def _beta_gradient(drawn: torch.Tensor, shape: torch.Tensor, total: torch.Tensor) -> Array:
    """Returns the derivative of x with respect to a, divided by 1 − x, which is how PyTorch's Dirichlet takes it."""
    x, a, both = _above_zero(_doubles(drawn)), _doubles(shape), _doubles(total)
    b = both - a
    is_large = fw.logical_and(fw.minimum(a, b) > _LARGE_BETA, both * x * (1 - x) > _LEAST_SPREAD)
    is_right = x > a / both
    small = fw.where(_is_in_tail_of_beta(x, a, b, is_right), _tail_of_beta(x, a, b, is_right), _small_beta(x, a, b))
    found = fw.where(is_large, _large_beta(x, a, b), small)
    return found.astype(fusewire_of(drawn.dtype))


def _doubles(tensor: torch.Tensor) -> Array:
    return array_of(tensor).astype("float64")


def _above_zero(x: Array) -> Array:
    return fw.maximum(x, torch.finfo(torch.float64).tiny)


def _small_gamma(x: Array, a: Array) -> Array:
    """By F = x^a exp(−x) · Σ x^n / Γ(a + n + 1)."""
    below = a + _numbers(x)
    terms, logarithms = fw.cumulative_prod(x / below, axis=0), fw.cumulative_sum(1 / below, axis=0)
    first = fw.log(x) - digamma(a + 1)
    return -x / a * (first + fw.sum(terms * (first - logarithms), axis=0))


def _tail_of_gamma(x: Array, a: Array) -> Array:
    """By 1 − F = f · Σ (a − 1) (a − 2) … (a − n) / x^n, which is asymptotic for large x."""
    one = fw.ones_like(x)
    term, total = one, one
    slope = slopes = fw.zeros_like(x)
    for number in range(1, _TERMS_OF_TAIL + 1):
        slope = (slope * (a - number) + term) / x
        term = term * (a - number) / x
        total, slopes = total + term, slopes + slope
    return (fw.log(x) - digamma(a)) * total + slopes


def _small_beta(x: Array, a: Array, b: Array) -> Array:
    """By F = x^a (1 − x)^b Γ(a + b) / Γ(b) · Σ Γ(a + b + n) x^n / (Γ(a + b) Γ(a + n + 1)), or by 1 − F from 1 on."""
    is_left = x <= 0.5
    near, shape = fw.where(is_left, x, 1 - x), fw.where(is_left, a, b)
    number = _numbers(x)
    above, below = a + b + number - 1, shape + number
    terms = fw.cumulative_prod(near * above / below, axis=0)
    logarithms = fw.cumulative_sum(1 / above - fw.where(is_left, 1 / below, 0.0), axis=0)
    first = fw.log(x) + digamma(a + b) - digamma(fw.where(is_left, a + 1, a))
    return fw.where(is_left, -x, x) / shape * (first + fw.sum(terms * (first + logarithms), axis=0))


def _is_in_tail_of_beta(x: Array, a: Array, b: Array, is_right: Array) -> Any:
    """Returns where F, or 1 − F, is so near to 1 that its series cancels."""
    return fw.where(is_right, b * x, a * (1 - x)) > _LARGE_NUMBER * fw.where(is_right, 1 - x, x)


def _tail_of_beta(x: Array, a: Array, b: Array, is_right: Array) -> Any:
    """By 1 − F = f (1 − x) / b · Σ (a − 1) … (a − n) / ((b + 1) … (b + n)) · ((1 − x) / x)^n, or as F on the left."""
    odds = fw.where(is_right, (1 - x) / x, x / (1 - x))
    falling, rising = fw.where(is_right, a, b), fw.where(is_right, b, a)
    one, none = fw.ones_like(x), fw.zeros_like(x)
    term, total, slope, slopes = one, one, none, none
    for number in range(1, _TERMS_OF_TAIL + 1):
        step = odds / (rising + number)
        factor = (falling - number) * step
        slope = slope * factor + term * fw.where(is_right, step, -factor / (rising + number))
        term = term * factor
        total, slopes = total + term, slopes + slope
    first = fw.log(x) + digamma(a + b) - digamma(fw.where(is_right, a, a + 1))
    return fw.where(is_right, 1 / b, -x / ((1 - x) * a)) * (first * total + slopes)


def _numbers(beside: Array) -> Array:
    """Returns the numbers of the terms from 1 on, along an axis before those of `beside`."""
    numbers = fw.arange(1, _TERMS + 1, dtype="float64", device=beside.session)
    return numbers.reshape((_TERMS,) + (1,) * beside.ndim)


def _large_gamma(x: Array, a: Array) -> Array:
    middle = (1 + 24 * a * (1 + 12 * a)) / (1244160 * a**4)
    middle = middle * (1440 * a * a + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x))
    distance, ratio, scale = a - x, fw.log(x / a), fw.sqrt(8 * a)
    root = _minus_three_halves(x - a - a * ratio)
    away = ratio * (scale / distance + fw.where(distance > 0, -root, root))
    away = away - fw.sqrt(2 / a) * (a + x) / (distance * distance)
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return fw.where(fw.abs(distance) <= 0.1 * a, middle, -stirling * x * away / scale)


def _large_beta(x: Array, a: Array, b: Array) -> Array:
    total, y = a + b, 1 - x
    mean = a / total
    deviation = fw.sqrt(a * b / (total + 1)) / total
    is_middle = fw.abs(x - mean) <= 0.1 * deviation
    return fw.where(is_middle, _middle_beta(x, a, b), _away_beta(x, y, a, b, mean))


def _middle_beta(x: Array, a: Array, b: Array) -> Any:
    total = a + b
    of_fourth = 8 * (1 - x) * (135 * b - 11)
    of_third = (453 + 1620 * b * (1 - x) - 455 * x) * b
    of_second = 3 * (59 + 180 * b - 90 * x) * b**2
    of_first = (43 + 20 * (16 + 27 * b) * x) * b**3
    polynomial = 47 * x * b**4 + a * (of_first + a * (of_second + a * (of_third + a * of_fourth)))
    above = (1 + 12 * a) * (1 + 12 * b) / (total * total)
    return above / (1 - x) * polynomial / (12960 * a**3 * b**2 * (1 + 12 * total))


def _away_beta(x: Array, y: Array, a: Array, b: Array, mean: Array) -> Any:
    total, distance = a + b, b * x - a * y
    stirling = _stirling(a) * _stirling(b) / _stirling(total)
    flat = -(2 * a * a * y + a * b * y + x * b * b) / (fw.sqrt(2 * a / b) * total**1.5 * distance * distance)
    root = _minus_three_halves(b * fw.log(b / (total * y)) + a * fw.log(mean / x))
    steep = fw.sqrt(8 * a * b / total) / distance + fw.where(x < mean, root, -root)
    return -stirling * x / fw.sqrt(2 * a * b / total) * (flat + 0.5 * fw.log(mean / x) * steep)


def _minus_three_halves(x: Array) -> Any:
    return 1 / (x * fw.sqrt(x))


def _stirling(a: Array) -> Any:
    return 1 + 1 / (12 * a) + 1 / (288 * a * a)
