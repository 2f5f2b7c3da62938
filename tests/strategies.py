"""Random specs, values and programs.

`programs_of(op)` gives every op of the catalogue in all its dtypes and forms, to be tested against its twin;
`programs()` gives chains and graphs over all of them, to be tested for equal bytes however they are run. Values come
from a drawn seed, so that shrinking works on shapes and structure, not on every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fusewire_kernels.ops import small_matrices
from fusewire_kernels.ops.conversions import cast, scalar
from fusewire_protos.errors import RequestError
from fusewire_protos.ops import catalogue, dtypes, inference
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import AttributeKind, Attributes, Category, Op
from fusewire_protos.ops.shapes import Region, Shape, Spec, region
from fusewire_protos.ops.strided import Strided
from fusewire_protos.programs.program import Program, ProgramOp, build
from tests.starts import starts_between

Array = npt.NDArray[Any]
Scalar = bool | int | float

_MOST_ELEMENTS = 4096
_NAN = float("nan")
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, _NAN, -_NAN, float("inf"), float("-inf"), 1e-45, -1e-40, 6e-8, 7e4)
_SPECIAL_INTEGERS = (0, 1, -1, 2, 255, 256, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
# Ops over many elements are given moderate numbers: how far their results may be off depends on the greatest.
_SEGMENTED = tuple(op.name for op in catalogue.OPS if op.category is Category.LINE and op.least_operands == 2)
_TAKING_SOME = tuple(
    op.name
    for op in catalogue.OPS
    if op.category is Category.REDUCTION and op.reduction and not op.reduction.takes_nothing
)
_MODERATE = (Category.REDUCTION, Category.COMPOSITE, Category.PRODUCT, Category.LINE, Category.LIBRARY)
# The ops of matrices that a plan may hold if the matrices are small. The algorithms of kernels and twins differ.
OF_SMALL_MATRICES = tuple(op for op in catalogue.OPS if op.name in small_matrices.NAMES)
# The ops that a plan may hold.
PLANNED = (*(op for op in catalogue.OPS if op.category is not Category.LIBRARY), *OF_SMALL_MATRICES)


class Work(NamedTuple):
    """A program with one row of bindings for it: what `run_op_by_op` takes."""

    program: Program
    inputs: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    starts: tuple[int, ...]

    def operands(self) -> list[Array]:
        """The operands of the program's first op."""
        numbers = [scalar(np, value, dtype) for value, dtype in zip(self.scalars, self.program.scalars, strict=True)]
        values = [*self.inputs, *numbers]
        return [values[number] for number in self.program.ops[0].operands]


# ---- specs and values ----


def shapes(*, least_dim: int = 0, most_dim: int = 7, least_rank: int = 0, most_rank: int = 4) -> SearchStrategy[Shape]:
    dims = st.integers(least_dim, most_dim)
    return st.lists(dims, min_size=least_rank, max_size=most_rank).map(tuple)


def specs(of: Sequence[DType] = dtypes.ALL) -> SearchStrategy[Spec]:
    return st.builds(Spec, st.sampled_from(of), shapes())


@st.composite
def arrays(draw: DrawFn, spec: Spec, *, is_moderate: bool = False) -> Array:
    """An array of `spec`, about an eighth of it special values (zeros of both signs, NaN, infinities, extremes)."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_array(random, spec, special_share=draw(st.sampled_from((0.0, 0.125))), is_moderate=is_moderate)


def random_array(random: np.random.Generator, spec: Spec, *, special_share: float, is_moderate: bool) -> Array:
    numbers = _random_numbers(random, spec, is_moderate=is_moderate)
    specials = np.array(_SPECIAL_FLOATS) if spec.dtype.is_floating else np.array(_SPECIAL_INTEGERS)
    chosen = random.choice(specials, spec.shape)
    with np.errstate(all="ignore"):
        mixed = np.where(random.random(spec.shape) < special_share, chosen, numbers)
    source = dtypes.float64 if spec.dtype.is_floating else dtypes.int64
    array = np.asarray(cast(np, np.asarray(mixed), source, spec.dtype))
    return _with_any_nans(random, array) if spec.dtype.is_floating else array


def _with_any_nans(random: np.random.Generator, array: Array) -> Array:
    """NaNs of either sign, quiet and signalling, with a payload each."""
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)
    any_bits = random.integers(1, 2 ** (8 * array.itemsize - 1), array.shape).astype(bits.dtype)
    infinity = np.array(np.inf, array.dtype).view(bits.dtype)
    signs = random.integers(0, 2, array.shape).astype(bits.dtype) << np.array(8 * array.itemsize - 1, bits.dtype)
    nans = (any_bits | infinity | np.array(1, bits.dtype)) ^ signs
    return np.asarray(np.where(np.isnan(array), nans, bits)).view(array.dtype).reshape(array.shape)


def _random_numbers(random: np.random.Generator, spec: Spec, *, is_moderate: bool) -> Array:
    if not spec.dtype.is_floating:
        bound = 10 if random.random() < 0.5 else 2**40
        return random.integers(-bound, bound, spec.shape)
    scale = 1.0 if is_moderate else random.choice((0.1, 1.0, 10.0, 1000.0))
    return np.asarray(random.normal(scale=scale, size=spec.shape))


def scalars(dtype: DType) -> SearchStrategy[Scalar]:
    """A value that a binding may carry for a scalar of `dtype`."""
    if dtype.is_boolean:
        return st.booleans()
    if dtype.is_floating:
        return st.one_of(st.sampled_from(_SPECIAL_FLOATS), st.floats(-8, 8, width=16))
    bits = dtype.itemsize_bytes * 8
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed else st.integers(0, 2**bits - 1)


# ---- one op ----


@st.composite
def programs_of(draw: DrawFn, op: Op) -> Work:
    """A program of this one op over fresh operands; a rank-0 operand is sometimes a scalar of the bindings."""
    drawn = draw(_operands_of(op))
    attributes = draw(attributes_of(op, drawn))
    operands = draw(_settled(op, drawn, attributes))
    is_scalar = [
        _is_always_scalar(op, place) or (not spec.shape and draw(st.booleans())) for place, spec in enumerate(operands)
    ]
    return draw(_bound(_single(op, operands, is_scalar, attributes), is_moderate=op.category in _MODERATE))


@st.composite
def _settled(draw: DrawFn, op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> tuple[Spec, ...]:
    """The operands, where the shape of one follows from the attributes: what is assigned to a part."""
    if not (op.takes_starts and op.category is Category.MOVE):
        return operands
    target, value = operands
    fitting = attributes[0] if op.part is Strided else region(target.shape, Region(*attributes))
    return target, Spec(value.dtype, draw(_thinned(fitting)))


def _single(op: Op, operands: Sequence[Spec], is_scalar: Sequence[bool], attributes: Attributes) -> Program:
    inputs = [spec for spec, scalar in zip(operands, is_scalar, strict=True) if not scalar]
    scalar_dtypes = [spec.dtype for spec, scalar in zip(operands, is_scalar, strict=True) if scalar]
    next_input, next_scalar = iter(range(len(inputs))), iter(range(len(inputs), len(operands)))
    numbers = tuple(next(next_scalar) if scalar else next(next_input) for scalar in is_scalar)
    return build(inputs, scalar_dtypes, [ProgramOp(op, numbers, attributes)], [0])


def _is_always_scalar(op: Op, place: int) -> bool:
    return op.category is Category.CREATE or (op.category is Category.COMPOSITE and place == 1)


@cache
def legal_dtypes(op: Op, operands: int) -> tuple[tuple[DType, ...], ...]:
    """Every combination of dtypes that so many operands of `op` may have."""
    return tuple(chosen for chosen in dtype_tuples(operands) if _is_legal(op, chosen))


def dtype_tuples(count: int) -> list[tuple[DType, ...]]:
    """Every combination of `count` dtypes."""
    return list(product(dtypes.ALL, repeat=count))


def _is_legal(op: Op, chosen: tuple[DType, ...]) -> bool:
    sample_attributes = tuple(dtypes.float32.code for _ in op.attributes)
    try:
        op.dtype_rule(chosen, sample_attributes)
    except RequestError:
        return False
    return True


@st.composite
def _operands_of(draw: DrawFn, op: Op) -> tuple[Spec, ...]:
    count = op.least_operands if op.most_operands is not None else draw(st.integers(1, 4))
    chosen = draw(st.sampled_from(legal_dtypes(op, min(count, 3))))
    chosen += chosen[:1] * (count - len(chosen))
    return tuple(map(Spec, chosen, draw(_SHAPES_OF.get(op.name, _SHAPES_OF_CATEGORY[op.category])(count))))


@st.composite
def _broadcastable(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """`count` shapes that broadcast together; often all the same."""
    whole = draw(st.one_of(shapes(), st.sampled_from(((33,), (3, 65), (1000,)))))
    if draw(st.booleans()):
        return (whole,) * count
    return tuple(draw(_thinned(whole)) for _ in range(count))


@st.composite
def _thinned(draw: DrawFn, whole: Shape) -> Shape:
    """`whole` with some leading dims left out and some others 1: a shape that broadcasts to it."""
    kept = whole[draw(st.integers(0, len(whole))) :]
    return tuple(draw(st.sampled_from((dim, 1))) for dim in kept)


@st.composite
def _reducible(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """An array for a reduction, long rows among them, and scalars."""
    least_dim = draw(st.sampled_from((1, 1, 1, 0)))
    array = draw(
        st.one_of(shapes(least_dim=least_dim), st.sampled_from(((31,), (2, 33), (3, 70), (2, 1500), (20000,))))
    )
    return (array,) + ((),) * (count - 1)


@st.composite
def _multipliable(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    rows, inner, columns = (draw(st.sampled_from((0, 1, 2, 3, 5, 17, 40))) for _ in range(3))
    batch = draw(shapes(most_dim=3, most_rank=2))
    a = draw(st.sampled_from(((inner,), (rows, inner), (*batch, rows, inner))))
    b = draw(st.sampled_from(((inner,), (inner, columns), (*batch, inner, columns))))
    thin_a = (*draw(_thinned(a[:-2])), *a[-2:]) if len(a) > 2 else a
    return thin_a, b


@st.composite
def _matrices(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """Square matrices, and for two operands as many right sides."""
    batch, side = draw(shapes(most_dim=3, most_rank=2)), draw(st.integers(0, 5))
    right = [(*batch, side, draw(st.integers(0, 3))) for _ in range(1, count)]
    return ((*batch, side, side), *right)


@st.composite
def _alike_matrices(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """Square matrices, which are the parts of complex ones."""
    (shape,) = draw(_matrices(1))
    return (shape,) * count


@st.composite
def _transformable(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """Lines of two points or more, which a transform of any kind takes."""
    return ((*draw(shapes(most_dim=3, most_rank=2)), draw(st.integers(2, 12))),) * count


@st.composite
def _concatenable(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    first = draw(shapes(least_rank=1))
    axis = draw(st.integers(0, len(first) - 1))
    return tuple(first[:axis] + (draw(st.integers(0, 5)),) + first[axis + 1 :] for _ in range(count))


@st.composite
def _assignable(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """The value's shape is settled with the region; until then rank 0, which fits any."""
    return draw(shapes()), ()


@st.composite
def _takeable(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    return draw(shapes(least_dim=1, least_rank=1, most_rank=3)), draw(shapes(most_rank=2))


@st.composite
def _alone(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    return (draw(shapes()),) * count


@st.composite
def _lined(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """An array of lines, long ones among them."""
    long = st.sampled_from(((127,), (2, 129), (700, 2), (2, 1500), (9000,)))
    return (draw(st.one_of(shapes(least_rank=1), long)),)


@st.composite
def _takeable_along(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """The lines lie along the first axis."""
    data = draw(shapes(least_dim=1, least_rank=1, most_rank=3))
    return data, (draw(st.integers(0, 5)), *data[1:])


@st.composite
def _segmented(draw: DrawFn, count: int) -> tuple[Shape, ...]:
    """The lines lie along the first axis, long ones among them."""
    long = st.sampled_from(((127,), (700, 2), (1500,)))
    data = draw(st.one_of(shapes(least_rank=1, most_rank=3), long))
    return data, data[:1]


def _only_scalars(count: int) -> SearchStrategy[tuple[Shape, ...]]:
    return st.just(((),) * count)


_ShapesOf = Callable[[int], SearchStrategy[tuple[Shape, ...]]]
_SHAPES_OF_CATEGORY: dict[Category, _ShapesOf] = {
    Category.POINTWISE: _broadcastable,
    Category.REDUCTION: _reducible,
    Category.COMPOSITE: _reducible,
    Category.PRODUCT: _multipliable,
    Category.LINE: _lined,
    Category.VIEW: _alone,
    Category.MOVE: _alone,
    Category.CREATE: _only_scalars,
    Category.LIBRARY: _matrices,
}
_SHAPES_OF: dict[str, _ShapesOf] = {
    "concat": _concatenable,
    "assign_slice": _assignable,
    "assign_strided": _assignable,
    "take": _takeable,
    "take_along_axis": _takeable_along,
    **dict.fromkeys(_SEGMENTED, _segmented),
    **dict.fromkeys((op.name for op in catalogue.OPS if op.core_rank == 1), _transformable),
    **dict.fromkeys((op.name for op in catalogue.OPS if op.name.startswith("complex_")), _alike_matrices),
}


# ---- attributes that fit operands ----


@st.composite
def attributes_of(draw: DrawFn, op: Op, operands: Sequence[Spec]) -> Attributes:
    """Attributes with which `op` takes operands of these specs."""
    first = operands[0].shape if operands else ()
    if op.name in _ATTRIBUTES_OF:
        return draw(_ATTRIBUTES_OF[op.name](first, operands))
    return tuple(draw(_attribute(attribute.kind, first)) for attribute in op.attributes)


def _attribute(kind: AttributeKind, first: Shape) -> SearchStrategy[Any]:
    rank = len(first)
    axes = st.sets(st.integers(0, rank - 1)).map(sorted).map(tuple) if rank else st.just(())
    strategies: dict[AttributeKind, SearchStrategy[Any]] = {
        AttributeKind.AXIS: st.integers(0, max(rank - 1, 0)),
        AttributeKind.AXES: st.one_of(axes, st.just((rank - 1,)) if rank else axes),
        AttributeKind.DIM: st.integers(0, 40),
        AttributeKind.DIMS: shapes(),
        AttributeKind.PERMUTATION: st.permutations(range(rank)).map(tuple),
        AttributeKind.INTEGER: st.integers(-5, 5),
        AttributeKind.FLOAT: st.sampled_from((0.1, -0.75, 3.0)),
        AttributeKind.FLAG: st.booleans(),
        AttributeKind.DTYPE: st.sampled_from([dtype.code for dtype in dtypes.ALL]),
    }
    return strategies[kind]


@st.composite
def _reshape_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    """Some dims joined, a 1 here and there, perhaps everything flat."""
    if draw(st.booleans()):
        return ((prod(first),),)
    cut = draw(st.integers(0, len(first)))
    joined = first[:cut] + ((prod(first[cut:]),) if cut < len(first) else ())
    place = draw(st.integers(0, len(joined)))
    return (joined[:place] + draw(st.sampled_from(((), (1,)))) + joined[place:],)


@st.composite
def _broadcast_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    grown = tuple(draw(st.integers(0, 4)) if dim == 1 else dim for dim in first)
    return (draw(shapes(most_dim=3, most_rank=2)) + grown,)


@st.composite
def _region_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    axes = draw(_attribute(AttributeKind.AXES, first))
    lengths, steps = [], []
    for axis in axes:
        step = draw(st.sampled_from((1, 1, 2, 3, -1, -2)))
        fitting = (first[axis] - 1) // abs(step) + 1 if first[axis] else 0
        lengths.append(draw(st.integers(0, fitting)))
        steps.append(step)
    droppable = [axis for axis, length in zip(axes, lengths, strict=True) if length == 1]
    dropped = tuple(axis for axis in droppable if draw(st.booleans()))
    return axes, tuple(lengths), tuple(steps), dropped


@st.composite
def _strided_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    """A view that repeats elements, hides some, turns some round, or is empty."""
    left = prod(first) - 1
    shape, strides = draw(shapes(most_dim=4 if left >= 0 else 0, least_rank=int(left < 0), most_rank=3)), []
    for dim in shape:
        most = left // (dim - 1) if dim > 1 and left >= 0 else 5
        strides.append(draw(st.one_of(st.integers(-most, most), st.integers(0, min(most, 3)))))
        left -= abs(strides[-1]) * max(dim - 1, 0)
    return shape, tuple(strides)


@st.composite
def _distinct_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    """A view that shows no element twice, its axes in any order. Each steps over all that lies within those before."""
    size, reached = prod(first), 0
    axes: list[tuple[int, int]] = []
    for wanted in draw(shapes(most_dim=4, most_rank=3)) if size else (0,):
        stride = reached + draw(st.integers(1, 3))
        dim = min(wanted, 1 + (size - 1 - reached) // stride) if size else 0
        axes.append((dim, stride * draw(st.sampled_from((1, 1, -1)))))
        reached += stride * max(dim - 1, 0)
    ordered = draw(st.permutations(axes))
    return tuple(dim for dim, _ in ordered), tuple(stride for _, stride in ordered)


@st.composite
def _concat_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    if not first or any(len(spec.shape) != len(first) for spec in operands):
        return (0,)  # fits nothing, and is refused
    others = [axis for axis in range(len(first)) if any(spec.shape[axis] != first[axis] for spec in operands)]
    return (others[0] if others else draw(st.integers(0, len(first) - 1)),)


@st.composite
def _extremes_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    """Axes that are not empty: there is no greatest of nothing."""
    (axes,) = draw(_normalised_attributes(first, operands))
    return axes, draw(st.booleans())


@st.composite
def _normalised_attributes(draw: DrawFn, first: Shape, operands: Sequence[Spec]) -> Attributes:
    axes = draw(_attribute(AttributeKind.AXES, first))
    return (tuple(axis for axis in axes if first[axis]),)


_ATTRIBUTES_OF: dict[str, Callable[[Shape, Sequence[Spec]], SearchStrategy[Attributes]]] = {
    "reshape": _reshape_attributes,
    "broadcast_to": _broadcast_attributes,
    "slice": _region_attributes,
    "assign_slice": _region_attributes,
    "strided": _strided_attributes,
    "assign_strided": _distinct_attributes,
    "concat": _concat_attributes,
    "take_along_axis": lambda first, operands: st.just((0,)),
    **dict.fromkeys(_SEGMENTED, lambda first, operands: st.tuples(st.just(0), st.integers(0, 9))),
    **dict.fromkeys((*_TAKING_SOME, "logsumexp"), _extremes_attributes),
    **dict.fromkeys(("softmax", "log_softmax"), _normalised_attributes),
}


# ---- whole programs ----


@st.composite
def programs(draw: DrawFn, *, most_ops: int = 12, most_live: int = 4, of: Sequence[Op] = PLANNED) -> Work:
    """A graph over all categories: each op takes earlier values or new inputs and scalars, several results live."""
    draft = _Draft()
    draft.add_input(draw(specs()))
    for _ in range(draw(st.integers(1, most_ops))):
        draw(_grown(draft, draw(st.sampled_from(of))))
    if not draft.ops:
        draw(_grown_afresh(draft, catalogue.BY_NAME["negative"]))
    ops = len(draft.ops)
    live = draw(st.sets(st.integers(0, ops - 1), min_size=1, max_size=most_live))
    return draw(_bound(draft.program(sorted(live)), is_moderate=True))


class _Draft:
    """A program that grows: operands are (kind, number) until all inputs and scalars are known."""

    def __init__(self) -> None:
        self.inputs: list[Spec] = []
        self.scalars: list[DType] = []
        self.ops: list[tuple[Op, list[tuple[str, int]], Attributes]] = []
        self.values: list[tuple[tuple[str, int], Spec]] = []

    def add_input(self, spec: Spec) -> tuple[str, int]:
        return self._add("input", self.inputs, spec, spec)

    def add_scalar(self, dtype: DType) -> tuple[str, int]:
        return self._add("scalar", self.scalars, dtype, Spec(dtype, ()))

    def add_op(self, op: Op, operands: list[tuple[str, int]], attributes: Attributes, result: Spec) -> None:
        self._add("result", self.ops, (op, operands, attributes), result)

    def _add(self, kind: str, where: list[Any], item: Any, spec: Spec) -> tuple[str, int]:
        value = (kind, len(where))
        where.append(item)
        self.values.append((value, spec))
        return value

    def program(self, live: Sequence[int]) -> Program:
        first = {"input": 0, "scalar": len(self.inputs), "result": len(self.inputs) + len(self.scalars)}
        ops = [
            ProgramOp(op, tuple(first[kind] + number for kind, number in operands), attributes)
            for op, operands, attributes in self.ops
        ]
        return build(self.inputs, self.scalars, ops, live)


@st.composite
def _grown(draw: DrawFn, draft: _Draft, op: Op) -> None:
    """Adds `op` over values of the draft where they fit, over new ones elsewhere."""
    operands, known = draw(_chosen_operands(draft, op))
    attributes = draw(attributes_of(op, known))
    try:
        result = inference.infer(op, known, attributes)
    except RequestError:
        return draw(_grown_afresh(draft, op))
    if op in OF_SMALL_MATRICES and small_matrices.is_of_library(op, known):
        return draw(_grown_afresh(draft, op))
    if result.elements <= _MOST_ELEMENTS:
        draft.add_op(op, operands, attributes, result)
    return None


@st.composite
def _chosen_operands(draw: DrawFn, draft: _Draft, op: Op) -> tuple[list[tuple[str, int]], tuple[Spec, ...]]:
    count = op.least_operands if op.most_operands is not None else draw(st.integers(1, 3))
    chosen = [draw(st.sampled_from(draft.values[-6:])) for _ in range(count)]
    return [value for value, _ in chosen], tuple(spec for _, spec in chosen)


@st.composite
def _grown_afresh(draw: DrawFn, draft: _Draft, op: Op) -> None:
    specs = draw(_operands_of(op))
    attributes = draw(attributes_of(op, specs))
    operands = [
        draft.add_scalar(spec.dtype) if _is_always_scalar(op, place) else draft.add_input(spec)
        for place, spec in enumerate(specs)
    ]
    draft.add_op(op, operands, attributes, inference.infer(op, specs, attributes))


# ---- bindings ----


@st.composite
def _bound(draw: DrawFn, program: Program, *, is_moderate: bool) -> Work:
    inputs = tuple(draw(arrays(spec, is_moderate=is_moderate)) for spec in program.inputs)
    settings = _settings(program)
    values = tuple(
        draw(_SETTINGS if number in settings else scalars(dtype))
        for number, dtype in enumerate(program.scalars, len(program.inputs))
    )
    starts = tuple(start for op in program.ops for start in draw(_starts_of(program, op)))
    return Work(program, inputs, values, starts)


# Corrections and epsilons: other values would only ask how rounding errors grow near a division by zero.
_SETTINGS = st.sampled_from((0, 1, 0.5))


def _settings(program: Program) -> set[int]:
    """The operand numbers that a composite op takes as its setting."""
    composites = (op for op in program.ops if op.op.category is Category.COMPOSITE)
    return {operand for op in composites for operand in op.operands[1:]}


@st.composite
def _starts_of(draw: DrawFn, program: Program, op: ProgramOp) -> list[int]:
    """Starts with which the part that the op takes lies inside its first operand."""
    return [draw(st.integers(least, most)) for least, most in starts_between(program, op)]
