"""The derivative of the matrix product is that of central differences: of matrices, vectors and batches."""

from __future__ import annotations

import pytest

import fusewire as fw
from tests.client.api.gradients.differences import Case, check, check_twice, drawn

SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (3, 2)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 3), (2, 3, 2)),
    ((3, 2), (2, 2, 2)),
    ((3, 2), (2, 2, 2, 1)),
    ((3, 2), (2, 2, 0)),
    ((2, 1, 2, 3), (2, 3, 2)),
    ((2, 0), (0, 3)),
]
CASES = {"matmul": [Case(lambda a, b: a @ b, (drawn(*left), drawn(*right, seed=1))) for left, right in SHAPES]}


@pytest.mark.parametrize("case", CASES["matmul"], ids=[f"{left}x{right}" for left, right in SHAPES])
def test_a_gradient_is_that_of_differences(session: fw.Session, case: Case) -> None:
    check(session, case.function, *case.values)


def test_a_second_derivative_is_that_of_differences(session: fw.Session) -> None:
    check_twice(session, lambda a, b: a @ b, drawn(2, 2), drawn(2, 1, seed=1))


def test_functions_of_several_products_are_differentiated(session: fw.Session) -> None:
    check(session, lambda a, b: fw.einsum("bij,bjk->ik", a, b), drawn(2, 2, 3), drawn(2, 3, 2, seed=1))
    check(session, lambda a, b: fw.tensordot(a, b, axes=2), drawn(2, 2, 3), drawn(2, 3, 2, seed=1))
    check(session, fw.outer, drawn(2), drawn(3, seed=1))
