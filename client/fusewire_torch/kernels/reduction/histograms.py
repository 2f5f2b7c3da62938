"""Histograms: how many elements, or how much weight, lies between edges."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("histogram.bins_tensor")
def _histogram_between(
    x: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None, density: bool = False
) -> tuple[Array, Array]:
    edges = array_of(bins)
    return _counted(array_of(x).reshape(-1, 1), [edges], weight, density=density), edges


@TABLE.value("histogram.bin_ct")
def _histogram(
    x: torch.Tensor,
    bins: int = 100,
    *,
    range: Any = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> tuple[Array, Array]:
    points = array_of(x).reshape(-1, 1)
    edges = _edges(points, [bins], range)
    return _counted(points, edges, weight, density=density), edges[0]


@TABLE.value("_histogramdd_bin_edges")
def _edges_of_points(
    x: torch.Tensor, bins: Any, *, range: Any = None, weight: torch.Tensor | None = None, density: bool = False
) -> list[Array]:
    return _edges(_points(x), list(bins), range)


@TABLE.value("_histogramdd_from_bin_cts")
def _histogram_of_points(
    x: torch.Tensor, bins: Any, *, range: Any = None, weight: torch.Tensor | None = None, density: bool = False
) -> Array:
    return _counted(_points(x), _edges(_points(x), list(bins), range), weight, density=density)


@TABLE.value("_histogramdd_from_bin_tensors")
def _histogram_of_points_between(
    x: torch.Tensor, bins: Any, *, weight: torch.Tensor | None = None, density: bool = False
) -> Array:
    return _counted(_points(x), [array_of(each) for each in bins], weight, density=density)


def _points(x: torch.Tensor) -> Array:
    """Returns the points [count, axes] of [..., axes]."""
    return array_of(x).reshape(-1, x.shape[-1])


def _edges(points: Array, counts: list[int], bounds: Any) -> list[Array]:
    """Returns the edges of equal parts along each axis: between bounds, or between the least and greatest element."""
    edges = []
    for axis, count in enumerate(counts):
        low, high = _ends(points[:, axis], bounds and bounds[2 * axis : 2 * axis + 2])
        parts = fw.arange(count + 1, device=points.session).astype(points.dtype) / count
        edges.append((low * (1 - parts) + high * parts).astype(points.dtype, copy=False))
    return edges


def _ends(elements: Array, bounds: Any) -> tuple[Any, Any]:
    if bounds:
        low, high = bounds
        return (low, high) if low != high else (low - 0.5, high + 0.5)
    if not elements.size:
        return 0.0, 1.0
    low, high = fw.min(elements), fw.max(elements)
    spread = (low == high).astype(elements.dtype) * 0.5
    return low - spread, high + spread


def _counted(points: Array, edges: list[Array], weight: torch.Tensor | None, *, density: bool) -> Array:
    """Returns the weight of the points in each box between edges. The last part of an axis has its end too."""
    place: Any = 0
    is_inside: Any = True
    for axis, ends in enumerate(edges):
        elements, parts = points[:, axis], ends.size - 1
        at = fw.searchsorted(ends, elements, side="right") - 1
        at = fw.where(elements == ends[-1], parts - 1, at)
        is_inside = fw.logical_and(is_inside, fw.logical_and(elements >= ends[0], elements <= ends[-1]))
        place = place * parts + fw.clip(at, 0, parts - 1)
    weights = is_inside.astype(points.dtype)
    if weight is not None:
        weights = fw.where(is_inside, array_of(weight).reshape(-1), 0).astype(points.dtype, copy=False)
    shape = tuple(ends.size - 1 for ends in edges)
    flat = fw.zeros((prod(shape),), points.dtype, device=points.session).at[place].add(weights)
    found: Array = flat.reshape(shape)
    if not density:
        return found
    found = found / fw.sum(found)
    for axis, ends in enumerate(edges):
        found = found / (ends[1:] - ends[:-1]).reshape((-1,) + (1,) * (len(edges) - 1 - axis))
    return found
