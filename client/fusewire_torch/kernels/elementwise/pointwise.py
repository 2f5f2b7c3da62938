"""Elementwise ops: a function of arrays, and PyTorch's rule of the result's dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import pi
from typing import Any

import torch

import fusewire as fw
from fusewire import Array, DtypeError
from fusewire_protos.ops.dtypes import DType
from fusewire_torch.kernels.complex import functions
from fusewire_torch.kernels.complex.functions import of_both
from fusewire_torch.promotion import Kind, as_result, mask_of, promoted
from fusewire_torch.storage import Elementwise, array_of
from fusewire_torch.table import Table

TABLE = Table()

_HALVES = ("float16", "bfloat16")
_KEEPS, _FLOATS, _BOOLS = Kind.DEFAULT, Kind.INT_TO_FLOAT, Kind.ALWAYS_BOOL


def elementwise(function: Callable[..., Any], kind: Kind = _KEEPS, operands: int = 0) -> Callable[..., Array]:
    """Returns the function of tensors that does `function` of arrays in the dtype of the computation.

    The first `operands` arguments are operands, by default all; others are passed as they are.
    """
    return Elementwise(function, kind, operands, promoted, is_test=kind is _BOOLS)


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that computes with halves in float32, so that only its result is rounded to a half."""

    def compute(*arguments: Any, **options: Any) -> Any:
        halves = [each.dtype for each in arguments if isinstance(each, Array) and each.dtype.name in _HALVES]
        if not halves:
            return function(*arguments, **options)
        wide = [each.astype("float32") if isinstance(each, Array) else each for each in arguments]
        return function(*wide, **options).astype(halves[0])

    return compute


def _add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return x + y if alpha == 1 else x + y * alpha


def _subtract(x: Any, y: Any, alpha: Any = 1) -> Any:
    return x - y if alpha == 1 else x - y * alpha


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    return start + weight * (end - start)


def _of_one_dtype(operands: tuple[Any, ...], kind: Any) -> tuple[list[Any], DType]:
    """Returns promoted operands of `lerp`. Raises DtypeError for dtypes that PyTorch does not mix in it."""
    start, end, *weights = operands
    of_weights = [each.dtype for each in weights if isinstance(each, torch.Tensor) and each.dim()]
    if not (start.is_floating_point() or start.is_complex()):
        raise NotImplementedError(f"lerp is not implemented for {start.dtype}")
    if {start.dtype} != {end.dtype, *of_weights}:
        raise DtypeError(f"lerp mixes no dtypes: it got {[start.dtype, end.dtype, *of_weights]}")
    return promoted(operands, kind)


def _addcmul(x: Any, y: Any, z: Any, value: Any = 1) -> Any:
    return x + y * z if value == 1 else x + value * y * z


def _addcdiv(x: Any, y: Any, z: Any, value: Any = 1) -> Any:
    return x + y / z if value == 1 else x + value * y / z


def _clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounded = x if low is None else fw.maximum(x, low)
    return bounded if high is None else fw.minimum(bounded, high)


def _sign_or_zero(x: Any) -> Any:
    return x if x.dtype.name == "bool" else fw.sign(x)


def _threshold(x: Any, limit: Any, value: Any) -> Any:
    return fw.where(x <= limit, value, x)


def _threshold_backward(grad: Any, x: Any, limit: Any) -> Any:
    return fw.where(x <= limit, 0, grad)


def _angle(x: Any) -> Any:
    if x.dtype.is_complex:
        return fw.angle(x)
    return fw.where(fw.isnan(x), x, fw.where(x < 0, pi, 0.0))


def _floor_rounded(x: Any, y: Any) -> Any:
    return fw.floor_divide(x, y)


_BINARY: dict[str, Callable[..., Any]] = {
    "add.Tensor": _add,
    "sub.Tensor": _subtract,
    "rsub.Tensor": lambda x, y, alpha=1: _subtract(y, x, alpha),
    "mul.Tensor": operator.mul,
    "maximum": fw.maximum,
    "minimum": fw.minimum,
    "fmax": fw.fmax,
    "fmin": fw.fmin,
    "remainder.Tensor": fw.remainder,
    "remainder.Scalar": fw.remainder,
    "remainder.Scalar_Tensor": fw.remainder,
    "fmod.Tensor": fw.fmod,
    "fmod.Scalar": fw.fmod,
    "floor_divide": fw.floor_divide,
    "pow.Tensor_Tensor": lambda x, y: x**y,
    "pow.Tensor_Scalar": lambda x, y: x**y,
    "pow.Scalar": lambda x, y: x**y,
    "bitwise_and.Tensor": fw.bitwise_and,
    "bitwise_or.Tensor": fw.bitwise_or,
    "bitwise_xor.Tensor": fw.bitwise_xor,
    "bitwise_left_shift.Tensor": fw.bitwise_left_shift,
    "bitwise_right_shift.Tensor": fw.bitwise_right_shift,
    **dict.fromkeys(("__lshift__.Tensor", "__lshift__.Scalar"), fw.bitwise_left_shift),
    **dict.fromkeys(("__rshift__.Tensor", "__rshift__.Scalar"), fw.bitwise_right_shift),
    "gcd": fw.gcd,
    "lcm": fw.lcm,
    "hypot": fw.hypot,
    "heaviside": fw.heaviside,
    "nextafter": fw.nextafter,
    "clamp": _clamp,
    "clamp.Tensor": _clamp,
    "clamp_min": fw.maximum,
    "clamp_min.Tensor": fw.maximum,
    "clamp_max": fw.minimum,
    "clamp_max.Tensor": fw.minimum,
    "threshold": _threshold,
    "threshold_backward": _threshold_backward,
    "hardshrink_backward": lambda grad, x, limit: fw.where(fw.abs(x) <= limit, 0, grad),
    "softshrink_backward": lambda grad, x, limit: fw.where(fw.abs(x) <= limit, 0, grad),
    "relu": fw.relu,
    "tanh_backward": lambda grad, y: grad * fw.conj(1 - y * y),
    "sigmoid_backward": lambda grad, y: grad * fw.conj((1 - y) * y),
    "neg": operator.neg,
    "sgn": _sign_or_zero,
    "sign": _sign_or_zero,
    "round": fw.round,
    "floor": fw.floor,
    "ceil": fw.ceil,
    "trunc": fw.trunc,
    "bitwise_not": fw.bitwise_invert,
}
_FLOATING: dict[str, Callable[..., Any]] = {
    "div.Tensor": operator.truediv,
    "atan2": fw.atan2,
    "copysign.Tensor": fw.copysign,
    "logaddexp": of_both(fw.logaddexp, functions.logaddexp),
    "logaddexp2": fw.logaddexp2,
    "sqrt": fw.sqrt,
    "rsqrt": of_both(fw.rsqrt, functions.rsqrt),
    "reciprocal": fw.reciprocal,
    "exp": fw.exp,
    "exp2": of_both(fw.exp2, functions.exp2),
    "expm1": fw.expm1,
    "log": fw.log,
    "log2": fw.log2,
    "log10": fw.log10,
    "log1p": fw.log1p,
    "sin": fw.sin,
    "cos": fw.cos,
    "tan": fw.tan,
    "asin": fw.asin,
    "acos": fw.acos,
    "atan": fw.atan,
    "sinh": fw.sinh,
    "cosh": fw.cosh,
    "tanh": fw.tanh,
    "asinh": fw.asinh,
    "acosh": fw.acosh,
    "atanh": fw.atanh,
    "sigmoid": of_both(fw.sigmoid, functions.sigmoid),
    "erf": fw.erf,
    "sinc": of_both(fw.sinc, functions.sinc),
    "silu": of_both(fw.silu, functions.silu),
}
_TESTING: dict[str, Callable[..., Any]] = {
    **{f"eq.{kind}": lambda x, y: x == y for kind in ("Tensor", "Scalar")},
    **{f"ne.{kind}": lambda x, y: x != y for kind in ("Tensor", "Scalar")},
    **{f"lt.{kind}": lambda x, y: x < y for kind in ("Tensor", "Scalar")},
    **{f"le.{kind}": lambda x, y: x <= y for kind in ("Tensor", "Scalar")},
    **{f"gt.{kind}": lambda x, y: x > y for kind in ("Tensor", "Scalar")},
    **{f"ge.{kind}": lambda x, y: x >= y for kind in ("Tensor", "Scalar")},
    "logical_and": fw.logical_and,
    "logical_or": fw.logical_or,
    "logical_xor": fw.logical_xor,
    "logical_not": fw.logical_not,
    "isnan": fw.isnan,
    "isinf": fw.isinf,
    "isfinite": fw.isfinite,
    "isposinf": fw.isposinf,
    "isneginf": fw.isneginf,
    "signbit": fw.signbit,
}
for _entries, _kind in ((_BINARY, _KEEPS), (_FLOATING, _FLOATS), (_TESTING, _BOOLS)):
    for _name, _function in _entries.items():
        TABLE.values[_name] = elementwise(_function, _kind)
TABLE.values["abs"] = elementwise(fw.abs, Kind.COMPLEX_TO_FLOAT)
TABLE.values["lerp.Scalar"] = Elementwise(_lerp, _KEEPS, 2, _of_one_dtype, is_test=False)
TABLE.values["lerp.Tensor"] = Elementwise(_lerp, _KEEPS, 0, _of_one_dtype, is_test=False)
TABLE.values["addcmul"] = elementwise(in_single(_addcmul))
TABLE.values["addcdiv"] = elementwise(in_single(_addcdiv), _FLOATS)


@TABLE.value("angle")
def _angle_of(x: torch.Tensor) -> Array:
    return elementwise(_angle, Kind.COMPLEX_TO_FLOAT if x.is_complex() else _FLOATS)(x)


@TABLE.value("hardtanh")
def _hardtanh(x: torch.Tensor, min_val: Any = -1, max_val: Any = 1) -> Array:
    """Clamps. Of integers, the bounds are integers too."""
    bounds = (min_val, max_val) if x.dtype.is_floating_point else (int(min_val), int(max_val))
    return elementwise(_clamp)(x, *bounds)


@TABLE.value("div.Tensor_mode")
def _divided(x: Any, y: Any, *, rounding_mode: str | None = None) -> Array:
    if rounding_mode is None:
        return elementwise(lambda a, b: a / b, _FLOATS)(x, y)
    return elementwise(fw.floor_divide if rounding_mode == "floor" else _truncated_quotient)(x, y)


def _truncated_quotient(x: Any, y: Any) -> Any:
    """Returns the quotient rounded towards zero. Of integers, the floor of the absolute values' with the sign."""
    lead = x if isinstance(x, Array) else y
    if lead.dtype.is_floating:
        return fw.trunc(x / y)
    quotient = fw.floor_divide(x, y)
    is_rounded_down = fw.logical_and(quotient * y != x, quotient < 0)
    return quotient + is_rounded_down.astype(lead.dtype)


@TABLE.value("where.self")
def _selected(condition: torch.Tensor, x: Any, y: Any) -> Array:
    (on_true, on_false), result = promoted((x, y), _KEEPS)
    return as_result(fw.where(_condition_of(condition), on_true, on_false), result)


def _condition_of(condition: torch.Tensor) -> Array:
    """Returns a condition, which may be of uint8 too, as PyTorch's earlier masks."""
    return array_of(condition).astype("bool") if condition.dtype is torch.uint8 else mask_of(condition)


@TABLE.value("gelu")
def _gelu(x: torch.Tensor, *, approximate: str = "none") -> Array:
    if approximate == "none":
        return elementwise(fw.gelu, _FLOATS)(x)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return elementwise(_gelu_by_tanh, _FLOATS)(x)


def _gelu_by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + fw.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@TABLE.value("softplus")
def _softplus(x: torch.Tensor, beta: Any = 1, threshold: Any = 20) -> Array:
    def compute(array: Array) -> Array:
        scaled = array * beta
        return fw.where(scaled > threshold, array, fw.softplus(scaled) / beta)

    return elementwise(compute, _FLOATS)(x)
