"""What the array API standard asks of an array beside ops: its namespace, and its value for other libraries."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from fusewire._errors import ArgumentError
from fusewire._stream.receivers import Value

ARRAY_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
DLPACK_CPU = (1, 0)  # the kind and the number of a device


def namespace(api_version: str | None) -> ModuleType:
    """Returns the module `fusewire`. Raises ValueError for a version that it does not know."""
    if api_version is not None and api_version not in ARRAY_API_VERSIONS:
        known = ", ".join(ARRAY_API_VERSIONS)
        raise ValueError(f"version {api_version!r} of the array API is unknown; known are {known}")
    return sys.modules["fusewire"]


def refuse_stream(stream: object) -> None:
    """Raises ArgumentError for a stream of a device."""
    if stream is not None:
        raise ArgumentError(f"stream {stream!r}: the work of a session is in order, and has no streams; pass None")


def check_export(dl_device: tuple[int, int] | None, *, copy: bool | None) -> None:
    """Raises BufferError for an export by DLPack without a copy, or to another device than the processor."""
    if copy is False:
        raise BufferError("copy=False: a value on a server is exported as a copy")
    if dl_device not in (None, DLPACK_CPU):
        raise BufferError(f"device {dl_device}: a value on a server is exported to {DLPACK_CPU}, the processor")


def exported(value: Value, max_version: tuple[int, int] | None) -> Any:
    """Returns a value as DLPack has it. Raises BufferError for a dtype that DLPack does not have."""
    given: Any = value  # with the parameters of this release of NumPy
    return given.__dlpack__() if max_version is None else given.__dlpack__(max_version=max_version)
