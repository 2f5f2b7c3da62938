"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.elementwise.pointwise import in_single
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("mm", "bmm", "mv", "dot")
def _product(x: torch.Tensor, y: torch.Tensor) -> Array:
    _check_same_dtype(x, y)
    return array_of(x) @ array_of(y)


@TABLE.value("addmm", "addmv", "baddbmm")
def _product_added(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Array:
    _check_same_dtype(x, y)
    return _with_bias(bias, array_of(x) @ array_of(y), beta, alpha)


def _with_bias(bias: torch.Tensor, product: Array, beta: Any, alpha: Any) -> Array:
    """Returns beta * bias + alpha * product. Of integers, the factors are integers too."""
    if not (product.dtype.is_floating or product.dtype.is_complex):
        beta, alpha = int(beta), int(alpha)
    if beta == 0:  # then NaNs of the bias do not count
        return product if alpha == 1 else product * alpha
    added = array_of(bias)
    if alpha == 1 and beta == 1:
        return product + added
    total: Array = in_single(lambda one, other: one * alpha + other * beta)(product, added)
    return total


@TABLE.value("linear")
def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Array:
    """Returns x · weightᵀ + bias. PyTorch would compose it of a view of the weight and a product."""
    _check_same_dtype(x, weight)
    array = array_of(x)
    product = _rows(array) @ array_of(weight).mT
    if bias is not None:
        product = product + array_of(bias)
    return product if array.ndim == 2 else product.reshape((*array.shape[:-1], product.shape[-1]))


@TABLE.value("linear_backward")
def _linear_backward(
    x: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, output_mask: Any
) -> tuple[Array | None, Array | None, Array | None]:
    array, given = array_of(x), array_of(grad)
    rows = _rows(given)
    to_x = to_weight = None
    if output_mask[0]:
        to_x = rows @ fw.conj(array_of(weight))
        to_x = to_x if array.ndim == 2 else to_x.reshape(array.shape)
    if output_mask[1]:
        to_weight = rows.mT @ _rows(fw.conj(array))
    return to_x, to_weight, fw.sum(rows, axis=0) if output_mask[2] else None


def _rows(array: Array) -> Array:
    return array if array.ndim == 2 else array.reshape((-1, array.shape[-1]))


@TABLE.value("addbmm")
def _products_summed(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Array:
    _check_same_dtype(x, y)
    product = fw.sum(array_of(x) @ array_of(y), axis=0).astype(array_of(x).dtype, copy=False)
    return _with_bias(bias, product, beta, alpha)


def _check_same_dtype(x: torch.Tensor, y: torch.Tensor) -> None:
    if x.dtype is not y.dtype:
        names = [str(each.dtype).removeprefix("torch.") for each in (x, y)]
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}")
