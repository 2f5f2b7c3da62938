"""Steps of optimizers that PyTorch calls as one op for all parameters, as with `fused=True`.

A gradient is divided by `grad_scale` first, and nothing changes where `found_inf` is one: `torch.amp.GradScaler` gives
them. The formulas are those of `torch.optim`. Halves are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.promotion import number_of
from fusewire_torch.storage import array_of, is_ours, write
from fusewire_torch.table import Table

TABLE = Table()

Tensors = Sequence[torch.Tensor]


@TABLE.kernel("_fused_adam_", "_fused_adam_.tensor_lr")
def _adam(*lists: Tensors, weight_decay: float, **options: Any) -> None:
    """Adds the decay to the gradient. The lists are those of `_step_adam`."""
    _step_adam(*lists, decay_of_gradient=weight_decay, decay_of_parameter=0.0, **options)


@TABLE.kernel("_fused_adamw_", "_fused_adamw_.tensor_lr")
def _adamw(*lists: Tensors, weight_decay: float, **options: Any) -> None:
    """Takes the decay from the parameter."""
    _step_adam(*lists, decay_of_gradient=0.0, decay_of_parameter=weight_decay, **options)


def _step_adam(
    parameters: Tensors,
    gradients: Tensors,
    means: Tensors,
    squares: Tensors,
    greatest: Tensors,
    steps: Tensors,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    decay_of_gradient: float,
    decay_of_parameter: float,
    grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> None:
    rate, keep = _number_or_array(lr), _Keeping(found_inf)
    for number, parameter in enumerate(parameters):
        x, step = _wide(parameter), array_of(steps[number])
        gradient = _gradient(gradients[number], grad_scale, x, decay_of_gradient, maximize)
        if decay_of_parameter:
            x = x * (1 - rate * decay_of_parameter)
        mean = _wide(means[number]) * beta1 + gradient * (1 - beta1)
        square = _wide(squares[number]) * beta2 + gradient * gradient * (1 - beta2)
        scale = square
        if amsgrad:
            scale = fw.maximum(_wide(greatest[number]), square)
            keep.write(greatest[number], scale)
        denominator = fw.sqrt(scale) / fw.sqrt(_correction(beta2, step)) + eps
        keep.write(parameter, x - rate / _correction(beta1, step) * mean / denominator)
        keep.write(means[number], mean)
        keep.write(squares[number], square)


@TABLE.kernel("_fused_sgd_", "_fused_sgd_.tensor_lr")
def _sgd(
    parameters: Tensors,
    gradients: Tensors,
    buffers: Tensors,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> None:
    rate, keep = _number_or_array(lr), _Keeping(found_inf)
    for number, parameter in enumerate(parameters):
        x = _wide(parameter)
        gradient = _gradient(gradients[number], grad_scale, x, weight_decay, maximize)
        if momentum:
            buffer = gradient
            if not is_first_step:
                buffer = _wide(buffers[number]) * momentum + gradient * (1 - dampening)
            keep.write(buffers[number], buffer)
            gradient = gradient + buffer * momentum if nesterov else buffer
        keep.write(parameter, x - rate * gradient)


@TABLE.kernel("_fused_adagrad_", "_fused_adagrad_.tensor_lr")
def _adagrad(
    parameters: Tensors,
    gradients: Tensors,
    sums: Tensors,
    steps: Tensors,
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> None:
    rate, keep = _number_or_array(lr), _Keeping(found_inf)
    for number, parameter in enumerate(parameters):
        x = _wide(parameter)
        gradient = _gradient(gradients[number], grad_scale, x, weight_decay, maximize)
        total = _wide(sums[number]) + gradient * gradient
        slower = rate / (1 + (array_of(steps[number]) - 1) * lr_decay)
        keep.write(parameter, x - slower * gradient / (fw.sqrt(total) + eps))
        keep.write(sums[number], total)


class _Keeping:
    """Writes new elements, or the old ones again where an element of a gradient was not finite."""

    def __init__(self, found_inf: torch.Tensor | None) -> None:
        self._is_kept = None if found_inf is None else array_of(found_inf) != 0

    def write(self, tensor: torch.Tensor, array: Array) -> None:
        if self._is_kept is not None:
            array = fw.where(self._is_kept, _wide(tensor), array)
        write(tensor, array)


def _gradient(gradient: torch.Tensor, scale: torch.Tensor | None, x: Array, decay: float, maximize: bool) -> Array:
    """Returns what the parameter `x` moves against. Where gradients are scaled, writes them without the scale."""
    given = _wide(gradient)
    if scale is not None:
        given = given / array_of(scale).astype(given.dtype, copy=False)
        write(gradient, given)
    signed = -given if maximize else given
    return signed + x * decay if decay else signed


def _correction(beta: float, step: Array) -> Any:
    """Returns 1 - beta ** step without the rounding that the power near one would lose most digits by."""
    return -fw.expm1(step * log(beta)) if beta > 0 else 1 - beta**step


def _wide(tensor: torch.Tensor) -> Array:
    array = array_of(tensor)
    return array.astype("float32") if tensor.dtype in (torch.float16, torch.bfloat16) else array


def _number_or_array(rate: Any) -> Any:
    return array_of(rate) if isinstance(rate, torch.Tensor) and is_ours(rate) else number_of(rate)
