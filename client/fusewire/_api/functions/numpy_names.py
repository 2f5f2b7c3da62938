"""NumPy's other names of functions. Each is the same function as the one of the standard's name."""

from __future__ import annotations

from fusewire._api.catalogue.catalogued import (
    abs,  # noqa: A004  # the standard's name
    atan2,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_right_shift,
    divide,
    max,  # noqa: A004
    min,  # noqa: A004
    remainder,
)
from fusewire._api.functions.elementwise.choices import round  # noqa: A004
from fusewire._api.functions.elementwise.complex_numbers import conj
from fusewire._api.functions.elementwise.trigonometry import acos, acosh, asin, asinh, atan, atanh, deg2rad, rad2deg

__all__ = [
    "absolute",
    "amax",
    "amin",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "bitwise_not",
    "conjugate",
    "degrees",
    "invert",
    "left_shift",
    "mod",
    "radians",
    "right_shift",
    "true_divide",
]

absolute = abs
amax, amin = max, min
arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
around = round
bitwise_not = invert = bitwise_invert
conjugate = conj
degrees, radians = rad2deg, deg2rad
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
mod = remainder
true_divide = divide
