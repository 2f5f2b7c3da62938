"""Bodies of loops that one persistent kernel can run."""

from __future__ import annotations

from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer


def recurrent(rows: int, width: int) -> Program:
    """h = tanh(h @ w + b) + h · s, with h of (rows, width)."""
    writer = Writer()
    h, w, b = writer.input(rows, width), writer.input(width, width), writer.input(width)
    s = writer.scalar()
    pushed = writer.tanh(writer.add(writer.matmul(h, w), b))
    following = writer.add(pushed, writer.multiply(h, s))
    return writer.program(following, carried=[(h, following)])


def leaky(rows: int, width: int) -> Program:
    """x = x + (tanh(x · k) @ w − x + u) · s, with x of (rows, width): what is multiplied is computed from x."""
    writer = Writer()
    x, w, u = writer.input(rows, width), writer.input(width, width), writer.input(width)
    k, s = writer.scalar(), writer.scalar()
    rate = writer.tanh(writer.multiply(x, k))
    pushed = writer.add(writer.subtract(writer.matmul(rate, w), x), u)
    following = writer.add(x, writer.multiply(pushed, s))
    return writer.program(following, carried=[(x, following)])


def pointwise() -> Program:
    """h = tanh(h · s + x), n = n + (h > 0), with half-precision h and integers n of (1000,)."""
    writer = Writer()
    h, x = writer.input(1000, dtype=dtypes.float16), writer.input(1000, dtype=dtypes.float16)
    n = writer.input(1000, dtype=dtypes.int32)
    s, zero = writer.scalar(dtypes.float16), writer.scalar(dtypes.float16)
    following = writer.tanh(writer.add(writer.multiply(h, s), x))
    one_more = writer.add(n, writer.astype(writer.greater(following, zero), dtype=dtypes.int32.code))
    return writer.program(following, one_more, carried=[(h, following), (n, one_more)])
