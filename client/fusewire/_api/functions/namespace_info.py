"""What the array API standard lets a program ask about this namespace."""

from __future__ import annotations

from typing import Any

from fusewire._api.devices import session_on
from fusewire._api.functions.dtypes import KINDS, isdtype
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import MAX_RANK


class NamespaceInfo:
    """The answers. Those about devices are of the default session, which has one device."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Returns what there is of what the standard leaves open, and the greatest rank of an array."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": MAX_RANK}

    def default_device(self) -> str:
        device: str = session_on(None).backend
        return device

    def devices(self) -> list[str]:
        return [self.default_device()]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """Returns the dtypes of creation functions that get none. Raises ArgumentError for another device."""
        _check(device)
        return {
            "real floating": dtypes.float64,
            "complex floating": dtypes.complex128,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """Returns the dtypes by name, all of them or those of a kind, which is one of `isdtype`.

        The standard has no halves, so float16 and bfloat16 are left out. Raises ArgumentError for another device, and
        ValueError for an unknown kind.
        """
        _check(device)
        wanted = tuple(KINDS) if kind is None else kind
        return {
            each.name: each for each in (*dtypes.ALL, *dtypes.COMPLEX) if not each.is_half and isdtype(each, wanted)
        }


def _check(device: str | None) -> None:
    if device is not None:
        session_on(device)


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # the standard's name
    """Returns an object that says what this namespace can do."""
    return NamespaceInfo()
