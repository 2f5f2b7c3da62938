"""Integers that stand for floats by a scale and a zero point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fusewire as fw
from tests.conformance.onnx_ops.arguments import dtype_of


def _spread(values: Any, x: Any, axis: int, block_size: int) -> Any:
    """Returns scales or zero points as they meet the elements: one of all, one an index along an axis, one a block."""
    if values.ndim == 0:
        return values
    if block_size:
        return fw.repeat(values, block_size, axis=axis)
    return values if values.ndim > 1 else values.reshape(-1, *[1] * (x.ndim - axis % x.ndim - 1))


def _quantized(
    x: Any,
    scale: Any,
    zero: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Any:
    named = dtype_of(output_dtype) if output_dtype else fw.uint8
    target = named if zero is None else zero.dtype
    bounds = fw.iinfo(target)
    places = fw.round(x / _spread(scale, x, axis, block_size)).astype("float32")
    places = places if zero is None else places + _spread(zero, x, axis, block_size).astype("float32")
    return fw.clip(places, bounds.min, bounds.max).astype("int32").astype(target)


def _dequantized(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Any:
    wide = x.astype("int32")
    wide = wide if zero is None else wide - _spread(zero, x, axis, block_size).astype("int32")
    scaled = wide.astype("float32") * _spread(scale, x, axis, block_size)
    return scaled.astype(dtype_of(output_dtype) if output_dtype else scale.dtype)


def _with_chosen_scale(x: Any) -> Any:
    """The scale lets 256 steps hold all elements, and zero."""
    low, high = fw.minimum(x.min(), 0), fw.maximum(x.max(), 0)
    scale = (high - low) / 255
    zero = fw.clip(fw.round(-low / scale), 0, 255).astype("uint8")
    return _quantized(x, scale, zero), scale, zero


def _less_zero(x: Any, zero: Any, axis: int) -> Any:
    wide = x.astype("int32")
    return wide if zero is None else wide - _spread(zero, x, axis, 0).astype("int32")


def _integer_product(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return _less_zero(a, a_zero, -2) @ _less_zero(b, b_zero, -1)


def _quantized_product(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, *y: Any) -> Any:
    y_scale, y_zero = y
    product = _integer_product(a, b, a_zero, b_zero).astype("float32")
    return _quantized(product * (a_scale.astype("float32") * b_scale / y_scale), fw.asarray(1.0), y_zero)


OPS: dict[str, Callable[..., Any]] = {
    "DequantizeLinear": _dequantized,
    "DynamicQuantizeLinear": _with_chosen_scale,
    "MatMulInteger": _integer_product,
    "QLinearMatMul": _quantized_product,
    "QuantizeLinear": _quantized,
}
