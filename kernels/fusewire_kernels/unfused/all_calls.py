"""Lists calls of single ops whose kernels serve the steps of nearly all programs. Pure.

A kernel holds no sizes. Its text depends on the op, on the dtypes, on the number of loops that are left when
neighbouring axes are merged, and on how each operand moves along the innermost loop. All operands of a step are dense,
which leaves few cases: mostly, the lengths 1 and 2 stand for all lengths.

What is left out is compiled when it is needed: copies in more loops than most programs have; reductions of long axes
between two others; and the position of the greatest element of a long column or of very many elements (see
`graph.long_reductions`), whose kernels take the longest to compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from fusewire_kernels.ops import small_matrices
from fusewire_kernels.ops.order import CHUNK, SORTED_RUN
from fusewire_kernels.unfused.broadcasting import MOST_LOOPS_OF_BATCHES, most_loops
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME, OPS
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import AttributeKind, Attributes, Category, DtypeSignature, Op
from fusewire_protos.ops.reductions import Reduction
from fusewire_protos.ops.shapes import Shape, Spec

_SHORT = (1, 2)
_MOST_LOOPS = 8  # of what copies
# Lengths of reductions in chunks: without a rest, with a rest of one element, and with a longer one.
_LONG = (68 * CHUNK, 68 * CHUNK + 1, 68 * CHUNK + 2)
_WHOLE = 5  # the length of axes of which two elements are taken, one or two apart
_CHOICES_OF_LINES = {AttributeKind.AXIS: (0,), AttributeKind.FLAG: (True, False), AttributeKind.DIM: (2,)}
_ATTRIBUTES = {AttributeKind.INTEGER: 1, AttributeKind.FLOAT: 1.0}  # kernels take numbers as arguments


def all_calls() -> Iterator[OneOpCall]:
    """Yields the calls. Several may have the same kernels."""
    for op in OPS:
        match op.category:
            case Category.POINTWISE if op.name != "astype":
                yield from _pointwise(op)
            case Category.REDUCTION if op.reduction is not None:
                yield from _reductions(op, op.reduction)
            case Category.PRODUCT:
                yield from _products(op)
            case Category.LINE:
                yield from _line_calls(op)
            case _:
                pass  # below, or made of others
    for dtype in dtypes.UNSIGNED:  # they stand for all dtypes of their length
        yield from _views(dtype)
        yield from _concatenations(dtype)
        yield from _assignments(dtype)
        yield from _takes(dtype)
    for dtype in dtypes.ALL:
        yield from _casts(dtype)
        yield from _encodings(dtype)
        yield from _creations(dtype)
    yield from _random_bits()
    yield from _matrices()


# ---- pointwise ----


def _pointwise(op: Op) -> Iterator[OneOpCall]:
    attributes = tuple(_ATTRIBUTES[attribute.kind] for attribute in op.attributes)
    for given in _computed_dtypes(op, attributes):
        for shapes in _broadcast_shapes(len(given), most_loops(given)):
            yield _call(op.name, given, shapes, attributes)


def _computed_dtypes(op: Op, attributes: Attributes) -> list[tuple[DType, ...]]:
    """Returns the dtypes that the operands of an op have once they are cast."""
    rules = [_rule(op, dtype, attributes) for dtype in dtypes.ALL]
    return list(dict.fromkeys([rule.operands for rule in rules if rule is not None]))


def _rule(op: Op, dtype: DType, attributes: Attributes) -> DtypeSignature | None:
    """Returns the dtypes of an op on operands of `dtype`, or on one of `dtype` and indices; None if there is none."""
    for given in ((dtype,) * op.least_operands, (dtype, dtypes.int64)[: op.least_operands]):
        try:
            return op.dtype_rule(given, attributes)
        except DtypeError:
            pass
    return None


def _broadcast_shapes(operands: int, most_rank: int) -> Iterator[tuple[Shape, ...]]:
    """Yields shapes of operands for each number of loops, and for each set of operands that move along the last one.

    Along two neighbouring axes different operands move, so the axes are two loops.
    """
    moving = [moves for moves in product((True, False), repeat=operands) if any(moves)]
    yield ((),) * operands
    for rank in range(1, most_rank + 1 if len(moving) > 1 else 2):
        for last in moving:
            other = next(moves for moves in moving if moves != last) if rank > 1 else last
            axes = [last if (rank - axis) % 2 else other for axis in range(rank)]
            yield tuple([tuple([2 if moves[operand] else 1 for moves in axes]) for operand in range(operands)])


def _casts(dtype: DType) -> Iterator[OneOpCall]:
    for target in dtypes.ALL:
        for shape in ((), (2,)):
            yield _call("astype", (dtype,), (shape,), (target.code,))


# ---- reductions and products ----


def _reductions(op: Op, reduction: Reduction) -> Iterator[OneOpCall]:
    """Yields reductions along the middle one of three axes: the rows and the columns of matrices among them.

    Reduced axes that are no neighbours are copied first, by the kernel of a view.
    """
    empty = (0,) if reduction.takes_nothing else ()
    for given in _computed_dtypes(op, ((1,), False)):
        short = product(_SHORT, (*empty, *_SHORT), _SHORT)
        sides = [(1, 1), (2, 1), *([] if reduction.position_of else [(1, 2)])]
        long = [(before, length, behind) for before, behind in sides for length in _LONG]
        for before, length, behind in (*short, *long):
            yield _call(op.name, given, ((before, length, behind),), ((1,), False))


def _products(op: Op) -> Iterator[OneOpCall]:
    """Yields products of vectors, matrices and batches. Kernels may load four neighbours at once, hence lengths of 4.

    The batches differ in the operand that repeats; if it is the second, its batch is more rows of one product.
    """
    for dtype, *_ in _computed_dtypes(op, ()):
        for length in (0, *_SHORT, *_LONG):
            yield _call(op.name, (dtype, dtype), ((length,), (length,)))
        yield _call(op.name, (dtype, dtype), ((1, 0), (0, 2)))  # zeros, for rows and batches of every number
        for batch in _broadcast_shapes(2, MOST_LOOPS_OF_BATCHES):
            for rows, inner, columns in product((1, 2, 4), repeat=3):
                shapes = ((*batch[0], rows, inner), (*batch[1], inner, columns))
                yield _call(op.name, (dtype, dtype), shapes)


def _line_calls(op: Op) -> Iterator[OneOpCall]:
    """Yields one call for each dtype and each flag. On a GPU, runs of a long line are merged by a kernel of its own."""
    choices = [_CHOICES_OF_LINES[attribute.kind] for attribute in op.attributes]
    for attributes in product(*choices):
        for given in _computed_dtypes(op, attributes):
            for length in (2, SORTED_RUN + 1):
                yield _call(op.name, given, ((length,),) * len(given), attributes)


def _matrices() -> Iterator[OneOpCall]:
    """Yields one call for each op and dtype. A kernel serves all sizes and flags of small matrices."""
    for op in [BY_NAME[name] for name in sorted(small_matrices.NAMES)]:
        attributes = (False,) * len(op.attributes)
        for given in _computed_dtypes(op, attributes):
            yield _call(op.name, given, ((2, 2),) * len(given), attributes)


# ---- what copies ----


def _views(dtype: DType) -> Iterator[OneOpCall]:
    """Yields a view for each number of loops, whose elements are repeated, neighbours or apart along the last one."""
    yield _call("reshape", (dtype,), ((1,),), ((),))
    yield _call("reshape", (dtype,), ((2,),), ((2, 1),))
    for rank in range(1, _MOST_LOOPS + 1):
        repeated = tuple([1 if (rank - axis) % 2 else 2 for axis in range(rank)])
        yield _call("broadcast_to", (dtype,), (repeated,), ((2,) * rank,))
        for step in (1, 2):
            yield _call("slice", (dtype,), ((_WHOLE,) * rank,), _part(rank, step))


def _concatenations(dtype: DType) -> Iterator[OneOpCall]:
    """Yields arrays joined along the middle one of three axes."""
    for before, length, behind in product(_SHORT, repeat=3):
        shape = (before, length, behind)
        for count in _SHORT:
            yield _call("concat", (dtype,) * count, (shape,) * count, (1,))


def _assignments(dtype: DType) -> Iterator[OneOpCall]:
    """Yields assignments to a part of an array, of values that move or repeat along the last loop."""
    yield _call("assign_slice", (dtype, dtype), ((_WHOLE,), ()), ((0,), (1,), (1,), ()))
    for rank in range(1, _MOST_LOOPS + 1):
        for step in (1, 2):
            for last in _SHORT:
                value = (*((2,) * (rank - 1)), last)
                yield _call("assign_slice", (dtype, dtype), ((_WHOLE,) * rank, value), _part(rank, step))


def _part(rank: int, step: int) -> Attributes:
    """Returns the region of two elements along each axis, in which no two loops are merged."""
    axes = tuple(range(rank))
    return axes, (2,) * rank, (*((1,) * (rank - 1)), step)[:rank], ()


def _takes(dtype: DType) -> Iterator[OneOpCall]:
    for before, length, behind, picked in product(_SHORT, repeat=4):
        yield _call("take", (dtype, dtypes.int64), ((before, length, behind), (picked,)), (1,))
        shapes = (before, length, behind), (before, picked, behind)
        yield _call("take_along_axis", (dtype, dtypes.int64), shapes, (1,))


def _encodings(dtype: DType) -> Iterator[OneOpCall]:
    for picked, classes in product(_SHORT, repeat=2):
        yield _call("one_hot", (dtypes.int64,), ((picked,),), (classes, dtype.code))


def _creations(dtype: DType) -> Iterator[OneOpCall]:
    for length in _SHORT:
        yield _call("full", (dtype,), ((),), ((length,), dtype.code))
        yield _call("arange", (dtype, dtype), ((), ()), (length, dtype.code))
        yield _call("linspace", (dtypes.float64, dtypes.float64), ((), ()), (length, dtype.code))
    for rows, columns, diagonal in product(_SHORT, _SHORT, (0, 1)):  # along an axis of length 1 the place is 0, too
        yield _call("eye", (), (), (rows, columns, diagonal, dtype.code))


def _random_bits() -> Iterator[OneOpCall]:
    """Yields random bits for each number of loops. Axes of length 1 are none."""
    for rank in range(_MOST_LOOPS + 1):
        yield _call("random_bits", (dtypes.uint64,) * 3, ((),) * 3, ((2,) * rank,))


def _call(name: str, given: Sequence[DType], shapes: Sequence[Shape], attributes: Attributes = ()) -> OneOpCall:
    return OneOpCall(BY_NAME[name], tuple(map(Spec, given, shapes)), attributes)
