"""Defines the scalar body of each op: its expression in generated text, for each class of dtypes. Pure.

In an expression, `{0}`, `{1}`, … stand for the operands, and `{t}` for the suffix of the type in which the expression
computes. The functions `fw_…` are defined in the prelude, the text that is compiled before every kernel. A plain
operator is used if the operator means the same in every dialect. A variable of type `uint8_t` holds a boolean, as 0 or
1. A variable of type float holds a float16 or bfloat16, as the equal float. Ops on float16 and bfloat16 compute in
float and round the result. Ops that only select one of their operands' values do not round.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from fusewire_kernels.ops.written_parts import part_of
from fusewire_protos.ops.dtypes import DType

HEAVY_WEIGHT = 20  # of a function such as tanh
_WEIGHT_OF_ROUNDING = 6


class Body(NamedTuple):
    """The expressions of an op for floating, integer and boolean operands.

    An expression is None if the op does not take such operands. If `only_selects` is true, the result is always a value
    of the operands' dtype, so the result needs no rounding. `weight` is the approximate length of the longest chain of
    dependent operations in the expression. `of_dtype` has the expressions for the dtypes of these names, in
    place of the others.
    """

    floating: str | None
    integer: str | None = None
    boolean: str | None = None
    only_selects: bool = False
    weight: int = 1
    of_dtype: Mapping[str, str] = MappingProxyType({})

    def template(self, dtype: DType) -> str | None:
        """Returns the expression for operands of `dtype`, or None if the op does not take them."""
        if dtype.name in self.of_dtype:
            return self.of_dtype[dtype.name]
        if dtype.is_floating:
            return self.floating
        return self.boolean if dtype.is_boolean else self.integer


def _function(op: str, operands: int) -> str:
    """Returns the call of the prelude's function for an op."""
    return f"fw_{op}_{{t}}({', '.join(f'{{{number}}}' for number in range(operands))})"


def _of_floats(op: str, operands: int = 1) -> Body:
    return Body(_function(op, operands), weight=HEAVY_WEIGHT)


def _of_numbers(
    op: str, operands: int, *, floating: str | None = None, only_selects: bool = False, weight: int = 1
) -> Body:
    call = _function(op, operands)
    return Body(floating or call, call, None, only_selects, weight)


def _of_integers(op: str) -> Body:
    return Body(None, _function(op, 2))


def _of_bits(op: str, operands: int) -> Body:
    """Returns the body of an op on uint64 alone."""
    return Body(None, _function(op, operands), weight=HEAVY_WEIGHT)


def _of_all(op: str, operands: int, *, floating: str | None = None, only_selects: bool = False) -> Body:
    call = _function(op, operands)
    return Body(floating or call, call, call, only_selects)


def _extremum(op: str) -> Body:
    """Returns the body of minimum or maximum. In float16, it selects the other one of two equal zeros, as in NumPy."""
    return _of_all(op, 2, only_selects=True)._replace(of_dtype={"float16": _function(f"first_{op}", 2)})


def _operator(text: str) -> Body:
    return Body(text, text, text, only_selects=True)


BODIES: dict[str, Body] = {
    "add": _of_all("add", 2, floating="{0} + {1}"),
    "subtract": _of_numbers("subtract", 2, floating="{0} - {1}"),
    "multiply": _of_all("multiply", 2, floating="{0} * {1}"),
    "divide": Body("{0} / {1}"),
    "floor_divide": _of_numbers("floor_divide", 2, weight=HEAVY_WEIGHT),
    "remainder": _of_numbers("remainder", 2, weight=HEAVY_WEIGHT),
    "power": _of_numbers("power", 2, weight=HEAVY_WEIGHT),
    "minimum": _extremum("minimum"),
    "maximum": _extremum("maximum"),
    "atan2": _of_floats("atan2", 2),
    "clip": _of_all("clip", 3, only_selects=True),
    "where": _operator("{0} ? {1} : {2}"),
    "equal": _operator("{0} == {1}"),
    "not_equal": _operator("{0} != {1}"),
    "less": _operator("{0} < {1}"),
    "less_equal": _operator("{0} <= {1}"),
    "greater": _operator("{0} > {1}"),
    "greater_equal": _operator("{0} >= {1}"),
    "logical_and": Body(None, None, "{0} & {1}"),
    "logical_or": Body(None, None, "{0} | {1}"),
    "logical_xor": Body(None, None, "{0} ^ {1}"),
    "logical_not": Body(None, None, "{0} ^ 1"),
    "bitwise_and": Body(None, "{0} & {1}", "{0} & {1}"),
    "bitwise_or": Body(None, "{0} | {1}", "{0} | {1}"),
    "bitwise_xor": Body(None, "{0} ^ {1}", "{0} ^ {1}"),
    "bitwise_invert": Body(None, "~{0}", "{0} ^ 1"),
    "bitwise_left_shift": _of_integers("bitwise_left_shift"),
    "bitwise_right_shift": _of_integers("bitwise_right_shift"),
    "gcd": _of_integers("gcd")._replace(weight=HEAVY_WEIGHT),
    "isnan": _of_all("isnan", 1, only_selects=True),
    "isinf": _of_all("isinf", 1, only_selects=True),
    "isfinite": _of_all("isfinite", 1, only_selects=True),
    "negative": _of_numbers("negative", 1, floating="-{0}", only_selects=True),
    "abs": _of_all("abs", 1, only_selects=True),
    "sign": _of_numbers("sign", 1, only_selects=True),
    "square": _of_numbers("square", 1),
    "round": _of_all("round", 1, only_selects=True),
    "floor": _of_all("floor", 1, only_selects=True),
    "ceil": _of_all("ceil", 1, only_selects=True),
    "trunc": _of_all("trunc", 1, only_selects=True),
    "sqrt": _of_floats("sqrt"),
    "rsqrt": _of_floats("rsqrt"),
    "exp": _of_floats("exp"),
    "expm1": _of_floats("expm1"),
    "log": _of_floats("log"),
    "log1p": _of_floats("log1p"),
    "exp2": _of_floats("exp2"),
    "log2": _of_floats("log2"),
    "log10": _of_floats("log10"),
    "sin": _of_floats("sin"),
    "cos": _of_floats("cos"),
    "tan": _of_floats("tan"),
    "tanh": _of_floats("tanh"),
    "sigmoid": _of_floats("sigmoid"),
    "relu": _of_numbers("relu", 1, only_selects=True),
    "gelu": _of_floats("gelu"),
    "silu": _of_floats("silu"),
    "softplus": _of_floats("softplus"),
    "erf": _of_floats("erf"),
    "bits_of_float": Body(
        "fw_bits_{t}({0})",
        only_selects=True,
        of_dtype={"float16": "fw_store_f16({0})", "bfloat16": "fw_store_bf16({0})"},
    ),
    "float_of_bits": Body(
        None,
        only_selects=True,
        of_dtype={
            "uint16": "fw_load_f16({0})",
            "uint32": "fw_from_bits_f32({0})",
            "uint64": "fw_from_bits_f64({0})",
        },
    ),
    "random_bits": _of_bits("random_bits", 3),
    "normal_of_bits": _of_bits("normal_of_bits", 1),
    "exponential_of_bits": _of_bits("exponential_of_bits", 1),
}


def body_of(op: str) -> Body:
    """Returns the body of an op. Raises LookupError if it has none."""
    return part_of(op, BODIES, "body: add it to BODIES in ops/bodies.py")


def weight(op: str, dtype: DType) -> int:
    """Returns the approximate length of the longest chain of dependent operations in a scalar body of this `dtype`."""
    body = body_of(op)
    is_rounded = dtype.is_half and not body.only_selects
    return body.weight + (_WEIGHT_OF_ROUNDING if is_rounded else 0)
