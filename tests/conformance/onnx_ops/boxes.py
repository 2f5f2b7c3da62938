"""Nodes that take regions of images, and choose among regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import fusewire as fw
from tests.conformance.onnx_ops.arguments import ints


def _aligned_regions(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """A region is divided into bins, and a bin is the mean or the greatest of some samples in it."""
    is_half = coordinate_transformation_mode == "half_pixel"
    found = []
    for number in range(rois.shape[0]):
        corners = rois[number].astype("float64") * spatial_scale - (0.5 if is_half else 0.0)
        image, samples = x[batch_indices[number]].astype("float64"), []
        for axis, count in ((1, output_height), (0, output_width)):
            extent = corners[axis + 2] - corners[axis]
            extent = extent if is_half else fw.maximum(extent, 1.0)
            each = sampling_ratio if sampling_ratio > 0 else int(fw.ceil(extent / count))
            places = (fw.arange(count * each) + 0.5) / each
            samples.append((corners[axis] + places * (extent / count), each))
        found.append(_binned(image, samples, mode, (output_height, output_width)))
    return fw.stack(found).astype(x.dtype)


def _binned(image: Any, samples: Sequence[tuple[Any, int]], mode: str, counts: tuple[int, int]) -> Any:
    """The greatest of a bin is that of the weighted elements around its samples, as ONNX has it."""
    (low, high), (left, right) = (
        _two_around(places, length) for (places, _), length in zip(samples, image.shape[1:], strict=True)
    )
    corners = [
        image[:, rows[0]][:, :, columns[0]] * (rows[1][:, None] * columns[1])
        for rows in (low, high)
        for columns in (left, right)
    ]
    bins = (image.shape[0], counts[0], samples[0][1], counts[1], samples[1][1])
    if mode == "avg":
        return sum(corners[1:], corners[0]).reshape(bins).mean((2, 4))
    return fw.stack(corners).max(0).reshape(bins).max((2, 4))


def _two_around(places: Any, length: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Returns the elements before and behind places along an axis, and their weights, which are 0 outside."""
    is_inside = (places >= -1.0) & (places <= length)
    places = fw.clip(places, 0, length - 1)
    before = fw.floor(places)
    share = places - before
    first = before.astype("int64")
    return (first, (1 - share) * is_inside), (fw.minimum(first + 1, length - 1), share * is_inside)


def _without_overlaps(
    boxes: Any,
    scores: Any,
    most: Any = None,
    overlap: Any = None,
    least: Any = None,
    *,
    center_point_box: int = 0,
) -> Any:
    """Returns batch, class and box of those that no better one of the class overlaps: by batch, class and score."""
    count = 0 if most is None else ints(most)[0]
    limit = 0.0 if overlap is None else float(np.ravel(overlap)[0])
    choose = partial(_kept, count=count, limit=limit, least=least, is_centered=bool(center_point_box))
    found = []
    for batch, number in np.ndindex(*scores.shape[:2]):
        kept = choose(boxes[batch], scores[batch, number])
        found.append(fw.stack([fw.full_like(kept, batch), fw.full_like(kept, number), kept], axis=-1))
    return fw.concat(found).astype("int64")


def _kept(boxes: Any, scores: Any, *, count: int, limit: float, least: Any, is_centered: bool) -> Any:
    order = fw.argsort(scores, descending=True, stable=True)
    areas = _overlaps(fw.take(boxes, order, axis=0), is_centered=is_centered)
    sorted_scores = fw.take(scores, order)
    allowed = fw.ones(scores.shape, dtype=bool) if least is None else sorted_scores > float(np.ravel(least)[0])

    def choose(i: Any, kept: Any) -> Any:
        is_free = ~((areas[i] > limit) & kept).any()
        return kept.at[i].set(is_free & allowed[i])

    kept = fw.fori_loop(scores.size, choose, fw.zeros(scores.shape, dtype=bool))
    return order[kept][:count]


def _overlaps(boxes: Any, *, is_centered: bool) -> Any:
    """Returns for each two boxes the area that they share, as a part of that which either covers."""
    if is_centered:
        low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    else:
        low, high = fw.minimum(boxes[:, :2], boxes[:, 2:]), fw.maximum(boxes[:, :2], boxes[:, 2:])
    sides = fw.minimum(high[:, None], high) - fw.maximum(low[:, None], low)
    shared = fw.maximum(sides, 0).prod(-1)
    areas = (high - low).prod(-1)
    return shared / (areas[:, None] + areas - shared)


OPS: dict[str, Callable[..., Any]] = {"NonMaxSuppression": _without_overlaps, "RoiAlign": _aligned_regions}
