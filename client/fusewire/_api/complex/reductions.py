"""Reductions of complex numbers that do not apply to each part by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fusewire._api.catalogue.catalogued import sqrt
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.ops.filled import filled
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import reduce as reduced_shape


def var(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Returns the mean of |z − mean|², which is the sum of the variances of both parts."""
    x, correction = operands
    real, imag = (apply(op, (part, correction), attributes) for part in x.parts)
    return real + imag


def std(_op: Op, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return sqrt(var(BY_NAME["var"], operands, attributes, starts))


def prod(_op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records a product along axes: each step multiplies one half of the elements with the other."""
    (x,), (axes, keepdims) = operands, attributes
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [x.shape[axis] for axis in kept]
    left = x.transpose([*kept, *axes]).reshape(*shape, math.prod(x.shape[axis] for axis in axes))
    if not left.shape[-1]:
        left = filled(x.session, (*shape, 1), 1.0, x.dtype)
    while left.shape[-1] > 1:
        half = left.shape[-1] // 2
        product = left[..., :half] * left[..., half : 2 * half]
        left = concat([product, left[..., 2 * half :]], axis=-1) if left.shape[-1] % 2 else product
    return left.reshape(reduced_shape(x.shape, axes, keepdims=keepdims))


def cumulative_prod(_op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the products of the first elements: each step multiplies by the product that ends where its own begins.

    The algorithm is that of Hillis and Steele (Data parallel algorithms, Communications of the ACM 29, 1986).
    """
    (x,), (axis,) = operands, attributes
    products, reach, before = x.copy(), 1, (slice(None),) * axis
    while reach < x.shape[axis]:
        later = products[*before, reach:] * products[*before, :-reach]
        products = concat([products[*before, :reach], later], axis=axis)
        reach *= 2
    return products
