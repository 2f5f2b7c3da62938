"""Ops over lists of tensors, which optimizers call: one kernel of the device records them for the whole list."""

from __future__ import annotations

import torch

from fusewire_torch.kernels.elementwise import pointwise
from fusewire_torch.table import Table

TABLE = Table()

# The op of one tensor, and how the overloads of the op of a list are called that take its further operands.
_OPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "add": ("add.Tensor", ("Scalar", "List", "ScalarList", "Tensor")),
    "sub": ("sub.Tensor", ("Scalar", "List", "ScalarList")),
    "mul": ("mul.Tensor", ("Scalar", "List", "ScalarList", "Tensor")),
    "div": ("div.Tensor", ("Scalar", "List", "ScalarList", "Tensor")),
    "maximum": ("maximum", ("Scalar", "List", "ScalarList")),
    "minimum": ("minimum", ("Scalar", "List", "ScalarList")),
    "clamp_min": ("maximum", ("Scalar", "List", "ScalarList")),
    "clamp_max": ("minimum", ("Scalar", "List", "ScalarList")),
    "pow": ("pow.Tensor_Tensor", ("Scalar", "List", "ScalarList")),
    "addcmul": ("addcmul", ("Scalar", "ScalarList", "Tensor")),
    "addcdiv": ("addcdiv", ("Scalar", "ScalarList", "Tensor")),
    "lerp": ("lerp.Tensor", ("Scalar", "List", "ScalarList")),
    **{
        name: (name, ("",))
        for name in ("sqrt", "rsqrt", "reciprocal", "neg", "abs", "exp", "log", "sign", "sigmoid", "tanh", "erf")
        + ("expm1", "log1p", "log2", "log10", "sin", "cos", "tan", "floor", "ceil", "round", "trunc")
    },
}


def _fill_table() -> None:
    for name, (one, overloads) in _OPS.items():
        compute = pointwise.TABLE.values[one]
        for overload in overloads:
            suffix = f".{overload}" if overload else ""
            for packet in (f"_foreach_{name}", f"_foreach_{name}_"):
                if (
                    hasattr(torch.ops.aten, packet)
                    and (overload or "default") in getattr(torch.ops.aten, packet).overloads()
                ):
                    TABLE.lists[f"{packet}{suffix}"] = compute


_fill_table()
