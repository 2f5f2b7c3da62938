"""Decompositions give back the matrix, and are those of the CPU."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

_DTYPES = [torch.float64, torch.complex128]


def _matrices(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 6), columns=st.integers(1, 6), batch=st.integers(0, 2), dtype=st.sampled_from(_DTYPES))
def test_lu_is_that_of_the_cpu(rows: int, columns: int, batch: int, dtype: torch.dtype) -> None:
    there = _matrices(*([batch] if batch else []), rows, columns, dtype=dtype)
    factors, pivots, info = torch.linalg.lu_factor_ex(there.to("fusewire"))
    wanted = torch.linalg.lu_factor_ex(there)
    torch.testing.assert_close((factors.cpu(), pivots.cpu(), info.cpu()), tuple(wanted))
    p, lower, upper = torch.linalg.lu(there.to("fusewire"))
    torch.testing.assert_close((p @ lower @ upper).cpu(), there)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("dtype", _DTYPES)
def test_a_decomposition_solves(left: bool, adjoint: bool, dtype: torch.dtype) -> None:
    there, right = _matrices(2, 4, 4, dtype=dtype), _matrices(2, 4, 4, dtype=dtype) + 1
    found = [
        torch.linalg.lu_solve(*torch.linalg.lu_factor(each), other, left=left, adjoint=adjoint).cpu()
        for each, other in ((there, right), (there.to("fusewire"), right.to("fusewire")))
    ]
    torch.testing.assert_close(*found)


def test_the_first_zero_on_the_diagonal_is_told() -> None:
    matrix = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])
    found = torch.linalg.lu_factor_ex(matrix.to("fusewire"))
    wanted = torch.linalg.lu_factor_ex(matrix)
    assert int(found.info) == int(wanted.info) == 3
    torch.testing.assert_close(found.LU.cpu(), wanted.LU)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("dtype", _DTYPES)
def test_reflections_are_those_of_the_cpu(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    there = _matrices(*shape, dtype=dtype)
    here = there.to("fusewire")
    wanted, found = torch.geqrf(there), torch.geqrf(here)
    torch.testing.assert_close(tuple(each.cpu() for each in found), tuple(wanted))
    for left in (False, True):
        for transpose in (False, True):
            options = {"left": left, "transpose": transpose}
            other = _matrices(*shape[:-2], shape[-2], shape[-2], dtype=dtype)
            torch.testing.assert_close(
                torch.ormqr(*found, other.to("fusewire"), **options).cpu(), torch.ormqr(*wanted, other, **options)
            )


def test_a_vector_is_refused() -> None:
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.linalg.lu_factor(torch.ones(3, device="fusewire"))
