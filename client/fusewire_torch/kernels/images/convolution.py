"""Convolutions and pools, and their gradients."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire_torch.storage import array_of, tensor_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.kernel("convolution_overrideable")
def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> torch.Tensor:
    given = None if bias is None else array_of(bias)
    layer = _layer(stride, padding, dilation, transposed, output_padding, groups)
    result = layer(array_of(x), array_of(weight))
    if given is not None:
        result = result + given.reshape((given.size,) + (1,) * (x.dim() - 2))
    return tensor_of(result)


@TABLE.kernel("convolution_backward_overrideable")
def _convolution_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> tuple[torch.Tensor | None, ...]:
    given = array_of(grad)
    layer = _layer(stride, padding, dilation, transposed, output_padding, groups)
    _, back = fw.vjp(layer, array_of(x), array_of(weight))
    to_x, to_weight = back(given)
    axes = (0, *range(2, given.ndim))
    return (
        tensor_of(to_x) if output_mask[0] else None,
        tensor_of(to_weight) if output_mask[1] else None,
        tensor_of(fw.sum(given, axis=axes)) if output_mask[2] else None,
    )


def _layer(stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int) -> Any:
    """Returns the function of operand and kernels that a layer with these parameters is."""
    common: dict[str, Any] = {
        "strides": tuple(stride),
        "padding": tuple(padding),
        "dilation": tuple(dilation),
        "groups": groups,
    }
    if transposed:
        return lambda x, w: fw.conv_transpose(x, w, output_padding=tuple(output_padding), **common)
    return lambda x, w: fw.conv(x, w, **common)
