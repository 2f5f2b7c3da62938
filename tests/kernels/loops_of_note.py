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


def gated(rows: int, width: int) -> Program:
    """A gated recurrent unit: h = h + z · (tanh((r · h) @ w + b) − h), z = sigmoid(h @ v), r = sigmoid(h @ u · s)."""
    writer = Writer()
    h, w, v, u = writer.input(rows, width), *[writer.input(width, width) for _ in range(3)]
    b, s = writer.input(width), writer.scalar()
    z, r = writer.sigmoid(writer.matmul(h, v)), writer.sigmoid(writer.multiply(writer.matmul(h, u), s))
    proposed = writer.tanh(writer.add(writer.matmul(writer.multiply(r, h), w), b))
    following = writer.add(h, writer.multiply(z, writer.subtract(proposed, h)))
    return writer.program(following, carried=[(h, following)])


def with_memory(rows: int, width: int) -> Program:
    """Long short-term memory: c = f · c + i · g, h = o · tanh(c), where i, f, g, o are of products of h."""
    writer = Writer()
    h, c = writer.input(rows, width), writer.input(rows, width)
    weights, s = [writer.input(width, width) for _ in range(4)], writer.scalar()
    i, f, g, o = [writer.multiply(writer.matmul(h, w), s) for w in weights]
    kept = writer.multiply(writer.sigmoid(f), c)
    cell = writer.add(kept, writer.multiply(writer.sigmoid(i), writer.tanh(g)))
    following = writer.multiply(writer.sigmoid(o), writer.tanh(cell))
    return writer.program(following, cell, carried=[(h, following), (c, cell)])


def with_gates_together(rows: int, width: int) -> Program:
    """Long short-term memory with one product for all gates: i, f, g, o are slices of h @ w + b."""
    writer = Writer()
    h, c = writer.input(rows, width), writer.input(rows, width)
    w, b, s = writer.input(width, 4 * width), writer.input(4 * width), writer.scalar()
    gates = writer.add(writer.matmul(h, w), b)
    i, f, g, o = [writer.slice(gates, (1,), (width,)) for _ in range(4)]
    kept = writer.multiply(writer.multiply(writer.sigmoid(f), c), s)
    cell = writer.add(kept, writer.multiply(writer.sigmoid(i), writer.tanh(g)))
    following = writer.multiply(writer.sigmoid(o), writer.tanh(cell))
    return writer.program(following, cell, carried=[(h, following), (c, cell)])


def keeping(rows: int, width: int, iterations: int) -> Program:
    """h = tanh(h @ w), y[i] = h, z[:, i] = h of before, with i from the starts. Neither y nor z is read."""
    writer = Writer()
    h, w = writer.input(rows, width), writer.input(width, width)
    y, z = writer.input(iterations, rows, width), writer.input(rows, iterations, width)
    following = writer.tanh(writer.matmul(h, w))
    of_rows, of_columns = writer.assign(y, following, axis=0), writer.assign(z, h, axis=1)
    return writer.program(following, of_rows, of_columns, carried=[(h, following), (y, of_rows), (z, of_columns)])


def along_rows(rows: int, width: int, iterations: int) -> Program:
    """y[i + 1] = tanh(y[i] @ w) + y[i] · s, with i from the starts."""
    writer = Writer()
    y, w, s = writer.input(iterations, rows, width), writer.input(width, width), writer.scalar()
    h = writer.slice(y, (0,), (1,), dropped=(0,))
    following = writer.add(writer.tanh(writer.matmul(h, w)), writer.multiply(h, s))
    kept = writer.assign(y, following, axis=0)
    return writer.program(kept, carried=[(y, kept)])


def gates_along_rows(rows: int, width: int, iterations: int) -> Program:
    """y[i + 1] = sigmoid(y[i] @ w) · tanh(y[i] @ v), with each i from a start of its own."""
    writer = Writer()
    y, w, v = writer.input(iterations, rows, width), writer.input(width, width), writer.input(width, width)
    one, other = [writer.slice(y, (0,), (1,), dropped=(0,)) for _ in range(2)]
    gate = writer.sigmoid(writer.matmul(one, w))
    kept = writer.assign(y, writer.multiply(gate, writer.tanh(writer.matmul(other, v))), axis=0)
    return writer.program(kept, carried=[(y, kept)])


def joined(rows: int, width: int) -> Program:
    """Two layers, a of half the width: a = tanh([x, a] @ w · s), b = tanh([a, b] @ v), with x of a third."""
    writer = Writer()
    few, half = width // 3, width // 2
    x, a, b = writer.input(rows, few), writer.input(rows, half), writer.input(rows, width)
    w, v, s = writer.input(few + half, half), writer.input(half + width, width), writer.scalar()
    lower = writer.tanh(writer.multiply(writer.matmul(writer.concat(x, a, axis=1), w), s))
    upper = writer.tanh(writer.matmul(writer.concat(lower, b, axis=1), v))
    return writer.program(lower, upper, carried=[(a, lower), (b, upper)])


def joined_vectors(width: int) -> Program:
    """h = tanh(w @ [h, x] + b), with vectors h and x."""
    writer = Writer()
    h, x, w, b = writer.input(width), writer.input(20), writer.input(width, width + 20), writer.input(width)
    following = writer.tanh(writer.add(writer.matmul(w, writer.concat(h, x, axis=0)), b))
    return writer.program(following, carried=[(h, following)])


def driven(rows: int, width: int) -> Program:
    """h = tanh(h @ w + x @ u · s), with x of half the width, which may change in each step."""
    writer = Writer()
    h, w, x, u = (
        writer.input(*each) for each in ((rows, width), (width, width), (rows, width // 2), (width // 2, width))
    )
    s = writer.scalar()
    following = writer.tanh(writer.add(writer.matmul(h, w), writer.multiply(writer.matmul(x, u), s)))
    return writer.program(following, carried=[(h, following)])


def bottleneck(rows: int, width: int) -> Program:
    """h = tanh(tanh(h @ v) @ w) + h · s, where the inner product has a quarter of the columns."""
    writer = Writer()
    h, v, w = (writer.input(*each) for each in ((rows, width), (width, width // 4), (width // 4, width)))
    s = writer.scalar()
    inner = writer.tanh(writer.matmul(h, v))
    following = writer.add(writer.tanh(writer.matmul(inner, w)), writer.multiply(h, s))
    return writer.program(following, carried=[(h, following)])


def descending(points: int, width: int) -> Program:
    """Logistic regression: w = w − x.T @ e · s, b = b − mean(e), with e = sigmoid(x @ w + b) − y."""
    writer = Writer()
    w, x, y, b = writer.input(width), writer.input(points, width), writer.input(points), writer.input()
    s = writer.scalar()
    error = writer.subtract(writer.sigmoid(writer.add(writer.matmul(x, w), b)), y)
    gradient = writer.matmul(writer.transpose(x, permutation=(1, 0)), error)
    weights = writer.subtract(w, writer.multiply(gradient, s))
    bias = writer.subtract(b, writer.mean(error, axes=(0,), keepdims=False))
    return writer.program(weights, bias, carried=[(w, weights), (b, bias)])


def stacked(rows: int, width: int) -> Program:
    """Two layers: h = tanh(h @ w), k = tanh(h @ v + k @ u · s), with the new h in the second."""
    writer = Writer()
    h, k = writer.input(rows, width), writer.input(rows, width)
    w, v, u = [writer.input(width, width) for _ in range(3)]
    s = writer.scalar()
    lower = writer.tanh(writer.matmul(h, w))
    pushed = writer.add(writer.matmul(lower, v), writer.multiply(writer.matmul(k, u), s))
    upper = writer.tanh(pushed)
    return writer.program(upper, lower, carried=[(h, lower), (k, upper)])


def with_sums(rows: int, width: int) -> Program:
    """Steps as those of conjugate gradients: q = p @ a · s, then x, r and p follow with sums along each row."""
    writer = Writer()
    x, r, p, a = *[writer.input(rows, width) for _ in range(3)], writer.input(width, width)
    squared, s = writer.input(rows, 1), writer.scalar()
    q = writer.multiply(writer.matmul(p, a), s)
    sums = {"axes": (1,), "keepdims": True}
    step = writer.tanh(writer.add(squared, writer.sum(writer.multiply(p, q), **sums)))
    solution = writer.tanh(writer.add(x, writer.multiply(step, p)))
    left = writer.subtract(writer.multiply(r, s), writer.multiply(step, q))
    left_squared = writer.sum(writer.multiply(left, left), **sums)
    following = writer.add(left, writer.multiply(p, writer.tanh(writer.subtract(left_squared, squared))))
    carried = [(x, solution), (r, left), (p, following), (squared, left_squared)]
    return writer.program(solution, left, following, left_squared, carried=carried)


def normalised(columns: int, width: int) -> Program:
    """y = w @ x, x = y · s + y / max |y| along its columns, with x of (width, columns): w is on the left."""
    writer = Writer()
    w, x = writer.input(width, width), writer.input(width, columns)
    s = writer.scalar()
    y = writer.matmul(w, x)
    greatest = writer.max(writer.abs(y), axes=(0,), keepdims=True)
    following = writer.add(writer.multiply(y, s), writer.divide(y, greatest))
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
