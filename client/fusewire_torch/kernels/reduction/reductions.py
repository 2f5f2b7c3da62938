"""Reductions along axes, and scans."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.kernels.complex import functions
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


def _axes(dim: Any) -> Any:
    """Returns the axes to reduce as NumPy names them: PyTorch's empty list means all."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def _summable(x: torch.Tensor, dtype: torch.dtype | None) -> Array:
    """Returns the elements in the dtype in which PyTorch sums them: integers and booleans in int64."""
    array = array_of(x)
    if dtype is None and (x.is_floating_point() or x.is_complex()):
        return array
    wanted = fusewire_of(dtype or torch.int64)
    return array if array.dtype is wanted else array.astype(wanted)


@TABLE.value("sum")
def _sum(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> Array:
    return fw.sum(_summable(x, dtype))


@TABLE.value("sum.dim_IntList")
def _sum_along(x: torch.Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Array:
    array = _summable(x, dtype)
    return fw.sum(array, axis=_axes(dim), keepdims=keepdim) if x.dim() else array


@TABLE.value("prod")
def _prod(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> Array:
    return fw.prod(_summable(x, dtype))


@TABLE.value("prod.dim_int")
def _prod_along(x: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Array:
    array = _summable(x, dtype)
    return fw.prod(array, axis=dim, keepdims=keepdim) if x.dim() else array


@TABLE.value("mean")
def _mean(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> Array:
    return _mean_along(x, None, dtype=dtype)


@TABLE.value("mean.dim")
def _mean_along(x: torch.Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Array:
    if not ((dtype or x.dtype).is_floating_point or (dtype or x.dtype).is_complex):
        kind = str(x.dtype).removeprefix("torch.")
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    array = array_of(x) if dtype is None else array_of(x).astype(fusewire_of(dtype))
    return fw.mean(array, axis=_axes(dim), keepdims=keepdim) if x.dim() else array


@TABLE.value("var.correction")
def _var(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Array:
    _check_varies(x)
    return fw.var(array_of(x), axis=_axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


@TABLE.value("std.correction")
def _std(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Array:
    _check_varies(x)
    return fw.std(array_of(x), axis=_axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


def _check_varies(x: torch.Tensor) -> None:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError("std and var only support floating point and complex dtypes")


@TABLE.value("var_mean.correction")
def _var_and_mean(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    mean = fw.mean(array_of(x), axis=_axes(dim), keepdims=keepdim)
    return _var(x, dim, correction=correction, keepdim=keepdim), mean


@TABLE.value("amax")
def _amax(x: torch.Tensor, dim: Any = (), keepdim: bool = False) -> Array:
    return fw.max(array_of(x), axis=_axes(dim), keepdims=keepdim) if x.dim() else array_of(x)


@TABLE.value("amin")
def _amin(x: torch.Tensor, dim: Any = (), keepdim: bool = False) -> Array:
    return fw.min(array_of(x), axis=_axes(dim), keepdims=keepdim) if x.dim() else array_of(x)


@TABLE.value("max")
def _max(x: torch.Tensor) -> Array:
    return fw.max(array_of(x))


@TABLE.value("min")
def _min(x: torch.Tensor) -> Array:
    return fw.min(array_of(x))


@TABLE.value("max.dim")
def _max_along(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return _extreme(x, dim, keepdim, fw.max, fw.argmax)


@TABLE.value("min.dim")
def _min_along(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return _extreme(x, dim, keepdim, fw.min, fw.argmin)


def _extreme(x: torch.Tensor, dim: int, keepdim: bool, value: Any, place: Any) -> tuple[Array, Array]:
    array = array_of(x)
    if not x.dim():
        return array, fw.zeros_like(array, dtype="int64")
    if not x.numel():
        kept = fw.sum(array, axis=dim, keepdims=keepdim).astype(array.dtype)
        if x.shape[dim]:  # no element of the result is left, so neither has a place
            return kept, kept.astype("int64")
    return value(array, axis=dim, keepdims=keepdim), place(array, axis=dim, keepdims=keepdim)


@TABLE.value("argmax")
def _argmax(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Array:
    array = array_of(x) if x.dim() else array_of(x).reshape(1)
    return fw.argmax(array, axis=dim, keepdims=keepdim) if x.dim() else fw.argmax(array)


@TABLE.value("argmin")
def _argmin(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Array:
    array = array_of(x) if x.dim() else array_of(x).reshape(1)
    return fw.argmin(array, axis=dim, keepdims=keepdim) if x.dim() else fw.argmin(array)


@TABLE.value("any")
def _any(x: torch.Tensor) -> Array:
    return fw.any(array_of(x))


@TABLE.value("all")
def _all(x: torch.Tensor) -> Array:
    return fw.all(array_of(x))


@TABLE.value("any.dim", "any.dims")
def _any_along(x: torch.Tensor, dim: Any = None, keepdim: bool = False) -> Array:
    return fw.any(array_of(x), axis=_axes(dim), keepdims=keepdim) if x.dim() else array_of(x) != 0


@TABLE.value("all.dim", "all.dims")
def _all_along(x: torch.Tensor, dim: Any = None, keepdim: bool = False) -> Array:
    return fw.all(array_of(x), axis=_axes(dim), keepdims=keepdim) if x.dim() else array_of(x) != 0


@TABLE.value("cumsum")
def _cumsum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Array:
    array = _summable(x, dtype)
    return fw.cumulative_sum(array, axis=dim) if x.dim() else array


@TABLE.value("cumprod")
def _cumprod(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Array:
    array = _summable(x, dtype)
    return fw.cumulative_prod(array, axis=dim) if x.dim() else array


@TABLE.value("logsumexp")
def _logsumexp(x: torch.Tensor, dim: Any, keepdim: bool = False) -> Array:
    array = array_of(x)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        array = array.astype(fusewire_of(torch.get_default_dtype()))
    if x.dtype.is_complex:
        given = array if x.dim() else array.reshape(1)
        found: Array = functions.logsumexp(given, _axes(dim), keepdims=keepdim)
        return found if x.dim() else found.reshape(())
    if not x.dim():
        return array
    axes = _axes(dim)
    if not x.numel():  # the logarithm of a sum of nothing is that of 0
        return fw.log(fw.sum(array, axis=axes, keepdims=keepdim))
    return fw.logsumexp(array, axis=axes, keepdims=keepdim)


@TABLE.value("linalg_vector_norm")
def _vector_norm(
    x: torch.Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Array:
    array = array_of(x) if dtype is None else array_of(x).astype(fusewire_of(dtype))
    if not x.dim():
        size = fw.abs(array)
        return (size != 0).astype(size.dtype) if ord == 0 else size
    return fw.linalg.vector_norm(array, axis=_axes(dim), keepdims=keepdim, ord=ord)
