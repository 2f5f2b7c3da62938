"""The derivative of the matrix product, also of vectors and batches."""

from __future__ import annotations

from math import prod
from typing import Any

from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.ops import operations


def _as_rows(a: Any) -> Any:
    return operations.reshape(a, (1, *a.shape)) if a.ndim == 1 else a


def _as_columns(b: Any) -> Any:
    return operations.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b


def _of_matrices(g: Any, use: Use) -> Any:
    """Returns the cotangent with the axes that the products of vectors lack."""
    left, right = use.spec(0).shape, use.spec(1).shape
    dims = list(g.shape)
    if len(right) == 1:
        dims.append(1)
    if len(left) == 1:
        dims.insert(len(dims) - 1, 1)
    return operations.reshape(g, dims)


def _of_left(g: Any, use: Use) -> Any:
    g, b = _of_matrices(g, use), _as_columns(use.operand(1))
    if len(use.spec(0).shape) <= 2 and b.ndim > 2 and g.shape[-2] > g.shape[-1]:
        found = _of_shared_left(g, b)
    else:
        found = g @ b.mT
    return operations.reshape(found, (*found.shape[:-2], found.shape[-1])) if len(use.spec(0).shape) == 1 else found


def _of_shared_left(g: Any, b: Any) -> Any:
    """Returns the sum of the products for a batch as one product, because together they are larger than operands."""
    *batch, rows, columns = range(g.ndim)
    summed = prod(g.shape[:-2]) * g.shape[-1]
    along_rows = operations.reshape(operations.transpose(g, (rows, *batch, columns)), (g.shape[-2], summed))
    return along_rows @ operations.reshape(b.mT, (summed, b.shape[-2]))


def _of_right(g: Any, use: Use) -> Any:
    a, g = _as_rows(use.operand(0)), _of_matrices(g, use)
    if len(use.spec(1).shape) <= 2 and a.ndim > 2:  # one product in place of a batch of them and their sum
        a, g = (operations.reshape(each, (prod(each.shape[:-1]), each.shape[-1])) for each in (a, g))
    found = a.mT @ g
    return operations.reshape(found, found.shape[:-1]) if len(use.spec(1).shape) == 1 else found


PRODUCTS = {"matmul": Rule((_of_left, _of_right), ((1,), (0,)))}
