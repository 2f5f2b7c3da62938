"""Says for each covered name how its calls are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import ALL, DISTINCT_ENOUGH, FLOATS, INTEGERS, NUMBERS, PLAIN, SUMMED, TAME, WILD, Values

Random = np.random.Generator
Kind = Callable[[str, Random], Call]


def _elements(count: int, among: Sequence[str] = ALL, values: Values = WILD, **options: Any) -> Kind:
    """Operands that broadcast to one another, each of a dtype of its own."""

    def drawn(name: str, random: Random) -> Call:
        whole = draw.shape(random)
        shapes = [whole if count == 1 else draw.thinned(random, whole) for _ in range(count)]
        arrays = (draw.array(random, draw.dtype(random, among), each, values) for each in shapes)
        return Call(name, tuple(arrays), options=options)

    return drawn


def _alike(count: int, among: Sequence[str], values: Values = WILD) -> Kind:
    """As `_elements`, but of one dtype: those whose pairs promote to a float have no meaning here."""

    def drawn(name: str, random: Random) -> Call:
        whole, dtype = draw.shape(random), draw.dtype(random, among)
        arrays = (draw.array(random, dtype, draw.thinned(random, whole), values) for _ in range(count))
        return Call(name, tuple(arrays))

    return drawn


def _reduced(among: Sequence[str] = ALL, values: Values = SUMMED, *, least: int = 0, **more: Sequence[Any]) -> Kind:
    """One operand, along one, several or all axes. `least` is the least size of an axis."""

    def drawn(name: str, random: Random) -> Call:
        x = draw.array(random, draw.dtype(random, among), draw.shape(random, least=least), values)
        options = {"axis": _axes(random, x.ndim), "keepdims": bool(random.random() < 0.5)}
        return Call(name, (x,), options={**options, **_chosen(random, more)})

    return drawn


def _axes(random: Random, rank: int) -> Any:
    if rank == 0 or random.random() < 0.3:
        return None
    if random.random() < 0.5:
        return int(random.integers(-rank, rank))
    return tuple(map(int, random.permutation(rank)[: random.integers(1, rank, endpoint=True)]))


def _along(
    among: Sequence[str] = ALL,
    values: Values = WILD,
    *,
    least: int = 0,
    least_rank: int = 1,
    **more: Sequence[Any],
) -> Kind:
    """One operand, along one axis."""

    def drawn(name: str, random: Random) -> Call:
        x = draw.array(
            random, draw.dtype(random, among), draw.shape(random, least_rank=least_rank, least=least), values
        )
        axis = int(random.integers(-x.ndim, x.ndim))
        return Call(name, (x,), options={"axis": axis, **_chosen(random, more)})

    return drawn


def _chosen(random: Random, more: dict[str, Sequence[Any]]) -> dict[str, Any]:
    return {name: values[int(random.integers(len(values)))] for name, values in more.items()}


def _shaped(least_rank: int = 0, most_rank: int = draw.MOST_RANK, *rest: Any, least: int = 0, **more: Any) -> Kind:
    """One operand of any dtype and of such a rank; `rest` holds further arguments, or functions that draw them."""

    def drawn(name: str, random: Random) -> Call:
        dims = draw.shape(random, least_rank=least_rank, most_rank=most_rank, least=least)
        x = draw.array(random, draw.dtype(random, ALL), dims)
        arguments = [each(random, dims) if callable(each) else each for each in rest]
        options = {key: each(random, dims) if callable(each) else each for key, each in more.items()}
        return Call(name, (x,), tuple(arguments), options)

    return drawn


def _together(least_rank: int = 0, most_rank: int = draw.MOST_RANK, *, with_axis: bool = False) -> Kind:
    """A list of operands of one shape and of any dtypes."""

    def drawn(name: str, random: Random) -> Call:
        dims = draw.shape(random, least_rank=least_rank, most_rank=most_rank)
        arrays = tuple(draw.array(random, draw.dtype(random, ALL), dims) for _ in range(int(random.integers(1, 4))))
        axis = {"axis": int(random.integers(-len(dims), len(dims)))} if with_axis else {}
        return Call(name, arrays, options=axis, is_list=True)

    return drawn


def _product(*subscripts: str, **options: Any) -> Kind:
    """Two operands whose axes have these letters; one letter is one size."""

    def drawn(name: str, random: Random) -> Call:
        chosen = subscripts[int(random.integers(len(subscripts)))]
        sizes = {letter: int(random.choice((0, 1, 2, 3, 7, 16))) for letter in chosen if letter.isalpha()}
        dtype = draw.dtype(random, NUMBERS)
        shapes = [tuple(sizes[letter] for letter in each) for each in chosen.split(",")]
        return Call(name, tuple(draw.array(random, dtype, each, SUMMED) for each in shapes), options=options)

    return drawn


def _vectors(count: int, among: Sequence[str] = NUMBERS, values: Values = SUMMED, *, least: int = 1) -> Kind:
    def drawn(name: str, random: Random) -> Call:
        sizes = random.integers(least, 12, count)
        dtype = draw.dtype(random, among)
        return Call(name, tuple(draw.array(random, dtype, (int(size),), values) for size in sizes))

    return drawn


def _power(name: str, random: Random) -> Call:
    """Integers have small exponents: a negative one is refused."""
    whole, dtype = draw.shape(random), draw.dtype(random, NUMBERS)
    x = draw.array(random, dtype, draw.thinned(random, whole), WILD)
    y = draw.array(random, dtype, draw.thinned(random, whole), WILD if dtype in FLOATS else TAME)
    return Call(name, (x, y if dtype in FLOATS else np.asarray(y % np.asarray(5, y.dtype))))


def _shift(name: str, random: Random) -> Call:
    whole, dtype = draw.shape(random), draw.dtype(random, INTEGERS)
    x, by = (draw.array(random, dtype, draw.thinned(random, whole), WILD) for _ in range(2))
    return Call(name, (x, np.asarray(by % np.asarray(8 * by.itemsize, by.dtype))))


def _clip(name: str, random: Random) -> Call:
    whole, dtype = draw.shape(random), draw.dtype(random, NUMBERS)
    x = draw.array(random, dtype, whole, WILD)
    low, high = (draw.array(random, dtype, draw.thinned(random, whole), TAME) for _ in range(2))
    return Call(name, (x, low, high))


def _where(name: str, random: Random) -> Call:
    whole = draw.shape(random)
    condition = draw.array(random, "bool", draw.thinned(random, whole))
    x, y = (draw.array(random, draw.dtype(random, ALL), draw.thinned(random, whole)) for _ in range(2))
    return Call(name, (condition, x, y))


def _take(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, most_rank=6, least=1))
    axis = int(random.integers(-x.ndim, x.ndim))
    places = random.integers(0, x.shape[axis], draw.shape(random, most_rank=2))
    return Call(name, (x, np.asarray(places)), options={"axis": axis})


def _take_along(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, least=1))
    axis = int(random.integers(-x.ndim, x.ndim))
    return Call(name, (x, random.integers(0, x.shape[axis], x.shape)), options={"axis": axis})


def _search(name: str, random: Random) -> Call:
    dtype = draw.dtype(random, NUMBERS)
    line = np.sort(draw.array(random, dtype, (int(random.integers(0, 12)),), DISTINCT_ENOUGH))
    v = draw.array(random, dtype, draw.shape(random), DISTINCT_ENOUGH)
    if name == "digitize":
        return Call(name, (v, line[~np.isnan(line)]), options={"right": bool(random.random() < 0.5)})
    return Call(name, (line, v), options={"side": str(random.choice(("left", "right")))})


def _interp(name: str, random: Random) -> Call:
    x = draw.array(random, "float64", draw.shape(random), TAME)
    places = np.sort(random.choice(2000, 9, replace=False) - 1000.0)
    return Call(name, (x, places, draw.array(random, "float64", (9,), TAME)))


def _counted(name: str, random: Random) -> Call:
    return Call(name, (random.integers(0, 9, int(random.integers(1, 30))),))


def _made(*rest: Any, **options: Any) -> Kind:
    """No operands."""
    return lambda name, random: Call(name, (), rest, options)


def _grid(name: str, random: Random) -> Call:
    ends = random.integers(-20, 20, 2) * 0.5
    low, high = (float(each) for each in (np.abs(ends) + 1 if name == "geomspace" else ends / 4))
    return Call(name, (), (low, high, int(random.integers(0, 12))), {"endpoint": bool(random.random() < 0.5)})


def _into(random: Random, dims: draw.Shape) -> draw.Shape:
    """A shape of as many elements, some axes merged and one of size 1 added."""
    count = int(np.prod(dims, dtype=int))
    return (1, count) if random.random() < 0.5 or not dims else (dims[0], count // dims[0] if dims[0] else 0)


def _order(random: Random, dims: draw.Shape) -> draw.Shape:
    return tuple(map(int, random.permutation(len(dims))))


def _an_axis(random: Random, dims: draw.Shape) -> int:
    return int(random.integers(-len(dims), len(dims)))


def _wider(random: Random, dims: draw.Shape) -> draw.Shape:
    grown = tuple(2 if size == 1 else size for size in dims)
    return (3, *grown) if len(dims) < draw.MOST_RANK else grown


def _widths(random: Random, dims: draw.Shape) -> list[tuple[int, int]]:
    return [(int(random.integers(0, 3)), int(random.integers(0, 3))) for _ in dims]


def _small(random: Random, dims: draw.Shape) -> int:
    return int(random.integers(-2, 3))


def _times(random: Random, dims: draw.Shape) -> draw.Shape:
    return tuple(int(random.integers(0, 3)) for _ in dims)


def _parts(axis: int) -> Callable[[Random, draw.Shape], list[int]]:
    return lambda random, dims: sorted(int(random.integers(0, dims[axis] + 1)) for _ in range(2))


def _of(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


_NO_NAN = Values(9, is_special=False)

KINDS: dict[str, Kind] = {
    **_of(_elements(1), "abs absolute isfinite isinf isnan logical_not square"),
    **_of(_elements(1), "ones_like zeros_like argwhere nonzero flatnonzero"),
    **_of(
        _elements(1, NUMBERS),
        "conj conjugate imag real negative positive ceil floor trunc sign nan_to_num fix rint round around",
    ),
    **_of(_elements(1, FLOATS), "isneginf isposinf modf reciprocal"),
    **_of(_elements(1, NUMBERS, TAME), "signbit"),
    **_of(_elements(1, (*INTEGERS, "bool")), "bitwise_invert bitwise_not invert"),
    **_of(_elements(1, NUMBERS), "acos arccos acosh arccosh asin arcsin asinh arcsinh atan arctan atanh arctanh cbrt"),
    **_of(_elements(1, NUMBERS), "cosh sinh tanh exp exp2 expm1 fabs log log10 log1p log2 sqrt"),
    "sinc": _elements(1, FLOATS, PLAIN),
    **_of(_elements(1, NUMBERS), "deg2rad degrees rad2deg radians"),
    **_of(_elements(1, NUMBERS, TAME), "sin cos tan"),
    **_of(_elements(2), "add multiply maximum minimum equal not_equal less less_equal greater greater_equal"),
    **_of(_elements(2), "logical_and logical_or logical_xor fmax fmin"),
    **_of(_elements(2, NUMBERS), "subtract divide true_divide floor_divide remainder mod divmod fmod"),
    **_of(_alike(2, NUMBERS), "atan2 arctan2 hypot logaddexp logaddexp2 float_power heaviside"),
    **_of(_alike(2, FLOATS, TAME), "copysign"),
    **_of(_alike(2, FLOATS), "nextafter"),
    **_of(_alike(2, (*INTEGERS, "bool")), "bitwise_and bitwise_or bitwise_xor"),
    **_of(_shift, "bitwise_left_shift left_shift bitwise_right_shift right_shift"),
    **_of(_power, "pow power"),
    **_of(_elements(2, NUMBERS, DISTINCT_ENOUGH), "isclose allclose"),
    **_of(_alike(2, ALL, DISTINCT_ENOUGH), "isin"),
    **_of(_elements(2), "array_equal broadcast_arrays"),
    "clip": _clip,
    "where": _where,
    "take": _take,
    "take_along_axis": _take_along,
    "searchsorted": _search,
    "digitize": _search,
    "interp": _interp,
    "bincount": _counted,
    **_of(_reduced(), "sum any all count_nonzero nansum"),
    **_of(_reduced(values=Values(1, is_special=False)), "prod nanprod"),
    **_of(_reduced(NUMBERS, WILD, least=1), "max min amax amin ptp nanmax nanmin"),
    **_of(_reduced(NUMBERS, least=1), "mean nanmean"),
    **_of(_reduced(NUMBERS, _NO_NAN, least=2, ddof=(0,)), "var std nanvar nanstd"),
    **_of(_along(NUMBERS, DISTINCT_ENOUGH, least=1, keepdims=(True, False)), "argmax argmin"),
    "average": _along(FLOATS, _NO_NAN, least=1),
    "median": _along(NUMBERS, _NO_NAN, least=1, keepdims=(True, False)),
    **_of(_along(NUMBERS, SUMMED), "cumsum cumulative_sum"),
    **_of(_along(NUMBERS, Values(1, is_special=False)), "cumprod cumulative_prod"),
    **_of(_along(NUMBERS), "sort"),
    "argsort": _along(NUMBERS, stable=(True,)),
    "diff": _along(ALL, SUMMED, n=(0, 1, 2)),
    **_of(_along(NUMBERS, SUMMED), "trapezoid"),
    **_of(_along(), "flip"),
    "ediff1d": _elements(1, NUMBERS, SUMMED),
    "unstack": _along(),
    **_of(_shaped(), "ravel atleast_1d atleast_2d atleast_3d transpose permute_dims"),
    **_of(_shaped(2), "matrix_transpose fliplr flipud rot90 tril triu diagonal"),
    **_of(_shaped(1, 2), "diag"),
    "trace": _product("ab", "abc"),
    "reshape": _shaped(0, 8, _into),
    "broadcast_to": _shaped(0, 8, _wider),
    "expand_dims": _shaped(0, 7, axis=0),
    "squeeze": _shaped(0, 8),
    "swapaxes": _shaped(1, 8, _an_axis, _an_axis),
    "moveaxis": _shaped(1, 8, _an_axis, _an_axis),
    "roll": _shaped(1, 8, _small, axis=_an_axis),
    "pad": _shaped(1, 6, _widths, least=1),
    "tile": _shaped(0, 5, _times),
    "repeat": _shaped(1, 6, 2, axis=_an_axis),
    "split": _shaped(1, 8, _parts(0)),
    "vsplit": _shaped(2, 8, _parts(0)),
    "hsplit": _shaped(2, 8, _parts(1)),
    "dsplit": _shaped(3, 8, _parts(2)),
    "array_split": _shaped(1, 8, 3),
    **_of(_together(1, with_axis=True), "concat concatenate"),
    "stack": _together(1, 7, with_axis=True),
    **_of(_together(1, 6), "hstack vstack dstack"),
    "column_stack": _together(1, 2),
    "meshgrid": lambda name, random: Call(
        name, _vectors(3, ALL, WILD)(name, random).arrays, options={"indexing": "ij"}
    ),
    **_of(_product("ab,bc", "a,ab", "ab,b", "dab,bc", "dab,dbc", "a,a"), "matmul"),
    "dot": _product("ab,bc", "a,a", "ab,b"),
    "inner": _product("ab,cb", "a,a"),
    "outer": _product("a,b"),
    "vdot": _product("a,a"),
    "vecdot": _product("a,a", "ba,ba", "cba,ba"),
    "matvec": _product("ab,b", "cab,b"),
    "vecmat": _product("a,ab", "ca,cab"),
    "tensordot": _product("ab,bc", "dab,bc", axes=1),
    "kron": _product("ab,cd", "a,b"),
    **_of(_vectors(2), "convolve correlate"),
    "cross": lambda name, random: Call(name, tuple(draw.array(random, "float64", (4, 3), TAME) for _ in range(2))),
    "eye": _made(4, 5, k=1),
    "identity": _made(4),
    "tri": _made(4, 5, -1),
    "zeros": _made((2, 0, 3), dtype="int8"),
    "ones": _made((2, 3), dtype="float16"),
    "full": _made((2, 3), 7, dtype="int16"),
    "full_like": _shaped(0, 8, 1),
    "arange": _made(3, 40, 7),
    **_of(_grid, "linspace logspace geomspace"),
    **_of(_vectors(1, NUMBERS, Values(9, is_special=False)), "unique"),
    **_of(_vectors(1, NUMBERS, Values(9, is_special=False)), "unique_counts unique_inverse unique_all"),
    "append": _vectors(2, ALL, WILD),
    "astype": _shaped(0, 8, "float64"),
}
