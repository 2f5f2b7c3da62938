"""Derivatives of pointwise ops.

Where the lesser or greater of two elements is chosen and both are equal, each gets half of the cotangent: so neither
operand is preferred, and the sum is right. An element at a bound of `clip` counts as within. The derivatives of `abs`
and `relu` at 0 are 0.
"""

from __future__ import annotations

from math import e, log2, log10, nan, pi
from math import log as log_of_number
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue import catalogued as fw
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use

_LOG_2 = log_of_number(2)


def _through(g: Any, use: Use) -> Any:
    return g


def _of_quotient(g: Any, use: Use) -> Any:
    return -g * use.result / use.operand(1)


def _of_base(g: Any, use: Use) -> Any:
    base, exponent = use.operand(0), use.operand(1)
    if not isinstance(exponent, Array):
        return g * (exponent * base ** (exponent - 1)) if exponent else g * 0.0
    lower = where(exponent == 0, 0.0, exponent - 1.0)  # no infinity, which the factor of 0 would make a NaN
    return g * (exponent * base**lower)


def _of_exponent(g: Any, use: Use) -> Any:
    base = use.operand(0)
    if not isinstance(base, Array):
        return g * use.result * (log_of_number(base) if base > 0 else 0.0 if base == 0 else nan)
    return g * use.result * fw.log(where(base == 0, 1.0, base))


def _chosen(g: Any, prefers: Any, equals: Any) -> Any:
    return where(prefers, g, where(equals, g * 0.5, 0.0))


def _of_maximum(own: int) -> Any:
    def pull(g: Any, use: Use) -> Any:
        x, other = use.operand(own), use.operand(1 - own)
        return _chosen(g, x > other, x == other)

    return pull


def _of_minimum(own: int) -> Any:
    def pull(g: Any, use: Use) -> Any:
        x, other = use.operand(own), use.operand(1 - own)
        return _chosen(g, x < other, x == other)

    return pull


def _squared_radius(use: Use) -> Any:
    y, x = use.operand(0), use.operand(1)
    return y * y + x * x


def _clipped(g: Any, use: Use) -> Any:
    x, least, most = map(use.operand, range(3))
    return where((x >= least) & (x <= most), g, 0.0)


def _of_least(g: Any, use: Use) -> Any:
    x, least, most = map(use.operand, range(3))
    return where((x < least) & (least <= most), g, 0.0)


def _of_most(g: Any, use: Use) -> Any:
    x, least, most = map(use.operand, range(3))
    return where((x > most) | (least > most), g, 0.0)


def _of_gelu(g: Any, use: Use) -> Any:
    x = use.operand(0)
    return g * (0.5 * (1 + fw.erf(x * 0.5**0.5)) + x * fw.exp(x * x * -0.5) * (2 * pi) ** -0.5)


def _of_silu(g: Any, use: Use) -> Any:
    x = use.operand(0)
    s = fw.sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


def _by_operand(derivative: Any) -> Rule:
    """Returns the rule of an op of one operand, by its derivative there."""
    return Rule((lambda g, use: g * derivative(use.operand(0)),), operands=True)


def _by_result(derivative: Any) -> Rule:
    """Returns the rule of an op of one operand, by its derivative in terms of the result."""
    return Rule((lambda g, use: g * derivative(use.result),), result=True)


POINTWISE = {
    "add": Rule((_through, _through)),
    "subtract": Rule((_through, lambda g, use: -g)),
    "multiply": Rule((lambda g, use: g * use.operand(1), lambda g, use: g * use.operand(0)), ((1,), (0,))),
    "divide": Rule((lambda g, use: g / use.operand(1), _of_quotient), ((1,), (1,)), result=True),
    "remainder": Rule(
        (_through, lambda g, use: -g * fw.floor_divide(use.operand(0), use.operand(1))), operands=((), (0, 1))
    ),
    "power": Rule((_of_base, _of_exponent), operands=True, result=True),
    "minimum": Rule((_of_minimum(0), _of_minimum(1)), operands=True),
    "maximum": Rule((_of_maximum(0), _of_maximum(1)), operands=True),
    "atan2": Rule(
        (
            lambda g, use: g * (use.operand(1) / _squared_radius(use)),
            lambda g, use: -g * (use.operand(0) / _squared_radius(use)),
        ),
        operands=True,
    ),
    "clip": Rule((_clipped, _of_least, _of_most), operands=True),
    "where": Rule(
        (
            None,
            lambda g, use: where(use.operand(0), g, 0.0),
            lambda g, use: where(use.operand(0), 0.0, g),
        ),
        operands=((), (0,), (0,)),
    ),
    "negative": Rule((lambda g, use: -g,)),
    "abs": _by_operand(fw.sign),
    "square": _by_operand(lambda x: x * 2),
    "sqrt": Rule((lambda g, use: g * 0.5 / use.result,), result=True),
    "rsqrt": _by_result(lambda y: y * y * y * -0.5),
    "exp": _by_result(lambda y: y),
    "expm1": _by_result(lambda y: y + 1),
    "log": Rule((lambda g, use: g / use.operand(0),), operands=True),
    "log1p": Rule((lambda g, use: g / (use.operand(0) + 1),), operands=True),
    "exp2": _by_result(lambda y: y * _LOG_2),
    "log2": Rule((lambda g, use: g * log2(e) / use.operand(0),), operands=True),
    "log10": Rule((lambda g, use: g * log10(e) / use.operand(0),), operands=True),
    "sin": _by_operand(fw.cos),
    "cos": _by_operand(lambda x: -fw.sin(x)),
    "tan": _by_result(lambda y: y * y + 1),
    "tanh": _by_result(lambda y: 1 - y * y),
    "sigmoid": _by_result(lambda y: y * (1 - y)),
    "relu": Rule((lambda g, use: where(use.operand(0) > 0, g, 0.0),), operands=True),
    "gelu": Rule((_of_gelu,), operands=True),
    "silu": Rule((_of_silu,), operands=True),
    "softplus": _by_operand(fw.sigmoid),
    "erf": _by_operand(lambda x: fw.exp(-x * x) * (2 * pi**-0.5)),
    "astype": Rule((_through,)),
}
