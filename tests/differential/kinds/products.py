"""Calls of products."""

from __future__ import annotations

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import TAME
from tests.differential.kinds.patterns import (
    Kind,
    named,
    product,
    vectors,
)

KINDS: dict[str, Kind] = {
    **named(product("ab,bc", "a,ab", "ab,b", "dab,bc", "dab,dbc", "a,a"), "matmul"),
    "dot": product("ab,bc", "a,a", "ab,b"),
    "inner": product("ab,cb", "a,a"),
    "outer": product("a,b"),
    "vdot": product("a,a"),
    "vecdot": product("a,a", "ba,ba", "cba,ba"),
    "matvec": product("ab,b", "cab,b"),
    "vecmat": product("a,ab", "ca,cab"),
    "tensordot": product("ab,bc", "dab,bc", axes=1),
    "kron": product("ab,cd", "a,b"),
    **named(vectors(2), "convolve correlate"),
    "cross": lambda name, random: Call(name, tuple(draw.array(random, "float64", (4, 3), TAME) for _ in range(2))),
}
