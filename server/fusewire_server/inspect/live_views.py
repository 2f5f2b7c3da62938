"""Defines the answers about tables that no snapshot holds, because these are large. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from fusewire_server.inspect.described import Described


@dataclass(frozen=True)
class ArrayView(Described):
    """One array of a session."""

    handle: int
    """Number of the array in its session."""
    dtype: str
    """Type of the elements."""
    shape: tuple[int, ...]
    """Number of elements along each axis."""
    bytes: int
    """Size of the elements in bytes."""
    age_s: float
    """Time in s since the server heard of the array."""
    base: int
    """Handle of op 0 of the segment that computes the array. For an upload: the array's own handle."""
    op: int | None
    """Index in its segment of the op that computes the array. For an upload: null."""
    state: str
    """awaited: not yet on the way to the device; issued: in a queue; ready: the device has been told; or failed."""


@dataclass(frozen=True)
class ArrayPage(Described):
    """Some arrays of a session, in the order of their handles."""

    arrays: tuple[ArrayView, ...]
    """The arrays."""
    next: int | None
    """Pass it as `after` to get the next page. Null on the last page."""


@dataclass(frozen=True)
class BlockView(Described):
    """The blocks of one size in the device's memory pool."""

    size_bytes: int
    """Size of each block in bytes."""
    free: int
    """Number of blocks kept for later allocations."""
    live: int
    """Number of blocks in use."""


@dataclass(frozen=True)
class PoolView(Described):
    """The memory of the device."""

    live_bytes: int
    """Bytes of all values now."""
    peak_bytes: int
    """Most bytes of all values at once since the start."""
    pool_bytes: int
    """Free bytes that the pool keeps for later allocations."""
    free_bytes: int
    """Bytes of the device's memory that no value takes, those of the pool included."""
    blocks: tuple[BlockView, ...]
    """Blocks by size, ascending. Empty on CUDA, whose pool does not tell sizes."""


@dataclass(frozen=True)
class QueuedTenant(Described):
    """The rows of one tenant that wait for the device."""

    tenant: str
    """Name of the tenant."""
    rows: int
    """Number of rows that wait."""
    device_ns: int
    """Device time in ns by which turns are decided. The tenant with the least goes next."""


@dataclass(frozen=True)
class QueuedProgram(Described):
    """The rows of one program that wait for the device."""

    digest: str
    """Digest of the program."""
    rows: int
    """Number of rows that wait."""


@dataclass(frozen=True)
class QueueView(Described):
    """The rows that wait for the device, without those that wait for uploads."""

    rows: int
    """Number of rows that wait."""
    tenants: tuple[QueuedTenant, ...]
    """Tenants with rows that wait, at most 1000. The tenant whose turn is next comes first."""
    programs: tuple[QueuedProgram, ...]
    """Programs with rows that wait, at most 1000. The program with most rows comes first."""
    orders_in_flight: int
    """Number of submissions that the device has been told to run and has not completed."""


@dataclass(frozen=True)
class SlowPhases(Described):
    """Where a slow submission's time went."""

    queue_s: float
    """Time in s that was not device time: waiting for inputs, kernels, earlier rows, and the report of the end."""
    device_s: float
    """Device time in s."""


@dataclass(frozen=True)
class SlowEntry(Described):
    """A submission that took the device long."""

    at: str
    """End of the submission, ISO 8601, UTC."""
    session: str
    """Shown id of the session whose row came first."""
    program: str
    """Digest of the program."""
    base: int
    """Handle of op 0 of that row's segment. The client's `Session.source_line(base, op)` names the line of code."""
    op: int | None
    """Index of the program's only op. Null if the program has several ops."""
    tier: int
    """0 if the program ran op by op, 1 if it ran by its plan."""
    rows: int
    """Number of rows of the submission."""
    ops: int
    """Number of ops of all rows."""
    total_s: float
    """Time in s from the coming of the first row's segment to the end of the submission."""
    phases: SlowPhases
    """Parts of `total_s`."""


@dataclass(frozen=True)
class SlowLog(Described):
    """The last submissions that took the device long."""

    threshold_s: float
    """Least device time in s of a submission in the log."""
    entries: tuple[SlowEntry, ...]
    """The last 128 such submissions, the newest first."""
