"""A few kernels that between them use every form of text: what golden files and compilers are shown."""

from __future__ import annotations

from fusewire_kernels.ir.kernel import (
    Argument,
    ArgumentKind,
    Kernel,
    LineKernel,
    LoopKernel,
    MatrixKernel,
    ProductKernel,
    Store,
    Stride,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.problems import node

Z, U, S = Stride.ZERO, Stride.UNIT, Stride.ANY
f32, f64, f16, i64, u64, bool_ = (
    *(dtypes.float32, dtypes.float64, dtypes.float16),
    *(dtypes.int64, dtypes.uint64, dtypes.bool_),
)


def _array(dtype: DType, *strides: Stride) -> Argument:
    return Argument(ArgumentKind.ARRAY, dtype, strides)


def _pointwise() -> LoopKernel:
    """tanh((x + bias) · scale), and whether x is positive."""
    inputs = (_array(f32, S, U), _array(f32, Z, U), Argument(ArgumentKind.SCALAR, f32, ()))
    nodes = (
        node("add", (0, 1), f32),
        node("multiply", (3, 2), f32),
        node("tanh", (4,), f32),
        node("greater", (0, 2), bool_, operand_dtype=f32),
    )
    return LoopKernel(2, False, inputs, nodes, (Store(5, _array(f32, S, U)), Store(6, _array(bool_, S, U))))


def _points_at_once() -> LoopKernel:
    """x · scale + y, over one dimension, and where x is positive."""
    nodes = (
        node("multiply", (0, 2), f32),
        node("add", (3, 1), f32),
        node("greater", (0, 2), bool_, operand_dtype=f32),
    )
    inputs = (_array(f32, U), _array(f32, U), Argument(ArgumentKind.SCALAR, f32, ()))
    return LoopKernel(1, False, inputs, nodes, (Store(4, _array(f32, U)), Store(5, _array(bool_, U))))


def _long_pointwise() -> LoopKernel:
    """tanh(x + bias) three times over and where it began positive: longer than one loop."""
    nodes = (
        node("greater", (0, 1), bool_, operand_dtype=f32),
        node("add", (0, 1), f32),
        node("tanh", (3,), f32),
        node("add", (4, 1), f32),
        node("tanh", (5,), f32),
        node("add", (6, 1), f32),
        node("tanh", (7,), f32),
    )
    stores = (Store(8, _array(f32, S, U)), Store(2, _array(bool_, S, U)))
    return LoopKernel(2, False, (_array(f32, S, U), _array(f32, Z, U)), nodes, stores)


def _random_normals() -> LoopKernel:
    """Normal numbers in float32, of the counters from a start on."""
    start, stream, key = (Argument(ArgumentKind.SCALAR, u64, ()) for _ in range(3))
    nodes = (
        node("index", (), i64, detail=0),
        node("cast", (3,), u64, operand_dtype=i64),
        node("add", (0, 4), u64),
        node("random_bits", (5, 1, 2), u64),
        node("normal_of_bits", (6,), f64, operand_dtype=u64),
        node("cast", (7,), f32, operand_dtype=f64),
    )
    return LoopKernel(1, False, (start, stream, key), nodes, (Store(8, _array(f32, U)),))


def _softmax(*strides: Stride) -> LoopKernel:
    """Softmax along the inner dimension, and where it is greatest."""
    nodes = (
        node("reduce", (0,), f32, detail="max"),
        node("subtract", (0, 1), f32),
        node("exp", (2,), f32),
        node("reduce", (3,), f32, detail="sum"),
        node("divide", (3, 4), f32),
        node("reduce", (0,), i64, operand_dtype=f32, detail="argmax"),
    )
    stores = (Store(5, _array(f32, *strides)), Store(6, _array(i64, U, Z)))
    return LoopKernel(1, True, (_array(f32, *strides),), nodes, stores)


def _softmax_of_quotients() -> LoopKernel:
    """Softmax of x / temperature along rows: several passes divide by one number."""
    nodes = (
        node("divide", (0, 1), f32),
        node("reduce", (2,), f32, detail="max"),
        node("subtract", (2, 3), f32),
        node("exp", (4,), f32),
        node("reduce", (5,), f32, detail="sum"),
        node("divide", (5, 6), f32),
    )
    inputs = (_array(f32, S, U), Argument(ArgumentKind.SCALAR, f32, ()))
    return LoopKernel(1, True, inputs, nodes, (Store(7, _array(f32, S, U)),))


def _gather() -> LoopKernel:
    """Rows of a table of halves, chosen by an index, plus the position along them."""
    table = Argument(ArgumentKind.GATHERED, f16, (Z, U))
    nodes = (
        node("gather", (1,), f16, operand_dtype=i64, detail=0),
        node("index", (), i64, detail=1),
        node("cast", (3,), f16, operand_dtype=i64),
        node("add", (2, 4), f16),
    )
    return LoopKernel(2, False, (table, _array(i64, U, Z)), nodes, (Store(5, _array(f16, S, U)),))


def _total() -> LoopKernel:
    """The mean of squares over everything, in halves."""
    nodes = (
        node("square", (0,), f16),
        node("reduce", (2,), f16, detail="sum"),
        node("divide", (3, 1), f16, is_inner=False),
    )
    inputs = (_array(f16, U), Argument(ArgumentKind.SCALAR, f16, ()))
    return LoopKernel(0, True, inputs, nodes, (Store(4, _array(f16, Z)),))


def _layer() -> LoopKernel:
    """What follows a product in a layer of a network: tanh(product + bias) + residual."""
    nodes = (node("add", (0, 1), f32), node("tanh", (3,), f32), node("add", (4, 2), f32))
    inputs = (_array(f32, S, U), _array(f32, Z, U), _array(f32, S, U))
    return LoopKernel(2, False, inputs, nodes, (Store(5, _array(f32, S, U)),))


NOTED: dict[str, Kernel] = {
    "pointwise": _pointwise(),
    "points_at_once": _points_at_once(),
    "long_pointwise": _long_pointwise(),
    "random_normals": _random_normals(),
    "softmax_rows": _softmax(S, U),
    "softmax_columns": _softmax(U, S),
    "softmax_of_quotients": _softmax_of_quotients(),
    "gather": _gather(),
    "total": _total(),
    "product": ProductKernel(f32, 1, True, is_in_fours=True),
    "product_with_epilogue": ProductKernel(f32, 0, True, is_in_fours=True, epilogue=_layer()),
    "product_of_windows": ProductKernel(f32, 1, True, is_in_fours=True, epilogue=_layer(), walks=(3, 2)),
    "product_half_of_windows": ProductKernel(f16, 0, False, walks=(2, 3)),
    "product_half": ProductKernel(f16, 0, False, True),
    "scan_half": LineKernel("sum", f16, f16),
    "segments": LineKernel("segment_sum", f32, f32),
    "equations": MatrixKernel("solve", f32),
}
