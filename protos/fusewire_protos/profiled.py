"""What a server tells a profiled session: the time on its clock, and how the session's segments ran. With its codec."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

MOST_RUNS = 4000  # that an answer tells, so that it fits in a frame
_HEAD = struct.Struct("<QI")
_RUN = struct.Struct("<QQQQQQIIIHBB")
RUN_BYTES = _RUN.size
_MOST_COUNT = (1 << 32) - 1
_MOST_ROWS = (1 << 16) - 1


class Run(NamedTuple):
    """A segment's part in a submission: all its iterations, or a slice of them. Times are those of the server's clock.

    `base` is the handle of the segment's first result. `queued_ns` is when the segment came, `ordered_ns` when the
    device was told to run it, `ended_ns` when the server saw its end, and `device_ns` how long the device took for the
    whole submission, which had `rows` rows. `live_bytes` is the memory of the session's values at the end. `tier` is 0
    if it ran op by op. Counts are cut to the width of their field.
    """

    base: int
    queued_ns: int
    ordered_ns: int
    ended_ns: int
    device_ns: int
    live_bytes: int
    submission: int
    first_iteration: int
    iterations: int
    rows: int
    tier: int
    failed: int


class Profiled(NamedTuple):
    """An answer. `now_ns` is the time at which the question came, `lost` how many runs were overwritten before it."""

    now_ns: int
    lost: int
    runs: tuple[Run, ...]


def encode_run(run: Run) -> bytes:
    """Returns the 64 bytes of a run."""
    first, iterations, rows = min(run[7], _MOST_COUNT), min(run[8], _MOST_COUNT), min(run[9], _MOST_ROWS)
    return _RUN.pack(*run[:6], run[6] & _MOST_COUNT, first, iterations, rows, run[10], run[11])


def encode_profiled(now_ns: int, lost: int, runs: Iterable[bytes]) -> bytes:
    """Returns the bytes of an answer, of encoded runs."""
    return b"".join((_HEAD.pack(now_ns, min(lost, _MOST_COUNT)), *runs))


def decode_profiled(raw: bytes) -> Profiled:
    """Returns the answer that `encode_profiled` encoded. Raises ValueError for bytes of another length."""
    size_bytes = len(raw) - _HEAD.size
    if size_bytes < 0 or size_bytes % _RUN.size:
        raise ValueError(f"{len(raw)} bytes are no head of {_HEAD.size} and runs of {_RUN.size} each")
    now_ns, lost = _HEAD.unpack_from(raw)
    return Profiled(now_ns, lost, tuple([Run(*each) for each in _RUN.iter_unpack(raw[_HEAD.size :])]))
