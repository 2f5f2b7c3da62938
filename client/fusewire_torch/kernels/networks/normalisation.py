"""Layer, batch and weight normalisation, and their gradients."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array, ShapeError
from fusewire_torch.storage import array_of, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("native_layer_norm")
def _layer_norm(
    x: torch.Tensor, normalized_shape: Any, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[Array, Array, Array]:
    """Returns the result, the mean and the reciprocal of the standard deviation, for the gradient."""
    array = array_of(x)
    axes = _last(array, len(normalized_shape))
    if array.shape[array.ndim - len(axes) :] != tuple(normalized_shape):
        raise ShapeError(f"layer_norm over {normalized_shape} of the shape {array.shape}")
    mean = fw.mean(array, axis=axes, keepdims=True)
    centred = array - mean
    rstd = fw.rsqrt(fw.mean(centred * centred, axis=axes, keepdims=True) + eps)
    result = centred * rstd
    if weight is not None:
        result = result * array_of(weight)
    if bias is not None:
        result = result + array_of(bias)
    return result, mean, rstd


@TABLE.value("native_layer_norm_backward")
def _layer_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    normalized_shape: Any,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    output_mask: Any,
) -> tuple[Array | None, Array | None, Array | None]:
    given, array, scale = array_of(grad), array_of(x), array_of(rstd)
    axes, rest = _last(array, len(normalized_shape)), tuple(range(array.ndim - len(normalized_shape)))
    normal = (array - array_of(mean)) * scale
    wanted = given if weight is None else given * array_of(weight)
    to_x = None
    if output_mask[0]:
        means = fw.mean(wanted, axis=axes, keepdims=True), fw.mean(wanted * normal, axis=axes, keepdims=True)
        to_x = (wanted - means[0] - normal * means[1]) * scale
    to_weight = fw.sum(given * normal, axis=rest) if output_mask[1] and weight is not None else None
    to_bias = fw.sum(given, axis=rest) if output_mask[2] and bias is not None else None
    return to_x, to_weight, to_bias


@TABLE.value("native_batch_norm")
def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Returns the result, and mean and reciprocal deviation of the batch. In training it moves the running figures."""
    array = array_of(x)
    axes, count = _all_but_channels(array), array.size // array.shape[1]
    if training:
        mean, var = fw.mean(array, axis=axes), fw.var(array, axis=axes)
        if running_mean is not None:
            write(running_mean, _moved(running_mean, mean, momentum))
        if running_var is not None:
            write(running_var, _moved(running_var, var * (count / (count - 1)) if count > 1 else var, momentum))
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, var = array_of(running_mean), array_of(running_var)
    rstd = fw.rsqrt(var + eps)
    result = (array - _by_channel(mean, array)) * _by_channel(rstd, array)
    if weight is not None:
        result = result * _by_channel(array_of(weight), array)
    if bias is not None:
        result = result + _by_channel(array_of(bias), array)
    if training:
        return result, mean, rstd
    nothing = mean[:0]
    return result, nothing, nothing


@TABLE.value("_native_batch_norm_legit")
def _batch_norm_of_running(x: torch.Tensor, *arguments: Any) -> tuple[Array, Array, Array]:
    return _batch_norm(x, *arguments)


@TABLE.value("_native_batch_norm_legit.no_stats")
def _batch_norm_alone(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, *rest: Any
) -> tuple[Array, Array, Array]:
    return _batch_norm(x, weight, bias, None, None, *rest)


@TABLE.value("native_batch_norm_backward")
def _batch_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    save_mean: torch.Tensor | None,
    save_invstd: torch.Tensor | None,
    train: bool,
    eps: float,
    output_mask: Any,
) -> tuple[Array | None, Array | None, Array | None]:
    array, given = array_of(x), array_of(grad)
    axes, count = _all_but_channels(array), array.size // array.shape[1]
    if train:
        assert save_mean is not None
        assert save_invstd is not None
        mean, rstd = array_of(save_mean), array_of(save_invstd)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, rstd = array_of(running_mean), fw.rsqrt(array_of(running_var) + eps)
    normal = (array - _by_channel(mean, array)) * _by_channel(rstd, array)
    sums = fw.sum(given, axis=axes), fw.sum(given * normal, axis=axes)
    scale = rstd if weight is None else rstd * array_of(weight)
    to_x = None
    if output_mask[0]:
        centred = given
        if train:
            centred = given - (_by_channel(sums[0], array) + normal * _by_channel(sums[1], array)) * (1 / count)
        to_x = centred * _by_channel(scale, array)
    return to_x, sums[1] if output_mask[1] else None, sums[0] if output_mask[2] else None


def _last(array: Array, count: int) -> tuple[int, ...]:
    return tuple(range(array.ndim - count, array.ndim))


def _all_but_channels(array: Array) -> tuple[int, ...]:
    return tuple(axis for axis in range(array.ndim) if axis != 1)


def _by_channel(values: Array, array: Array) -> Array:
    """Returns a value for each channel in a shape that broadcasts along the second axis of `array`."""
    return values.reshape((1, array.shape[1]) + (1,) * (array.ndim - 2))


def _moved(running: torch.Tensor, new: Array, momentum: float) -> Array:
    return array_of(running) * (1 - momentum) + new * momentum


@TABLE.value("_weight_norm_interface_backward")
def _weight_norm_backward(
    grad: torch.Tensor, v: torch.Tensor, g: torch.Tensor, norms: torch.Tensor, dim: int
) -> tuple[Array, Array]:
    """Returns the gradients of v and g, of which the weight is v · g / norm: v's length along `dim` is g's element."""
    given, direction, length = array_of(grad), array_of(v), array_of(norms)
    axes = tuple(axis for axis in range(v.dim()) if axis != dim % v.dim())
    along = fw.sum(given * direction, axis=axes, keepdims=True) / length
    return (given - direction * (along / length)) * (array_of(g) / length), along
