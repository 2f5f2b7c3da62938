"""Each library op bounds its workspace, and what was measured lies within the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.ops.workspaces import WORKSPACES, workspace_bytes
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category
from fusewire_protos.ops.shapes import Shape, Spec

# Op, shape, attributes, and the KiB that the call held in float32: CuPy 14.2 on CUDA 13, on an H200. In float64 it held
# twice that. These are the calls of each op, small and large, that came closest to the bounds.
MEASURED: list[tuple[str, Shape, Attributes, int]] = [
    ("cholesky", (1024, 1024), (True,), 24576),
    ("cholesky", (3000, 3000), (False,), 105468),
    ("complex_cholesky", (100, 70, 70), (False,), 15318),
    ("complex_cholesky", (3000, 65, 65), (False,), 396135),
    ("complex_eig", (100, 70, 70), (), 23321),
    ("complex_eig", (3000, 65, 65), (), 595959),
    ("complex_eigh", (100, 70, 70), (False,), 17858),
    ("complex_eigh", (3000, 3000), (False,), 495433),
    ("complex_qr", (100, 2000), (False,), 26711),
    ("complex_qr", (8000, 20), (True,), 1505000),
    ("complex_slogdet", (1024, 1024), (), 24592),
    ("complex_slogdet", (3000, 3000), (), 211044),
    ("complex_svd", (50, 65, 100), (True,), 22014),
    ("complex_svd", (8000, 20), (True,), 1502506),
    ("det", (1024, 1024), (), 8208),
    ("det", (3000, 3000), (), 70385),
    ("eig", (1024, 1024), (), 32792),
    ("eig", (3000, 65, 65), (), 250608),
    ("eigh", (1024, 1024), (False,), 25216),
    ("eigh", (3000, 3000), (False,), 212566),
    ("eigvals", (1024, 1024), (), 28696),
    ("eigvals", (3000, 65, 65), (), 249247),
    ("eigvalsh", (1024, 1024), (False,), 25216),
    ("eigvalsh", (3000, 3000), (False,), 212566),
    ("fft", (2, 9999991), (False,), 664062),
    ("inv", (1024, 1024), (), 12304),
    ("inv", (3000, 3000), (), 105542),
    ("irfft", (1009,), (True,), 63),
    ("irfft", (33554393,), (True,), 3670016),
    ("qr", (100, 2000), (False,), 12574),
    ("qr", (8000, 20), (True,), 752500),
    ("rfft", (1009,), (), 27),
    ("rfft", (33554393,), (), 1703937),
    ("slogdet", (1024, 1024), (), 8208),
    ("slogdet", (3000, 3000), (), 70385),
    ("solve", (1024, 1024), (), 8472),
    ("solve", (3000, 3000), (), 71159),
    ("svd", (100, 2000), (True,), 35245),
    ("svd", (8000, 20), (True,), 751253),
    ("svdvals", (1024, 1024), (), 21781),
    ("svdvals", (3000, 3000), (), 179096),
]
_COLUMNS = 33  # of the right sides of equations


def _bound(name: str, shape: Shape, attributes: Attributes, dtype: DType = dtypes.float32) -> int:
    op = BY_NAME[name]
    operands = [Spec(dtype, shape)] * op.least_operands
    if name == "solve":
        operands[1] = Spec(dtype, (*shape[:-1], _COLUMNS))
    return workspace_bytes(op, operands, OneOpCall(op, tuple(operands), attributes).result())


def test_each_library_op_has_a_bound() -> None:
    assert WORKSPACES.keys() == {op.name for op in BY_NAME.values() if op.category is Category.LIBRARY}
    assert {name for name, *_ in MEASURED} == WORKSPACES.keys()


@pytest.mark.parametrize("measured", MEASURED, ids=str)
def test_what_was_measured_is_at_most_four_fifths_of_the_bound(measured: tuple[str, Shape, Attributes, int]) -> None:
    name, shape, attributes, held_kib = measured
    assert 5 * held_kib * 1024 <= 4 * _bound(name, shape, attributes)
    assert _bound(name, shape, attributes, dtypes.float64) == 2 * _bound(name, shape, attributes)


@given(
    name=st.sampled_from([*WORKSPACES]), side=st.integers(2, 500), batch=st.integers(1, 100), more=st.integers(1, 100)
)
def test_a_bound_grows_with_the_shape(name: str, side: int, batch: int, more: int) -> None:
    attributes = (False,) * len(BY_NAME[name].attributes)
    bound = _bound(name, (batch, side, side), attributes)
    assert bound <= _bound(name, (batch + more, side, side), attributes)
    assert bound <= _bound(name, (batch, side + more, side + more), attributes)
