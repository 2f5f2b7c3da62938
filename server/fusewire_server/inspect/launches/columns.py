"""Reads records of launches as an array with named columns, and writes them again. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fusewire_server.engine.launch_records import FIELDS

COLUMNS = np.dtype([(name, f"<{code}") for name, code in FIELDS])
_HALF = (1 << 64) - 1

Rows = npt.NDArray[np.void]


def rows_of(records: bytes) -> Rows:
    """Returns the records, shape (n,), dtype `COLUMNS`. They cannot be written to."""
    return np.frombuffer(records, COLUMNS)


def began_ns(rows: Rows) -> npt.NDArray[np.int64]:
    """Returns when the device began each submission, estimated from its end; shape (n,), int64."""
    ended_ns: npt.NDArray[np.int64] = rows["ended_ns"].astype(np.int64)
    return np.maximum(ended_ns - rows["device_ns"].astype(np.int64), 0)


def has_any(rows: Rows, mask: int) -> npt.NDArray[np.bool_]:
    """Tells which submissions have one of the sessions of a mask; shape (n,), bool."""
    low, high = np.uint64(mask & _HALF), np.uint64(mask >> 64)
    found: npt.NDArray[np.bool_] = ((rows["low"] & low) | (rows["high"] & high)) != 0
    return found


def mask_of(bits: Iterable[int]) -> int:
    """Returns the mask of sessions with these bits."""
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return mask


def seen_with(rows: Rows, mask: int) -> Rows:
    """Returns what somebody may see who owns the sessions of a mask: of others' submissions no program or number.

    The rows of others stay as a count.
    """
    seen = rows.copy()
    seen["low"] &= np.uint64(mask & _HALF)
    seen["high"] &= np.uint64(mask >> 64)
    is_foreign = ~has_any(rows, mask)
    for name in ("program", "number", "tier", "failed", "iterations", "reason", "queue_ns", "order_ns", "result_bytes"):
        seen[name][is_foreign] = 0
    return seen
