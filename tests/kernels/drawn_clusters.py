"""Draws bodies of loops that a persistent cluster may run: products, reductions and pointwise ops on matrices.

The matrices have the same rows. They may be turned, so that rows are the last axis and the weights are on the left.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from fusewire_protos.ops.shapes import Shape
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer

_WIDTHS = (1, 3, 8, 33, 64, 100)
_KEPT = 4  # of how many iterations a matrix is kept
_UNARY = ("tanh", "sigmoid", "negative", "abs")
_BINARY = ("add", "subtract", "multiply", "maximum")
_REDUCTIONS = ("sum", "mean", "max", "min")


class Matrix(NamedTuple):
    """A value, by its number in the program, and how many columns it has; with 0 it has one element a row."""

    value: int
    columns: int


class Drawn(NamedTuple):
    """An op of the body; `first`, `second` and `columns` choose among what is known at its place."""

    kind: str
    name: int
    first: int
    second: int
    columns: int


_OPS = st.builds(
    Drawn,
    st.sampled_from(
        [
            *("product", "product", "product of an input", "joined", "gates"),
            *("unary", "binary", "reduction", "row", "bias", "kept"),
        ]
    ),
    *[st.integers(0, 9)] * 4,
)


@st.composite
def drawn_bodies(draw: st.DrawFn) -> Program:
    """Programs whose states are of one to three matrices."""
    rows, is_turned = draw(st.sampled_from([1, 1, 2, 5, 40])), draw(st.booleans())
    widths = draw(st.lists(st.sampled_from(_WIDTHS), min_size=1, max_size=2, unique=True))
    states = draw(st.lists(st.sampled_from(widths), min_size=1, max_size=3))
    body = _Body(rows, widths, states, is_turned=is_turned)
    is_keeping = draw(st.booleans())
    for op in draw(st.lists(_OPS, min_size=2, max_size=9)):
        body.add(op)
    return body.program(draw(st.lists(st.integers(0, 9), min_size=3, max_size=3)), is_keeping=is_keeping)


class _Body:
    def __init__(self, rows: int, widths: list[int], states: list[int], *, is_turned: bool) -> None:
        self._writer, self._widths, self._is_turned = Writer(), widths, is_turned
        self._states = [self._input(rows, columns) for columns in states]
        self._weights = {(k, columns): self._input(k, columns).value for k in widths for columns in widths}
        self._inputs = [self._input(rows, 20)]
        self._weights |= {(20, columns): self._input(20, columns).value for columns in widths}
        self._of_two = {k: self._input(k, sum(widths)).value for k in widths}
        sums = {one + other for one in widths for other in widths}
        self._of_joined = {(k, columns): self._input(k, columns).value for k in sums for columns in widths}
        self._biases = {columns: self._input(1, columns).value for columns in widths}
        self._kept = self._writer.input(_KEPT, *self._shape(rows, states[0]))
        self._scalar = self._writer.scalar()
        self._matrices, self._of_rows = [*self._states], list[Matrix]()

    def _shape(self, rows: int, columns: int) -> Shape:
        return (columns, rows) if self._is_turned else (rows, columns)

    def _input(self, rows: int, columns: int) -> Matrix:
        return Matrix(self._writer.input(*self._shape(rows, columns)), columns)

    def add(self, op: Drawn) -> None:
        writer = self._writer
        value, columns = self._matrices[op.first % len(self._matrices)]
        others = [each.value for each in self._matrices if each.columns == columns]
        match op.kind:
            case "product" | "product of an input" | "joined" | "gates":
                self._add_product(op, Matrix(value, columns))
            case "unary":
                self._keep(writer.op(_UNARY[op.name % len(_UNARY)], value), columns)
            case "binary":
                second = others[op.second % len(others)]
                self._keep(writer.op(_BINARY[op.name % len(_BINARY)], value, second), columns)
            case "bias":
                self._keep(writer.add(value, self._biases[columns]), columns)
            case "kept":
                self._keep(writer.slice(self._kept, (0,), (1,), dropped=(0,)), self._states[0].columns)
            case "reduction":
                name, axes = _REDUCTIONS[op.name % len(_REDUCTIONS)], (0,) if self._is_turned else (1,)
                self._of_rows.append(Matrix(writer.op(name, value, attributes=(axes, True)), 0))
            case "row" if self._of_rows:
                of_rows = self._of_rows[op.second % len(self._of_rows)].value
                self._keep(writer.multiply(value, writer.tanh(of_rows)), columns)

    def _add_product(self, op: Drawn, left: Matrix) -> None:
        match op.kind:
            case "product":
                self._multiply(left, op.columns)
            case "product of an input":
                self._multiply(self._inputs[0], op.columns)
            case "joined":
                self._multiply_joined(left, self._matrices[op.second % len(self._matrices)], op.columns)
            case _:
                self._add_gates(left, is_shifted=bool(op.name % 2))

    def _multiply(self, left: Matrix, choice: int) -> None:
        columns = self._widths[choice % len(self._widths)]
        self._multiply_by(self._weights[left.columns, columns], left.value, columns)

    def _multiply_by(self, weights: int, value: int, columns: int) -> None:
        operands = (weights, value) if self._is_turned else (value, weights)
        self._keep(self._writer.matmul(*operands), columns)

    def _multiply_joined(self, left: Matrix, second: Matrix, choice: int) -> None:
        """Multiplies two matrices side by side by weights."""
        columns = self._widths[choice % len(self._widths)]
        joined = self._writer.concat(left.value, second.value, axis=0 if self._is_turned else 1)
        self._multiply_by(self._of_joined[left.columns + second.columns, columns], joined, columns)

    def _add_gates(self, left: Matrix, *, is_shifted: bool) -> None:
        """Adds parts of one product. They have the widths of the body, and lie side by side."""
        weights, axis = self._of_two[left.columns], 0 if self._is_turned else 1
        gates = self._writer.matmul(*((weights, left.value) if self._is_turned else (left.value, weights)))
        if is_shifted:
            gates = self._writer.multiply(gates, self._scalar)
        for columns in self._widths:
            self._keep(self._writer.slice(gates, (axis,), (columns,)), columns)

    def _keep(self, value: int, columns: int) -> None:
        self._matrices.append(Matrix(value, columns))

    def program(self, choices: list[int], *, is_keeping: bool) -> Program:
        """The next states are chosen among the last matrices of their shape, and kept small.

        A matrix of each iteration may be kept.
        """
        carried = []
        for state, choice in zip(self._states, choices, strict=False):
            like = [each.value for each in self._matrices if each.columns == state.columns][-3:]
            following = self._writer.tanh(self._writer.multiply(like[choice % len(like)], self._scalar))
            carried.append((state.value, following))
        if is_keeping:
            of_width = [each.value for each in self._matrices if each.columns == self._states[0].columns]
            value = self._writer.tanh(of_width[choices[0] % len(of_width)])
            carried.append((self._kept, self._writer.assign(self._kept, value, axis=0)))
        return self._writer.program(*{following for _, following in carried}, carried=carried)
