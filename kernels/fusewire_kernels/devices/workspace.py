"""Bounds the memory that one call of an array library holds, of an allocator that bounds all calls together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusewire_protos.errors import OutOfMemory


class Workspace:
    """The memory of one call. `what` names the call in errors. Not thread-safe."""

    def __init__(self, limit_bytes: int, what: str) -> None:
        self.held_bytes = 0
        self._limit_bytes = limit_bytes
        self._what = what

    def lease(self, size_bytes: int, allocate: Callable[[int], Any]) -> Lease:
        """Allocates memory. Raises OutOfMemory beyond the bound, and what `allocate` raises."""
        held_bytes = self.held_bytes + size_bytes
        if held_bytes > self._limit_bytes:
            raise OutOfMemory(
                f"{self._what} takes {held_bytes} bytes of memory beside its operands and its result; "
                f"the most for them is {self._limit_bytes}"
            )
        return Lease(self, allocate(size_bytes), size_bytes)


class Lease:
    """Memory of a call, which counts as long as somebody holds this object."""

    def __init__(self, workspace: Workspace, memory: Any, size_bytes: int) -> None:
        self.memory = memory
        self._workspace = workspace
        self._size_bytes = size_bytes
        workspace.held_bytes += size_bytes

    def __del__(self) -> None:
        self._workspace.held_bytes -= self._size_bytes
