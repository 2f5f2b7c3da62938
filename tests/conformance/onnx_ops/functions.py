"""Nodes that are one or few functions of elements, shapes and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import numpy_helper

import fusewire as fw
from tests.conformance.onnx_ops.arguments import dtype_of, ints

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Returns an entry that takes any number of inputs, and gives two at a time to the function."""

    def entry(first: Any, *others: Any) -> Any:
        for other in others:
            first = function(first, other)
        return first

    return entry


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def entry(x: Any, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        along = tuple([] if axes is None else ints(axes)) or (() if noop_with_empty_axes else None)
        return function(x, along, bool(keepdims)).astype(x.dtype)

    return entry


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    def entry(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        places = function(fw.flip(x, axis=axis) if select_last_index else x, axis=axis, keepdims=bool(keepdims))
        return x.shape[axis] - 1 - places if select_last_index else places

    return entry


def _divided(x: Any, y: Any) -> Any:
    """Returns the quotient, which is cut towards zero if the operands are integers."""
    if x.dtype.is_floating:
        return x / y
    floored = x // y
    return fw.where((floored < 0) & (floored * y != x), floored + 1, floored) if x.dtype.is_signed else floored


def _flat(x: Any, *, axis: int = 1) -> Any:
    rows = math.prod(x.shape[:axis] if axis else ())
    return x.reshape(rows, math.prod(x.shape) // rows if rows else 0)


def _reshaped(x: Any, shape: Any, *, allowzero: int = 0) -> Any:
    dims = ints(shape)
    return x.reshape([x.shape[i] if dim == 0 and not allowzero else dim for i, dim in enumerate(dims)])


def _sliced(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    first, last = ints(starts), ints(ends)
    along = range(len(first)) if axes is None else ints(axes)
    step = [1] * len(first) if steps is None else ints(steps)
    key = [slice(None)] * x.ndim
    for axis, begin, end, stride in zip(along, first, last, step, strict=True):
        reaches_front = stride < 0 and end < -x.shape[axis]
        key[axis] = slice(begin, None if reaches_front else end, stride)
    return x[tuple(key)]


def _split(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int = 0, outputs: int) -> Any:
    count = num_outputs or outputs
    length = -(-x.shape[axis] // count)
    lengths = [length] * count if sizes is None else ints(sizes)
    return tuple(fw.split(x, [sum(lengths[:i]) for i in range(1, len(lengths))], axis=axis))


def _padded(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    amounts, along = ints(pads), range(x.ndim) if axes is None else ints(axes)
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(along):
        widths[axis] = (amounts[i], amounts[i + len(amounts) // 2])
    if mode != "constant":
        return fw.pad(x, widths, mode={"edge": "edge", "reflect": "reflect", "wrap": "wrap"}[mode])
    return fw.pad(x, widths, constant_values=0 if value is None else value.item())


def _shape(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return fw.asarray(np.array(x.shape[start:end], np.int64))


def _clipped(x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else fw.maximum(x, low)
    return x if high is None else fw.minimum(x, high)


def _top(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:  # noqa: A002  # ONNX's name
    order = fw.argsort(x, axis=axis, descending=bool(largest))
    first = fw.take(order, fw.arange(ints(k)[0]), axis=axis)
    return fw.take_along_axis(x, first, axis=axis), first


def _scanned(function: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    def entry(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
        along = ints(axis)[0]
        x = fw.flip(x, axis=along) if reverse else x
        scanned = function(x, axis=along)
        if exclusive:
            widths = [(1, 0) if i == along % x.ndim else (0, 0) for i in range(x.ndim)]
            kept = fw.take(scanned, fw.arange(x.shape[along] - 1), axis=along)
            scanned = fw.pad(kept, widths, constant_values=neutral)
        return (fw.flip(scanned, axis=along) if reverse else scanned).astype(x.dtype)

    return entry


def _product_and_sum(a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, **transposed: int) -> Any:
    product = alpha * ((a.T if transposed.get("transA") else a) @ (b.T if transposed.get("transB") else b))
    return product if c is None else product + beta * c


def _normalized(
    x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    inverse = fw.rsqrt(x.var(axes, keepdims=True) + epsilon)
    scaled = (x - mean) * inverse * scale
    return (scaled if bias is None else scaled + bias), mean, inverse


def _by_channel(x: Any, values: Any) -> Any:
    return values.reshape(-1, *[1] * (x.ndim - 2))


def _batch_normalized(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    var: Any,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    known = mean, var
    if training_mode:
        mean, var = (function(x, axis=(0, *_spatial(x))) for function in (fw.mean, fw.var))
    normalized = (x - _by_channel(x, mean)) * fw.rsqrt(_by_channel(x, var) + epsilon)
    moved = (momentum * old + (1 - momentum) * new for old, new in zip(known, (mean, var), strict=True))
    return normalized * _by_channel(x, scale) + _by_channel(x, bias), *moved


def _one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    count = ints(depth)[0]
    wrapped = fw.where(indices < 0, indices + count, indices)
    is_hot = fw.moveaxis(wrapped[..., None] == fw.arange(count), -1, axis)
    return fw.where(is_hot, values[1], values[0])


def _infinite(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    return (fw.isposinf(x) & bool(detect_positive)) | (fw.isneginf(x) & bool(detect_negative))


def _constant_of_shape(shape: Any, *, value: Any = None) -> Any:
    filler = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return fw.full(ints(shape), filler.item(), dtype=filler.dtype)


def _gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate == "none":
        return fw.gelu(x)
    return 0.5 * x * (1 + fw.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _shifted(x: Any, y: Any, *, direction: str) -> Any:
    return x << y if direction == "LEFT" else x >> y


def _expanded(x: Any, shape: Any) -> Any:
    return fw.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(ints(shape))))


def _spatial(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _squeezed(x: Any, axes: Any = None) -> Any:
    return fw.squeeze(x, tuple(ints(axes)) if axes is not None else None)


def _eye_like(x: Any, *, k: int = 0, dtype: int | None = None) -> Any:
    return fw.eye(*x.shape, k=k, dtype=x.dtype if dtype is None else dtype_of(dtype))


def _range(start: Any, limit: Any, delta: Any) -> Any:
    return fw.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def _gathered(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return fw.take(x, fw.where(indices < 0, indices + x.shape[axis], indices), axis=axis)


def _gathered_along(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return fw.take_along_axis(x, fw.where(indices < 0, indices + x.shape[axis], indices), axis=axis)


def _triangle(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    diagonal = 0 if k is None else ints(k)[0]
    return fw.triu(x, k=diagonal) if upper else fw.tril(x, k=diagonal)


OPS: dict[str, Callable[..., Any]] = {
    "Abs": fw.abs,
    "Acos": fw.acos,
    "Acosh": fw.acosh,
    "Add": fw.add,
    "And": fw.logical_and,
    "ArgMax": _place(fw.argmax),
    "ArgMin": _place(fw.argmin),
    "Asin": fw.asin,
    "Asinh": fw.asinh,
    "Atan": fw.atan,
    "Atanh": fw.atanh,
    "BatchNormalization": _batch_normalized,
    "BitShift": _shifted,
    "BitwiseAnd": fw.bitwise_and,
    "BitwiseNot": fw.bitwise_invert,
    "BitwiseOr": fw.bitwise_or,
    "BitwiseXor": fw.bitwise_xor,
    "Cast": lambda x, *, to, **rounding: x.astype(dtype_of(to)),
    "CastLike": lambda x, like, **rounding: x.astype(like.dtype),
    "Ceil": fw.ceil,
    "Celu": lambda x, *, alpha=1.0: fw.maximum(x, 0) + fw.minimum(alpha * fw.expm1(x / alpha), 0),
    "Clip": _clipped,
    "Concat": lambda *xs, axis: fw.concat(xs, axis=axis),
    "ConstantOfShape": _constant_of_shape,
    "Cos": fw.cos,
    "Cosh": fw.cosh,
    "CumProd": _scanned(fw.cumprod, 1),
    "CumSum": _scanned(fw.cumsum, 0),
    "Div": _divided,
    "Det": fw.linalg.det,
    "Einsum": lambda *xs, equation: fw.einsum(equation, *xs),
    "Elu": lambda x, *, alpha=1.0: fw.where(x < 0, alpha * fw.expm1(x), x),
    "Equal": fw.equal,
    "Erf": fw.erf,
    "Exp": fw.exp,
    "Expand": _expanded,
    "EyeLike": _eye_like,
    "Flatten": _flat,
    "Floor": fw.floor,
    "Gather": _gathered,
    "GatherElements": _gathered_along,
    "Gelu": _gelu,
    "Gemm": _product_and_sum,
    "GlobalAveragePool": lambda x: x.mean(_spatial(x), keepdims=True),
    "GlobalMaxPool": lambda x: x.max(_spatial(x), keepdims=True),
    "Greater": fw.greater,
    "GreaterOrEqual": fw.greater_equal,
    "HardSigmoid": lambda x, *, alpha=0.2, beta=0.5: fw.clip(alpha * x + beta, 0, 1),
    "HardSwish": lambda x: x * fw.clip(x / 6 + 0.5, 0, 1),
    "Identity": lambda x: x,
    "IsInf": _infinite,
    "IsNaN": fw.isnan,
    "LayerNormalization": _normalized,
    "LeakyRelu": lambda x, *, alpha=0.01: fw.where(x < 0, alpha * x, x),
    "Less": fw.less,
    "LessOrEqual": fw.less_equal,
    "Log": fw.log,
    "LogSoftmax": lambda x, *, axis=-1: fw.log_softmax(x, axis=axis),
    "MatMul": fw.matmul,
    "Max": _folded(fw.maximum),
    "Mean": lambda *xs: _folded(fw.add)(*xs) / len(xs),
    "Min": _folded(fw.minimum),
    "Mish": lambda x: x * fw.tanh(fw.softplus(x)),
    "Mod": lambda x, y, *, fmod=0: fw.fmod(x, y) if fmod else fw.remainder(x, y),
    "Mul": fw.multiply,
    "Neg": fw.negative,
    "Not": fw.logical_not,
    "OneHot": _one_hot,
    "Or": fw.logical_or,
    "PRelu": lambda x, slope: fw.where(x < 0, slope * x, x),
    "Pad": _padded,
    "Pow": lambda x, y: fw.power(x, y).astype(x.dtype),
    "Range": _range,
    "Reciprocal": fw.reciprocal,
    "ReduceL1": _reduced(lambda x, axes, keep: fw.abs(x).sum(axes, keepdims=keep)),
    "ReduceL2": _reduced(lambda x, axes, keep: fw.sqrt((x * x).sum(axes, keepdims=keep))),
    "ReduceLogSum": _reduced(lambda x, axes, keep: fw.log(x.sum(axes, keepdims=keep))),
    "ReduceLogSumExp": _reduced(lambda x, axes, keep: fw.logsumexp(x, axis=axes, keepdims=keep)),
    "ReduceMax": _reduced(lambda x, axes, keep: x.max(axes, keepdims=keep)),
    "ReduceMean": _reduced(lambda x, axes, keep: x.mean(axes, keepdims=keep)),
    "ReduceMin": _reduced(lambda x, axes, keep: x.min(axes, keepdims=keep)),
    "ReduceProd": _reduced(lambda x, axes, keep: x.prod(axes, keepdims=keep)),
    "ReduceSum": _reduced(lambda x, axes, keep: x.sum(axes, keepdims=keep)),
    "ReduceSumSquare": _reduced(lambda x, axes, keep: (x * x).sum(axes, keepdims=keep)),
    "Relu": fw.relu,
    "Reshape": _reshaped,
    "Round": fw.round,
    "Selu": lambda x, *, alpha=_SELU_ALPHA, gamma=_SELU_GAMMA: gamma * fw.where(x > 0, x, alpha * fw.expm1(x)),
    "Shape": _shape,
    "Shrink": lambda x, *, bias=0.0, lambd=0.5: fw.where(x < -lambd, x + bias, fw.where(x > lambd, x - bias, 0 * x)),
    "Sigmoid": fw.sigmoid,
    "Sign": fw.sign,
    "Sin": fw.sin,
    "Sinh": fw.sinh,
    "Size": lambda x: fw.asarray(np.int64(x.size)),
    "Slice": _sliced,
    "Softmax": lambda x, *, axis=-1: fw.softmax(x, axis=axis),
    "Softplus": fw.softplus,
    "Softsign": lambda x: x / (1 + fw.abs(x)),
    "Split": _split,
    "Sqrt": fw.sqrt,
    "Squeeze": _squeezed,
    "Sub": fw.subtract,
    "Sum": _folded(fw.add),
    "Swish": lambda x, *, alpha=1.0: x * fw.sigmoid(alpha * x),
    "Tan": fw.tan,
    "Tanh": fw.tanh,
    "ThresholdedRelu": lambda x, *, alpha=1.0: fw.where(x > alpha, x, 0 * x),
    "Tile": lambda x, repeats: fw.tile(x, tuple(ints(repeats))),
    "TopK": _top,
    "Transpose": lambda x, *, perm=None: x.transpose(perm),
    "Trilu": _triangle,
    "Unsqueeze": lambda x, axes: fw.expand_dims(x, axis=tuple(ints(axes))),
    "Where": fw.where,
    "Xor": fw.logical_xor,
}
