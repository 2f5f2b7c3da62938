"""The twins of linear algebra are NumPy's functions, but for matrices that an algorithm cannot take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.ops.linear_algebra import TWINS
from fusewire_protos.ops import catalogue
from fusewire_protos.ops.catalogue import BY_NAME

Array = npt.NDArray[Any]

_RANDOM = np.random.default_rng(0)
_ANY = _RANDOM.standard_normal((3, 4, 4))
_POSITIVE = _ANY @ _ANY.mT + np.eye(4)
_WITH_ZEROS = np.stack([_POSITIVE[0], np.zeros((4, 4)), _POSITIVE[2]])


def _run(name: str, *operands: Array, flags: Sequence[bool] = ()) -> Array:
    return np.asarray(TWINS[name](np, operands, tuple(flags), ()))


def _parts(name: str, packed: Array, shape: tuple[int, ...], *flags: bool) -> list[Array]:
    results = BY_NAME[name].results
    assert results is not None
    parts = results((shape,), flags).parts()
    return [packed[..., part.start : part.start + part.length].reshape(part.shape) for part in parts]


def test_every_op_of_matrices_has_a_twin() -> None:
    assert {*TWINS} == {op.name for op in catalogue.OPS if op.core_rank == 2}


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 5), (4, 2), (0, 3), (2, 3, 0)])
def test_several_results_lie_in_one_array_in_their_order(shape: tuple[int, ...], is_full: bool) -> None:
    x = _RANDOM.standard_normal(shape)
    for name, expected in (
        ("svd", np.linalg.svd(x, full_matrices=is_full)),
        ("qr", np.linalg.qr(x, mode="complete" if is_full else "reduced")),
    ):
        for found, each in zip(_parts(name, _run(name, x, flags=[is_full]), shape, is_full), expected, strict=True):
            np.testing.assert_array_equal(found, each)


@pytest.mark.parametrize("upper", [False, True])
def test_one_triangle_is_read(upper: bool) -> None:
    half = np.triu(_POSITIVE) if upper else np.tril(_POSITIVE)
    np.testing.assert_allclose(
        _run("cholesky", half, flags=[upper]), np.linalg.cholesky(_POSITIVE, upper=upper), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(_run("eigvalsh", half, flags=[upper]), np.linalg.eigvalsh(_POSITIVE), rtol=1e-12)


@pytest.mark.parametrize("name", ["inv", "cholesky", "solve"])
def test_a_matrix_that_fails_gives_nan_alone(name: str) -> None:
    right = [_ANY] if name == "solve" else []
    flags = [False] if name == "cholesky" else []
    found = _run(name, _WITH_ZEROS, *right, flags=flags)
    assert np.isnan(found[1]).all()
    for index in (0, 2):
        alone = _run(name, _POSITIVE[index], *[each[index] for each in right], flags=flags)
        np.testing.assert_array_equal(found[index], alone)


def test_a_single_matrix_that_fails_gives_nan() -> None:
    found = _run("inv", np.zeros((2, 2), np.float32))
    assert found.dtype == np.float32
    assert np.isnan(found).all()
    assert found.shape == (2, 2)


def test_matrices_without_elements_have_their_results() -> None:
    assert _run("det", np.zeros((2, 0, 0))).tolist() == [1.0, 1.0]
    assert _run("slogdet", np.zeros((0, 0))).tolist() == [1.0, 0.0]
    assert _run("solve", np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("name", sorted(TWINS))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_matrix_that_is_not_finite_gives_nan_alone(name: str, value: float) -> None:
    flags = [False] * len(BY_NAME[name].attributes)
    operands = [_POSITIVE.copy() for _ in range(BY_NAME[name].least_operands)]
    sound = _run(name, *operands, flags=flags)
    operands[-1][1, 2, 0] = operands[-1][1, 0, 2] = value
    found = _run(name, *operands, flags=flags)
    assert found.dtype == np.float64
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], sound[[0, 2]])
