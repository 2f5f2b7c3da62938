"""Functions of complex numbers that are no ops of Fusewire, as formulas of those that are."""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import Any

import fusewire as fw


def of_both(of_reals: Callable[..., Any], of_complex: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that is one of real numbers, and the other of complex ones."""

    def compute(*operands: Any) -> Any:
        is_complex = any(isinstance(each, fw.Array) and each.dtype.is_complex for each in operands)
        return (of_complex if is_complex else of_reals)(*operands)

    return compute


def rsqrt(z: Any) -> Any:
    return fw.reciprocal(fw.sqrt(z))


def exp2(z: Any) -> Any:
    return fw.exp(z * log(2))


def sigmoid(z: Any) -> Any:
    return fw.reciprocal(1 + fw.exp(-z))


def silu(z: Any) -> Any:
    return z * sigmoid(z)


def sinc(z: Any) -> Any:
    is_zero = z == 0
    turned = fw.where(is_zero, 1.0, pi * z)
    return fw.where(is_zero, 1.0, fw.sin(turned) / turned)


def logaddexp(x: Any, y: Any) -> Any:
    """Returns log(exp(x) + exp(y)), whose operands are compared by their real parts."""
    is_greater = fw.real(x) >= fw.real(y)
    greater, lesser = fw.where(is_greater, x, y), fw.where(is_greater, y, x)
    return greater + fw.log1p(fw.exp(lesser - greater))


def logsumexp(z: Any, axis: Any, *, keepdims: bool) -> Any:
    """Returns log of the sum of exp(z) along axes, of numbers made smaller by the greatest real part."""
    greatest = fw.max(fw.real(z), axis=axis, keepdims=True)
    shift = fw.where(fw.isfinite(greatest), greatest, 0.0)
    total = fw.log(fw.sum(fw.exp(z - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else fw.sum(total, axis=axis)
