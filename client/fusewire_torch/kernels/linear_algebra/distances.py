"""Distances between rows, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("_cdist_forward")
def _cdist(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> Array:
    """Returns the distances [..., n, m] of the rows of x, [..., n, d], and y, [..., m, d], in the norm p."""
    return _norm(fw.expand_dims(array_of(x), -2) - fw.expand_dims(array_of(y), -3), p)


@TABLE.value("_cdist_backward")
def _cdist_backward(grad: torch.Tensor, x: torch.Tensor, y: torch.Tensor, p: float, cdist: torch.Tensor) -> Array:
    difference = fw.expand_dims(array_of(x), -2) - fw.expand_dims(array_of(y), -3)
    return fw.sum(_norm_backward(array_of(grad), difference, array_of(cdist), p), axis=-2)


@TABLE.value("_pdist_forward")
def _pdist(x: torch.Tensor, p: float = 2.0) -> Array:
    """Returns the distances of all pairs of rows of x, [n, d], as a vector."""
    first, second = _pairs(x)
    return _norm(fw.take(array_of(x), first, axis=0) - fw.take(array_of(x), second, axis=0), p)


@TABLE.value("_pdist_backward")
def _pdist_backward(grad: torch.Tensor, x: torch.Tensor, p: float, pdist: torch.Tensor) -> Array:
    array, (first, second) = array_of(x), _pairs(x)
    difference = fw.take(array, first, axis=0) - fw.take(array, second, axis=0)
    given = _norm_backward(array_of(grad), difference, array_of(pdist), p)
    nothing = fw.zeros(array.shape, array.dtype, device=array.session)
    return nothing.at[first].add(given).at[second].add(-given)


def _pairs(x: torch.Tensor) -> tuple[Array, Array]:
    rows = torch.triu_indices(x.shape[0], x.shape[0], 1)
    session = array_of(x).session
    return session.array(rows[0].numpy()), session.array(rows[1].numpy())


def _norm(difference: Array, p: float) -> Array:
    """Returns the norm along the last axis. With p = 0 it counts the elements that are not zero."""
    size = fw.abs(difference)
    if not size.shape[-1]:
        return fw.sum(size, axis=-1)
    if p == 0:
        return fw.sum((size != 0).astype(size.dtype), axis=-1)
    if p == inf:
        return fw.max(size, axis=-1)
    if p == 1:
        return fw.sum(size, axis=-1)
    return fw.sqrt(fw.sum(size * size, axis=-1)) if p == 2 else fw.sum(size**p, axis=-1) ** (1 / p)


def _norm_backward(grad: Array, difference: Array, norm: Array, p: float) -> Array:
    """Returns the gradient of each difference; that of a norm of zero is zero."""
    given, whole, size = fw.expand_dims(grad, -1), fw.expand_dims(norm, -1), fw.abs(difference)
    if p == 0:
        return fw.zeros_like(difference) * given
    if p == inf:
        return given * fw.sign(difference) * (size == whole).astype(size.dtype)
    if p == 1:
        return given * fw.sign(difference)
    powers: Callable[[Array], Array] = (lambda x: x) if p == 2 else (lambda x: x ** (p - 1))
    usual = fw.where(whole == 0, 1, whole)
    parts = fw.where(size == 0, 0, fw.sign(difference) * powers(fw.where(size == 0, 1, size)) / powers(usual))
    return fw.where(whole == 0, 0, given * parts)
