"""A call of an array library holds no more memory than its bound; what it drops counts no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.devices.workspace import Lease, Workspace
from fusewire_kernels.ops import reference
from fusewire_kernels.ops.workspaces import workspace_bytes
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec


@given(sizes=st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30))
def test_what_is_held_is_counted_and_never_exceeds_the_bound(sizes: list[tuple[int, bool]]) -> None:
    workspace, held = Workspace(100, "svd"), list[tuple[int, Lease]]()
    for size, drops_first in sizes:
        if drops_first and held:
            held.pop(0)
        before = sum(each for each, _ in held)
        if before + size > 100:
            with pytest.raises(OutOfMemory, match=f"svd takes {before + size} bytes .* the most for them is 100"):
                workspace.lease(size, bytearray)
        else:
            held.append((size, workspace.lease(size, bytearray)))
        assert workspace.held_bytes == sum(each for each, _ in held)
    assert [len(lease.memory) for _, lease in held] == [size for size, _ in held]


def test_memory_that_is_not_there_counts_nothing() -> None:
    def refuse(size_bytes: int) -> Any:
        raise MemoryError(size_bytes)

    workspace = Workspace(100, "svd")
    with pytest.raises(MemoryError):
        workspace.lease(50, refuse)
    assert workspace.held_bytes == 0


class _Counting:
    """Is NumPy, but for arrays that it makes of a shape: these take memory of a workspace, as CuPy's do."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._leases: list[Lease] = []

    def empty(self, shape: Any, dtype: Any) -> Any:
        size_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self._leases.append(self._workspace.lease(size_bytes, bytearray))
        return np.frombuffer(self._leases[-1].memory, dtype).reshape(shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def test_an_op_stays_within_what_it_declares_and_fails_by_name_beyond_it() -> None:
    op, operands = BY_NAME["fft"], (Spec(dtypes.float64, (4, 100)),) * 2
    result = Spec(dtypes.float64, (4, 200))
    lines = [np.random.default_rng(0).standard_normal(operands[0].shape) for _ in range(2)]
    for limit_bytes, is_enough in ((workspace_bytes(op, operands, result), True), (result.size_bytes, False)):
        compute = reference.prepare(op, _Counting(Workspace(limit_bytes, op.name)), operands, (False,))
        if is_enough:
            assert compute(*lines).shape == result.shape
        else:
            with pytest.raises(OutOfMemory, match=r"^fft takes"):
                compute(*lines)
