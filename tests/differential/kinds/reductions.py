"""Calls of functions along axes: reductions, sums of first elements, orders and differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import ALL, DISTINCT_ENOUGH, FLOATS, NUMBERS, SUMMED, WILD, Values
from tests.differential.kinds.patterns import (
    Kind,
    Random,
    along,
    elements,
    named,
    reduced,
)

_NO_NAN = Values(9, is_special=False)
_TURNS = Values(3, is_special=False)  # far from half a turn apart
_NAN_SHARE = 0.3


def _with_nan(*rest: Any, **options: Any) -> Kind:
    """One operand along one axis, some of whose elements are NaN, but not the first of a line."""
    whole = along(NUMBERS, _NO_NAN, least=1, keepdims=(True, False))

    def drawn(name: str, random: Random) -> Call:
        call = whole(name, random)
        (x,), axis = call.arrays, call.options["axis"]
        if x.dtype.kind == "f":
            x[(random.random(x.shape) < _NAN_SHARE) & (np.indices(x.shape)[axis] > 0)] = np.nan
        return replace(call, rest=rest, options={**call.options, **options})

    return drawn


def _of_vectors(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, NUMBERS), draw.shape(random, least_rank=1, most_rank=3, least=1), SUMMED)
    axis = int(random.integers(-x.ndim, x.ndim))
    functions = (_spread, _ends, _upside_down)
    function = functions[int(random.integers(len(functions)))]
    return Call(name, (x,), placed=lambda given: (function, axis, *given))


def _spread(vector: Any) -> Any:
    return vector.max() - vector.min()


def _ends(vector: Any) -> Any:
    return vector[[0, -1]].reshape(1, 2)


def _upside_down(vector: Any) -> Any:
    return -vector[::-1]


KINDS: dict[str, Kind] = {
    **named(reduced(), "sum any all count_nonzero nansum"),
    **named(reduced(values=Values(1, is_special=False)), "prod nanprod"),
    **named(reduced(NUMBERS, WILD, least=1), "max min amax amin ptp nanmax nanmin"),
    **named(reduced(NUMBERS, least=1), "mean nanmean"),
    **named(reduced(NUMBERS, _NO_NAN, least=2, ddof=(0,)), "var std nanvar nanstd"),
    **named(along(NUMBERS, DISTINCT_ENOUGH, least=1, keepdims=(True, False)), "argmax argmin"),
    "average": along(FLOATS, _NO_NAN, least=1),
    "median": along(NUMBERS, _NO_NAN, least=1, keepdims=(True, False)),
    **named(along(NUMBERS, SUMMED), "cumsum cumulative_sum"),
    **named(along(NUMBERS, Values(1, is_special=False)), "cumprod cumulative_prod"),
    **named(along(NUMBERS), "sort"),
    "argsort": along(NUMBERS, stable=(True,)),
    **named(_with_nan(), "nanargmax nanargmin nanmedian"),
    "nanpercentile": _with_nan([0.0, 30.0, 100.0]),
    "nanquantile": _with_nan(0.7),
    **named(along(NUMBERS, SUMMED), "nancumsum"),
    **named(along(NUMBERS, Values(1)), "nancumprod"),
    "gradient": along(NUMBERS, _NO_NAN, least=3, edge_order=(1, 2)),
    "unwrap": along(NUMBERS, _TURNS, least=1),
    "apply_along_axis": _of_vectors,
    "diff": along(ALL, SUMMED, n=(0, 1, 2)),
    **named(along(NUMBERS, SUMMED), "trapezoid"),
    **named(along(), "flip"),
    "ediff1d": elements(1, NUMBERS, SUMMED),
    "unstack": along(),
}
