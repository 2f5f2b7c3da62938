"""Says which lines the Fourier transforms take, and of which shapes their results are.

A line lies along the last axis. The axes before it are a batch, whose lines are transformed one by one. Complex numbers
are two arrays of one shape, the real parts and the imaginary parts. No op scales its result.
"""

from __future__ import annotations

from typing import Any

from fusewire_protos.errors import ShapeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.results import Results
from fusewire_protos.ops.shapes import Shape

# The transform of a line runs as a whole, on a processor for some ten seconds at this length, and nothing else runs
# meanwhile.
MOST_POINTS = 1 << 26

_Attributes = tuple[Any, ...]


def dtype_of(operands: tuple[DType, ...]) -> DType:
    """Returns the dtype in which an op computes: float32 for 16-bit floats, float64 for integers, as NumPy does."""
    promoted = dtypes.promote_all(operands)
    return promoted.accumulator if promoted.is_floating else dtypes.float64


def lines(shape: Shape) -> tuple[Shape, int]:
    """Returns the batch and the length of a line. Raises ShapeError for rank 0, and for lines that are empty."""
    if not shape:
        raise ShapeError("a transform takes arrays of rank 1 or more, not a scalar")
    *batch, points = shape
    return tuple(batch), checked_points(points)


def of_complex(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the real and the imaginary parts that `fft` computes."""
    batch, points = lines(_same(operands))
    return Results(batch, ((points,), (points,)))


def of_real(operands: tuple[Shape, ...], attributes: _Attributes) -> Results:
    """Returns the real and the imaginary parts that `rfft` computes, those of the frequencies that are not negative."""
    batch, points = lines(operands[0])
    kept = points // 2 + 1
    return Results(batch, ((kept,), (kept,)))


def to_real(operands: tuple[Shape, ...], attributes: _Attributes) -> Shape:
    """Returns the shape of the result of `irfft`; the attribute says whether its lines have an odd length."""
    batch, kept = lines(_same(operands))
    return (*batch, checked_points(real_points(kept, is_odd=attributes[0])))


def real_points(kept: int, *, is_odd: bool) -> int:
    """Returns how many real points have so many frequencies that are not negative."""
    return 2 * (kept - 1) + is_odd


def checked_points(points: int) -> int:
    """Returns a number of points. Raises ShapeError for none, and for too many."""
    if points < 1:
        raise ShapeError(f"a transform takes 1 point or more, not {points}")
    if points > MOST_POINTS:
        raise ShapeError(f"a transform of {points} points; the most is {MOST_POINTS}")
    return points


def _same(operands: tuple[Shape, ...]) -> Shape:
    real, imaginary = operands
    if real != imaginary:
        raise ShapeError(f"imaginary parts of shape {imaginary} do not fit real parts of shape {real}")
    return real
