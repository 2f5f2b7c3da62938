"""The table of the derivatives: each op of the catalogue has a rule, or a derivative of zero."""

from __future__ import annotations

from fusewire._api.gradients.rules.fourier import FOURIER
from fusewire._api.gradients.rules.linear_algebra import LINEAR_ALGEBRA
from fusewire._api.gradients.rules.lines import LINES
from fusewire._api.gradients.rules.moves import MOVES
from fusewire._api.gradients.rules.pointwise import POINTWISE
from fusewire._api.gradients.rules.products import PRODUCTS
from fusewire._api.gradients.rules.reductions import REDUCTIONS
from fusewire._api.gradients.rules.rule import Rule

RULES: dict[str, Rule] = {**POINTWISE, **REDUCTIONS, **PRODUCTS, **LINES, **MOVES, **LINEAR_ALGEBRA, **FOURIER}

# Their results are no floats, or do not change with a small change of their operands, or they take no float.
WITHOUT_DERIVATIVE = frozenset(
    (
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "any", "all"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift"),
        *("gcd", "floor_divide", "sign", "round", "floor", "ceil", "trunc", "bits_of_float", "float_of_bits"),
        *("argmin", "argmax", "argsort", "one_hot"),
        *("full", "arange", "linspace", "eye", "random_bits", "normal_of_bits", "exponential_of_bits"),
    )
)
