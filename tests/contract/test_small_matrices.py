"""Kernels of small matrices against NumPy: every op, dtype and kind of side, and matrices on which algorithms fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.build import build_plan
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import ProgramOp, build
from tests.contract.harness import Job, Runner, assert_one_meaning
from tests.effort import of_a_hundred
from tests.strategies import OF_SMALL_MATRICES, Work, programs_of
from tests.tolerances import assert_same_bytes, assert_same_numbers

Array = npt.NDArray[Any]

_DTYPES = (dtypes.float32, dtypes.float64)
# One, few, an odd number, and both sides of the border between a warp and a block for a matrix; the greatest.
_SIDES = (1, 2, 5, 16, 31, 32, 33, 64)
_ROUNDINGS = 40  # in units of the last place for each row, of what an algorithm computes
_SCALES = (1.0, 1e-18, 1e18)  # squares of numbers near the ends of float32 are beyond them


class Case(NamedTuple):
    """An op with its operands."""

    name: str
    attributes: Attributes
    operands: tuple[Array, ...]

    def work(self) -> Work:
        specs = [Spec(dtypes.from_numpy(each.dtype), each.shape) for each in self.operands]
        op = ProgramOp(BY_NAME[self.name], tuple(range(len(specs))), self.attributes)
        return Work(build(specs, (), [op], [0]), self.operands, (), ())

    def several(self, packed: Array) -> list[Array]:
        """The arrays that the result of an op of several holds."""
        results = BY_NAME[self.name].results
        assert results is not None
        parts = results(tuple([each.shape for each in self.operands]), self.attributes).parts()
        return [packed[..., part.start : part.start + part.length].reshape(part.shape) for part in parts]


def _case(name: str, dtype: DType, side: int, *, scale: float = 1.0, count: int = 3) -> Case:
    """Matrices that the op takes: positive definite, symmetric, of other columns than rows, or any."""
    random = np.random.default_rng(side)
    a = random.standard_normal((count, side, side))
    if name == "cholesky":
        a = a @ a.mT + side * np.eye(side)
    elif name.startswith("eig"):
        a = a + a.mT
    elif name == "det":
        a = a / np.sqrt(side)  # whose determinants are no greater than float32 can hold
    elif name == "qr":
        a = a[:, :, : max(side - 3, 1)]
    others = [random.standard_normal((count, side, 3))] if name == "solve" else []
    numpys = dtypes.to_numpy(dtype)
    attributes = (False,) * len(BY_NAME[name].attributes)
    return Case(name, attributes, tuple([(each * scale).astype(numpys) for each in (a, *others)]))


def _run(runner: Runner, cases: Sequence[Case]) -> list[Array]:
    works = [case.work() for case in cases]
    runner.prepare(Job(work.program, is_fused=True) for work in works)
    return [runner.run(work)[0] for work in works]


def _name(op: Op) -> str:
    return op.name


# ---- what is computed ----


def _assert_near(found: Array, wanted: Array, magnitude: Array | float, rows: int) -> None:
    limit = _ROUNDINGS * rows * np.finfo(found.dtype).eps * np.asarray(magnitude, np.float64)
    differences = np.abs(found.astype(np.float64) - wanted)
    assert (differences <= limit).all(), f"off by {differences.max()}, not {np.max(limit)} at most"


def _norm(matrices: Array) -> Array:
    return np.asarray(np.linalg.norm(matrices.astype(np.float64), axis=(-2, -1), keepdims=True))


def _assert_solves(case: Case, found: Array) -> None:
    """The residual is small beside the matrix and the solution (Higham, section 7.1)."""
    a, b = [each.astype(np.float64) for each in case.operands]
    _assert_near((a @ found).astype(found.dtype), b, _norm(a) * _norm(found), a.shape[-1])


def _assert_inverts(case: Case, found: Array) -> None:
    a = case.operands[0].astype(np.float64)
    unit = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    _assert_near((a @ found).astype(found.dtype), unit, _norm(a) * _norm(found), a.shape[-1])


def _assert_determines(case: Case, found: Array) -> None:
    a = case.operands[0].astype(np.float64)
    condition = np.linalg.cond(a)
    wanted = np.linalg.det(a)
    _assert_near(found, wanted, np.abs(wanted) * condition, a.shape[-1])


def _assert_has_logarithm(case: Case, found: Array) -> None:
    a = case.operands[0].astype(np.float64)
    sign, logarithm = case.several(found)
    wanted = np.linalg.slogdet(a)
    assert sign.tolist() == wanted.sign.tolist()
    _assert_near(logarithm, wanted.logabsdet, np.abs(wanted.logabsdet) + np.linalg.cond(a), a.shape[-1])


def _assert_is_factor(case: Case, found: Array) -> None:
    a = case.operands[0].astype(np.float64)
    upper = case.attributes[0]
    assert not np.tril(found, -1).any() if upper else not np.triu(found, 1).any()
    wide = found.astype(np.float64)
    product = wide.mT @ wide if upper else wide @ wide.mT
    _assert_near(product.astype(found.dtype), a, _norm(a), a.shape[-1])


def _assert_is_qr(case: Case, found: Array) -> None:
    """The factors, and the signs of LAPACK's."""
    a = case.operands[0].astype(np.float64)
    q, r = case.several(found)
    wide = q.astype(np.float64)
    assert not np.tril(r, -1).any()
    unit = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
    _assert_near((wide.mT @ wide).astype(q.dtype), unit, 1.0, a.shape[-2])
    _assert_near((wide @ r).astype(q.dtype), a, _norm(a), a.shape[-2])
    _, wanted = np.linalg.qr(a, mode="complete" if case.attributes[0] else "reduced")
    diagonal, wanted = [np.diagonal(each, axis1=-2, axis2=-1) for each in (r, wanted)]
    assert (np.signbit(diagonal) == np.signbit(wanted)).all()


def _assert_has_values(case: Case, found: Array) -> None:
    a = case.operands[0].astype(np.float64)
    wanted = np.linalg.eigvalsh(a, UPLO="U" if case.attributes[0] else "L")
    assert (np.diff(found, axis=-1) >= 0).all()
    _assert_near(found, wanted, _norm(a)[..., 0], a.shape[-1])


def _assert_has_vectors(case: Case, found: Array) -> None:
    a = case.operands[0].astype(np.float64)
    values, vectors = case.several(found)
    _assert_has_values(case, values)
    wide = vectors.astype(np.float64)
    unit = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    _assert_near((wide.mT @ wide).astype(values.dtype), unit, 1.0, a.shape[-1])
    _assert_near((wide * values[..., None, :] @ wide.mT).astype(values.dtype), a, _norm(a), a.shape[-1])


_ASSERT_RIGHT: dict[str, Callable[[Case, Array], None]] = {
    "solve": _assert_solves,
    "inv": _assert_inverts,
    "det": _assert_determines,
    "slogdet": _assert_has_logarithm,
    "cholesky": _assert_is_factor,
    "qr": _assert_is_qr,
    "eigvalsh": _assert_has_values,
    "eigh": _assert_has_vectors,
}


def test_every_op_of_small_matrices_is_compared() -> None:
    assert {*_ASSERT_RIGHT} == {op.name for op in OF_SMALL_MATRICES}


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("name", _ASSERT_RIGHT)
def test_results_are_right_for_sides_of_every_kind(runner: Runner, name: str, dtype: DType) -> None:
    cases = [_case(name, dtype, side) for side in _SIDES]
    for case, found in zip(cases, _run(runner, cases), strict=True):
        _ASSERT_RIGHT[name](case, found)


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("name", ["solve", "inv", "cholesky", "qr", "eigh", "eigvalsh"])
def test_numbers_far_from_one_are_taken(runner: Runner, name: str, dtype: DType) -> None:
    cases = [_case(name, dtype, 8, scale=scale) for scale in _SCALES]
    for case, found in zip(cases, _run(runner, cases), strict=True):
        _ASSERT_RIGHT[name](case, found)


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (40, 5), (5, 40), (1, 6), (6, 1)])
@pytest.mark.parametrize("is_complete", [False, True])
def test_qr_has_other_rows_than_columns(
    runner: Runner, dtype: DType, shape: tuple[int, int], is_complete: bool
) -> None:
    a = np.random.default_rng(0).standard_normal((2, *shape)).astype(dtypes.to_numpy(dtype))
    case = Case("qr", (is_complete,), (a,))
    _assert_is_qr(case, _run(runner, [case])[0])


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_only_one_triangle_is_read(runner: Runner, name: str, dtype: DType) -> None:
    (a,) = _case(name, dtype, 6).operands
    rubbish = np.full_like(a, 77.0)
    for upper, half in ((True, np.triu(a) + np.tril(rubbish, -1)), (False, np.tril(a) + np.triu(rubbish, 1))):
        whole, of_half = _run(runner, [Case(name, (upper,), (each,)) for each in (a, half)])
        assert_same_bytes(of_half, whole)
        _ASSERT_RIGHT[name](Case(name, (upper,), (a,)), of_half)


def test_of_equal_pivots_the_first_is_taken(runner: Runner) -> None:
    """The inverse shows the order of rounding: any other pivot would give 1/3 by other steps."""
    a = np.array([[[3.0, 1.0], [-3.0, 1.0]]])
    (found,) = _run(runner, [Case("inv", (), (a,))])
    low = -3.0 / 3.0
    second = 1.0 / (1.0 - low * 1.0)
    assert found[0, 1].tolist() == [-low * second, second]


def test_a_determinant_overflows_only_if_it_is_too_great(runner: Runner) -> None:
    diagonal = [1e200, 1e200, 1e-200, 1e-200, -3.0]
    (found,) = _run(runner, [Case("det", (), (np.diag(diagonal)[None],))])
    assert found == pytest.approx([-3.0], rel=1e-14)


def test_equal_eigenvalues_have_orthogonal_vectors(runner: Runner) -> None:
    case = Case("eigh", (False,), (np.stack([np.eye(7), np.ones((7, 7)), np.zeros((7, 7))]),))
    _assert_has_vectors(case, _run(runner, [case])[0])


# ---- what fails ----


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet"])
def test_a_singular_matrix_has_no_inverse_and_the_determinant_zero(runner: Runner, name: str, dtype: DType) -> None:
    case = _case(name, dtype, 5)
    case.operands[0][1, :, 2] = 0.0
    (found,) = _run(runner, [case])
    wanted = np.asarray(twin(BY_NAME[name])(np, case.operands, (), ()))
    assert_same_numbers(found[1], wanted[1])
    assert np.isfinite(found[[0, 2]]).all()


def test_a_matrix_that_is_not_positive_has_no_cholesky_factor(runner: Runner) -> None:
    case = _case("cholesky", dtypes.float32, 5)
    case.operands[0][1, 3, 3] = -1.0
    (found,) = _run(runner, [case])
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [5, 33])
@pytest.mark.parametrize("name", _ASSERT_RIGHT)
def test_a_matrix_that_is_not_finite_gives_nan_alone(runner: Runner, name: str, side: int, value: float) -> None:
    sound = _case(name, dtypes.float32, side)
    operands = [each.copy() for each in sound.operands]
    operands[-1][1, 2, 0] = value
    wanted, found = _run(runner, [sound, Case(name, sound.attributes, tuple(operands))])
    assert_same_bytes(found[1], np.full_like(found[1], np.nan))
    assert_same_bytes(found[[0, 2]], wanted[[0, 2]])


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("name", _ASSERT_RIGHT)
def test_the_greatest_and_the_least_numbers_end_no_kernel(runner: Runner, name: str, dtype: DType) -> None:
    bounds = np.finfo(dtypes.to_numpy(dtype))
    cases = [_case(name, dtype, side) for side in (4, 5) for _ in range(2)]
    for case, number in zip(cases, (bounds.max, bounds.smallest_subnormal) * 2, strict=True):
        for each in case.operands:
            each[...] = np.where(each < 0, -number, number)
    for found in _run(runner, cases):
        assert_same_numbers(found, found)


@pytest.mark.parametrize(
    ("name", "attributes", "shape", "wanted"),
    [
        ("det", (), (2, 0, 0), np.ones(2)),
        ("slogdet", (), (2, 0, 0), np.array([[1.0, 0.0], [1.0, 0.0]])),
        ("qr", (True,), (1, 3, 0), np.eye(3).reshape(1, 9)),
        ("eigh", (False,), (2, 0, 0), np.zeros((2, 0))),
        ("inv", (), (0, 3, 3), np.zeros((0, 3, 3))),
    ],
)
def test_matrices_without_elements_have_results(
    runner: Runner, name: str, attributes: Attributes, shape: tuple[int, ...], wanted: Array
) -> None:
    (found,) = _run(runner, [Case(name, attributes, (np.zeros(shape),))])
    assert_same_bytes(found, wanted)


# ---- in company ----


@pytest.mark.parametrize("name", _ASSERT_RIGHT)
def test_a_matrix_of_a_batch_has_the_bits_that_it_has_alone(runner: Runner, name: str) -> None:
    case = _case(name, dtypes.float32, 9, count=40)
    alone = [Case(name, case.attributes, tuple([each[i] for each in case.operands])) for i in (0, 17, 39)]
    together, *others = _run(runner, [case, *alone])
    for i, found in zip((0, 17, 39), others, strict=True):
        assert_same_bytes(found, together[i])


@pytest.mark.parametrize("op", OF_SMALL_MATRICES, ids=_name)
@of_a_hundred(3)
@given(data=st.data())
def test_every_way_of_running_an_op_gives_the_same_bytes(runner: Runner, op: Op, data: st.DataObject) -> None:
    assert_one_meaning(runner, data.draw(st.lists(programs_of(op), min_size=4, max_size=4)))


@pytest.mark.parametrize("name", _ASSERT_RIGHT)
@of_a_hundred(5)
@given(data=st.data())
def test_drawn_sides_and_scales_are_right(runner: Runner, name: str, data: st.DataObject) -> None:
    drawn = st.builds(
        lambda dtype, side, scale: _case(name, dtype, side, scale=scale),
        st.sampled_from(_DTYPES),
        st.integers(1, 64),
        st.sampled_from((1.0, 0.01, 100.0) if name not in ("det", "slogdet") else (1.0,)),
    )
    cases = data.draw(st.lists(drawn, min_size=3, max_size=3))
    for case, found in zip(cases, _run(runner, cases), strict=True):
        _ASSERT_RIGHT[name](case, found)


@pytest.mark.parametrize("dialect", ["c", "cuda"])
@pytest.mark.parametrize("name", _ASSERT_RIGHT)
def test_a_batch_of_small_matrices_is_one_launch(name: str, dialect: str) -> None:
    plan = build_plan(_case(name, dtypes.float32, 16, count=1000).work().program, dialect)
    assert len(plan.launches) == 1
    assert plan.arena_bytes == 0
