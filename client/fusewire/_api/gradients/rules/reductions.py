"""Derivatives of reductions, and of the ops that normalise along axes.

Elements that are equally the least or the greatest share the cotangent, so that the order of elements does not matter.
The derivative of `prod` divides by no element, so that it is right where elements are 0.
"""

from __future__ import annotations

from math import nan, prod
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue import catalogued as fw
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.gradients.rules.parts import flipped, full_beside, joined, kept_dims, scanned
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.ops import operations


def _kept(reduced: Any, use: Use) -> Any:
    """Returns a result of the reduction with its axes kept."""
    return operations.reshape(reduced, kept_dims(use.spec(0).shape, use.attributes[0]))


def _spread(reduced: Any, use: Use) -> Any:
    return operations.broadcast_to(_kept(reduced, use), use.spec(0).shape)


def _count(use: Use) -> int:
    return prod([use.spec(0).shape[axis] for axis in use.attributes[0]])


def _mean_along(x: Any, use: Use) -> Any:
    return operations.reduce("mean", x, use.attributes[0], keepdims=True)


def _sum_along(x: Any, use: Use) -> Any:
    return operations.reduce("sum", x, use.attributes[0], keepdims=True)


def _of_extreme(g: Any, use: Use) -> Any:
    is_extreme = use.operand(0) == _kept(use.result, use)
    return where(is_extreme, _kept(g, use) / _sum_along(is_extreme, use).astype(g.dtype), 0.0)


def _of_prod(g: Any, use: Use) -> Any:
    x, axes = use.operand(0), use.attributes[0]
    order = [*[axis for axis in range(x.ndim) if axis not in axes], *axes]
    ahead = [x.shape[axis] for axis in order[: x.ndim - len(axes)]]
    lines = operations.reshape(operations.transpose(x, order), (*ahead, _count(use)))
    others = _before(lines) * flipped(_before(flipped(lines, len(ahead))), len(ahead))
    parted = operations.reshape(others, [x.shape[axis] for axis in order])
    return _kept(g, use) * operations.transpose(parted, [order.index(axis) for axis in range(x.ndim)])


def _before(lines: Any) -> Any:
    """Returns for each element the product of those before it along the last axis."""
    *ahead, count = lines.shape
    if not count:
        return lines
    products = scanned("cumulative_prod", lines, len(ahead))
    return joined([full_beside(lines, (*ahead, 1), 1.0), products[..., :-1]], len(ahead))


def _degrees(use: Use) -> Any:
    """Returns the number by which var and std divide; NaN if it is not positive."""
    correction = use.operand(1)
    if isinstance(correction, Array):
        return _count(use) - correction
    degrees = _count(use) - correction
    return degrees if degrees > 0 else nan


def _of_var(g: Any, use: Use) -> Any:
    x = use.operand(0)
    return _kept(g, use) * 2 * (x - _mean_along(x, use)) / _degrees(use)


def _of_std(g: Any, use: Use) -> Any:
    x = use.operand(0)
    return _kept(g / use.result, use) * (x - _mean_along(x, use)) / _degrees(use)


def _of_softmax(g: Any, use: Use) -> Any:
    y = use.result
    return y * (g - _sum_along(g * y, use))


def _of_log_softmax(g: Any, use: Use) -> Any:
    return g - fw.exp(use.result) * _sum_along(g, use)


def _of_layer_norm(g: Any, use: Use) -> Any:
    x, y = use.operand(0), use.result
    axes = use.attributes[0]
    scale = fw.rsqrt(operations.reduce("var", x, axes, keepdims=True, scalars=(0.0,)) + use.operand(1))
    return (g - _mean_along(g, use) - y * _mean_along(g * y, use)) * scale


REDUCTIONS = {
    "sum": Rule((_spread,)),
    "prod": Rule((_of_prod,), operands=True),
    "min": Rule((_of_extreme,), operands=True, result=True),
    "max": Rule((_of_extreme,), operands=True, result=True),
    "mean": Rule((lambda g, use: _spread(g / _count(use), use),)),
    "var": Rule((_of_var, None), operands=True),
    "std": Rule((_of_std, None), operands=True, result=True),
    "logsumexp": Rule(
        (lambda g, use: _kept(g, use) * operations.along("softmax", use.operand(0), use.attributes[0]),), operands=True
    ),
    "softmax": Rule((_of_softmax,), result=True),
    "log_softmax": Rule((_of_log_softmax,), result=True),
    "layer_norm": Rule((_of_layer_norm, None), operands=True, result=True),
}
