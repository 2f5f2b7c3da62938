"""Says which matrices the ops of linear algebra take, and of which shapes their results are.

Matrices lie along the last two axes. The axes before them are a batch, whose matrices are computed one by one.
"""

from __future__ import annotations

from typing import Any

from fusewire_protos.errors import DtypeError, ShapeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import ShapeRule
from fusewire_protos.ops.results import Results, ResultsRule
from fusewire_protos.ops.shapes import Shape

# An op runs as a whole, in a time that grows with the third power of the side, and nothing else runs meanwhile.
MOST_SIDE = 8192

_Attributes = tuple[Any, ...]


def dtype_of(operands: tuple[DType, ...]) -> DType:
    """Returns the dtype in which an op computes: float64 for integers. Raises DtypeError for 16-bit floats."""
    promoted = dtypes.promote_all(operands)
    if promoted.is_half:
        raise DtypeError(f"linear algebra computes in float32 and float64, not {promoted.name}; cast by astype")
    return promoted if promoted.is_floating else dtypes.float64


def matrices(shape: Shape) -> tuple[Shape, int, int]:
    """Returns the batch, the rows and the columns. Raises ShapeError below rank 2 and for too many rows or columns."""
    if len(shape) < 2:
        raise ShapeError(f"matrices have 2 axes or more, not the shape {shape}")
    *batch, rows, columns = shape
    if max(rows, columns) > MOST_SIDE:
        raise ShapeError(f"a matrix of {rows} by {columns}; the most is {MOST_SIDE} rows and columns")
    return tuple(batch), rows, columns


def square(shape: Shape) -> tuple[Shape, int]:
    """Returns the batch and the side. Raises ShapeError for what are no square matrices."""
    batch, rows, columns = matrices(shape)
    if rows != columns:
        raise ShapeError(f"a square matrix has as many rows as columns, not {rows} and {columns}")
    return batch, rows


def same(operands: tuple[Shape, ...], attributes: _Attributes) -> Shape:
    """Returns the shape of an op that makes a square matrix of each."""
    batch, side = square(operands[0])
    return (*batch, side, side)


def number(operands: tuple[Shape, ...], attributes: _Attributes) -> Shape:
    """Returns the shape of an op that makes a number of each square matrix."""
    batch, _ = square(operands[0])
    return batch


def diagonal(operands: tuple[Shape, ...], attributes: _Attributes) -> Shape:
    """Returns the shape of an op that makes the values on a diagonal of each matrix."""
    batch, rows, columns = matrices(operands[0])
    return (*batch, min(rows, columns))


def side(operands: tuple[Shape, ...], attributes: _Attributes) -> Shape:
    """Returns the shape of an op that makes a vector of each square matrix."""
    batch, length = square(operands[0])
    return (*batch, length)


def solution(operands: tuple[Shape, ...], attributes: _Attributes) -> Shape:
    """Returns the shape of the solution of linear equations, which is that of their right sides."""
    batch, length = square(operands[0])
    right_batch, rows, columns = matrices(operands[1])
    if right_batch != batch or rows != length:
        raise ShapeError(f"right sides of shape {operands[1]} do not fit matrices of shape {operands[0]}")
    return (*batch, rows, columns)


def sign_and_logarithm(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the results of `slogdet`."""
    batch, _ = square(operands[0])
    return Results(batch, ((), ()))


def orthogonal_and_triangular(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the results of `qr`; the attribute says whether the first matrix is square."""
    batch, rows, columns = matrices(operands[0])
    inner = rows if attributes[0] else min(rows, columns)
    return Results(batch, ((rows, inner), (inner, columns)))


def values_and_vectors(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the results of `eigh`."""
    batch, length = square(operands[0])
    return Results(batch, ((length,), (length, length)))


def singular_values_and_vectors(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the results of `svd`; the attribute says whether both matrices are square."""
    batch, rows, columns = matrices(operands[0])
    inner = min(rows, columns)
    left, right = (rows, columns) if attributes[0] else (inner, inner)
    return Results(batch, ((rows, left), (inner,), (right, columns)))


def complex_values(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the results of `eigvals`: the real and the imaginary parts of the eigenvalues."""
    batch, length = square(operands[0])
    return Results(batch, ((length,), (length,)))


def complex_values_and_vectors(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the results of `eig`: both parts of the eigenvalues, and both of the eigenvectors."""
    batch, length = square(operands[0])
    return Results(batch, ((length,), (length,), (length, length), (length, length)))


def of_complex(shape_rule: ShapeRule) -> ResultsRule:
    """Returns the rule of complex matrices, given by their real and their imaginary parts.

    The results are the real and the imaginary parts of what `shape_rule` says of the matrices.
    """

    def both_parts(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
        real, imaginary = operands
        if real != imaginary:
            raise ShapeError(f"imaginary parts of shape {imaginary} do not fit real parts of shape {real}")
        batch, _, _ = matrices(real)
        shape = shape_rule((real,), attributes)[len(batch) :]
        return Results(batch, (shape, shape))

    return both_parts
