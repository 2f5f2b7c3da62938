"""Softmax, losses, and their gradients."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.gathering import along_last_axis
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

_NONE, _MEAN = 0, 1  # how PyTorch numbers the reductions of a loss; 2 is the sum


@TABLE.value("_softmax")
def _softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> Array:
    array = _widened(x, half_to_float)
    return fw.softmax(array, axis=dim) if x.dim() and x.numel() else array * 0 + 1


@TABLE.value("_log_softmax")
def _log_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> Array:
    array = _widened(x, half_to_float)
    return fw.log_softmax(array, axis=dim) if x.dim() and x.numel() else array * 0


def _widened(x: torch.Tensor, half_to_float: bool) -> Array:
    return array_of(x).astype("float32") if half_to_float else array_of(x)


@TABLE.value("_softmax_backward_data")
def _softmax_backward(grad: torch.Tensor, result: torch.Tensor, dim: int, input_dtype: torch.dtype) -> Array:
    weighted, probabilities = array_of(grad) * array_of(result), array_of(result)
    along = dim if result.dim() else None
    given = weighted - probabilities * fw.sum(weighted, axis=along, keepdims=True)
    return given.astype(fusewire_of(input_dtype), copy=False)


@TABLE.value("_log_softmax_backward_data")
def _log_softmax_backward(grad: torch.Tensor, result: torch.Tensor, dim: int, input_dtype: torch.dtype) -> Array:
    given = array_of(grad)
    along = dim if result.dim() else None
    given = given - fw.exp(array_of(result)) * fw.sum(given, axis=along, keepdims=True)
    return given.astype(fusewire_of(input_dtype), copy=False)


@TABLE.value("nll_loss_forward")
def _nll(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignore_index: int
) -> tuple[Array, Array]:
    """Returns the loss and the weight of all elements together, as `torch.nn.functional.nll_loss` defines them."""
    weights = _weights(x, target, weight, ignore_index)
    classes = _known_classes(target, ignore_index)
    picked = along_last_axis(array_of(x), fw.expand_dims(classes, -1))
    losses = -fw.squeeze(picked, -1) * weights
    total = fw.sum(weights)
    if reduction == _NONE:
        return losses, total * 0
    loss = fw.sum(losses)
    return (loss / total if reduction == _MEAN else loss), total


@TABLE.value("nll_loss_backward")
def _nll_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: torch.Tensor,
) -> Array:
    given = array_of(grad)
    if reduction == _MEAN:
        given = given / array_of(total_weight)
    classes = _known_classes(target, ignore_index)
    if weight is not None:
        given = given * fw.take(array_of(weight), classes)
    hot = fw.one_hot(classes, x.shape[-1], dtype=fusewire_of(x.dtype))
    # Of elements to ignore it is 0 even if all are, so that their weight together, a divisor, is 0.
    slope = fw.where(array_of(target) != ignore_index, -given, 0).astype(hot.dtype, copy=False)
    return hot * fw.expand_dims(slope, -1)


def _known_classes(target: torch.Tensor, ignore_index: int) -> Array:
    """Returns the classes, with class 0 for an element to ignore, whose weight is 0."""
    classes = array_of(target)
    return fw.where(classes == ignore_index, 0, classes) if ignore_index < 0 else classes


def _weights(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, ignore_index: int) -> Array:
    """Returns the weight of each element: that of its class, and 0 if the element is to be ignored."""
    is_counted = (array_of(target) != ignore_index).astype(fusewire_of(x.dtype))
    return (
        is_counted if weight is None else is_counted * fw.take(array_of(weight), _known_classes(target, ignore_index))
    )


@TABLE.value("mse_loss")
def _mse(x: torch.Tensor, target: torch.Tensor, reduction: int = _MEAN) -> Array:
    difference = array_of(x) - array_of(target)
    return _reduced(difference * difference, reduction)


@TABLE.value("mse_loss_backward")
def _mse_backward(grad: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int) -> Array:
    difference = array_of(x) - array_of(target)
    scale = 2.0 / x.numel() if reduction == _MEAN else 2.0
    return array_of(grad) * scale * difference


@TABLE.value("multi_margin_loss_backward")
def _multi_margin_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    target: torch.Tensor,
    p: Any,
    margin: Any,
    weight: torch.Tensor | None = None,
    reduction: int = _MEAN,
) -> Array:
    """Returns the gradient of `torch.nn.functional.multi_margin_loss`: of all classes but the right one."""
    array, classes = array_of(x), array_of(target)
    rows, right = (array, classes) if x.dim() > 1 else (array.reshape(1, -1), classes.reshape(1))
    hot = fw.one_hot(right, rows.shape[1], dtype=rows.dtype)
    beyond = margin - fw.sum(rows * hot, axis=1, keepdims=True) + rows
    slope = fw.where(beyond > 0, 1 if p == 1 else 2 * beyond, 0) * (1 - hot) / rows.shape[1]
    if weight is not None:
        slope = slope * fw.expand_dims(fw.take(array_of(weight), right), -1)
    slope = slope - hot * fw.sum(slope, axis=1, keepdims=True)
    return (slope * _spread(grad, x, rows, reduction)).reshape(array.shape)


def _spread(grad: torch.Tensor, x: torch.Tensor, rows: Array, reduction: int) -> Array:
    """Returns the gradient of each row's loss."""
    given = array_of(grad)
    if reduction == _NONE and x.dim() > 1:
        return fw.expand_dims(given, -1)
    return given / rows.shape[0] if reduction == _MEAN else given


@TABLE.value("multilabel_margin_loss_forward")
def _multilabel_margin(x: torch.Tensor, target: torch.Tensor, reduction: int) -> tuple[Array, Array]:
    """Returns the loss, of one row a number, and which classes are targets."""
    rows, hot, is_named = _named_classes(x, target)
    is_right = fw.any(hot != 0, axis=1)
    pairs = fw.maximum(_beyond(rows, hot), 0) * _counted(is_named, is_right, rows)
    losses = fw.sum(pairs, axis=(1, 2))
    result = losses if reduction == _NONE and x.dim() > 1 else _reduced(losses, max(reduction, _MEAN))
    return result, is_right.astype(rows.dtype).reshape(tuple(x.shape))


@TABLE.value("multilabel_margin_loss_backward")
def _multilabel_margin_backward(
    grad: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int, is_target: torch.Tensor
) -> Array:
    """Returns the gradient for each pair of a class that is a target and one that is none."""
    rows, hot, is_named = _named_classes(x, target)
    pairs = (_beyond(rows, hot) > 0).astype(rows.dtype)
    pairs = pairs * _counted(is_named, array_of(is_target).reshape(rows.shape) != 0, rows)
    slope = fw.sum(pairs, axis=1) - fw.sum(hot * fw.sum(pairs, axis=2, keepdims=True), axis=1)
    return (slope * _spread(grad, x, rows, reduction)).reshape(tuple(x.shape))


def _named_classes(x: torch.Tensor, target: torch.Tensor) -> tuple[Array, Array, Array]:
    """Returns scores as rows, the classes that each row names before the first -1 as ones, and whether it is one."""
    array = array_of(x)
    rows = array if x.dim() > 1 else array.reshape(1, -1)
    classes = array_of(target).reshape(rows.shape)
    is_named = fw.cumulative_prod((classes >= 0).astype("int64"), axis=1) != 0
    hot = fw.one_hot(fw.maximum(classes, 0), rows.shape[1], dtype=rows.dtype)
    return rows, hot * fw.expand_dims(is_named, -1).astype(rows.dtype), is_named


def _beyond(rows: Array, hot: Array) -> Array:
    """Returns by how much each class comes nearer to each named class than the margin allows."""
    scores = fw.sum(hot * fw.expand_dims(rows, 1), axis=2)
    return 1 - fw.expand_dims(scores, -1) + fw.expand_dims(rows, 1)


def _counted(is_named: Array, is_right: Array, rows: Array) -> Array:
    """Returns the weight of each pair of a named class and another one: that of a class that is no target."""
    pairs = fw.logical_and(fw.expand_dims(is_named, -1), fw.expand_dims(fw.logical_not(is_right), 1))
    return pairs.astype(rows.dtype) / rows.shape[1]


def _reduced(losses: Array, reduction: int) -> Array:
    if reduction == _NONE:
        return losses
    return fw.mean(losses) if reduction == _MEAN else fw.sum(losses)
