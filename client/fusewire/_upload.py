"""From whatever holds numbers to bytes that can travel: C order, little-endian, of a dtype that the server knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_protos import dtypes, shapes
from fusewire_protos.chunks import encode_chunk
from fusewire_protos.dtypes import DType
from fusewire_protos.shapes import Spec

Host = npt.NDArray[Any]


def spec_of(host: Host, dtype: DType | None) -> Spec:
    """What `host` is when it is sent as `dtype`, or as it is. Raises DtypeError for what cannot travel."""
    return Spec(dtype or dtypes.from_numpy(host.dtype), shapes.check(host.shape))


def sendable(host: Host, spec: Spec) -> Host:
    """`host` as it can be sent as it lies; a copy only where that needs one."""
    dtype = dtypes.to_numpy(spec.dtype).newbyteorder("<")
    return np.ascontiguousarray(host, dtype).reshape(spec.shape)


def chunks_of(host: Host, chunk_bytes: int) -> Iterator[bytes]:
    """The encoded chunks, each a copy: the array may change once its last chunk has been taken."""
    flat = host.reshape(-1).view(np.uint8).data
    for start in range(0, len(flat), chunk_bytes):
        yield encode_chunk(flat[start : start + chunk_bytes])
