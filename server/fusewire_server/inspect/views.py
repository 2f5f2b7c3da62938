"""The answers of the routes that are not in a snapshot, as models: each field with its meaning and unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from fusewire_server.inspect.snapshot import ProgramView, SessionView

Next = Annotated[
    str | None, Field(description="the value of `after` that gives the next page; null: this is the last page")
]


class Sessions(BaseModel):
    """Sessions, detached ones included, in the order in which they were opened."""

    sessions: tuple[SessionView, ...]
    next: Next = None


class Programs(BaseModel):
    """Programs that the server knows."""

    programs: tuple[ProgramView, ...]
    next: Next = None


class TenantView(BaseModel):
    """The sessions of one tenant together."""

    tenant: str = Field(examples=["lab"])
    sessions: int = Field(description="sessions that have not ended")
    in_flight_ops: int = Field(description="ops that the device has not completed")
    live_handles: int = Field(description="arrays")
    live_bytes: int = Field(description="bytes of these arrays")
    unread_bytes: int = Field(description="bytes of results that clients have not taken")
    device_ns: int = Field(description="device time used, in nanoseconds")


class Tenants(BaseModel):
    """Tenants that have sessions, by name."""

    tenants: tuple[TenantView, ...]
    next: Next = None


class ArrayView(BaseModel):
    """One array of a session, without its value."""

    handle: int = Field(description="number of the array in its session")
    dtype: str = Field(examples=["float32"])
    shape: tuple[int, ...] = Field(examples=[[64, 256]])
    bytes: int = Field(description="size of the array")
    state: str = Field(description="awaited, issued, ready or failed")
    age_s: float = Field(description="seconds since the array was declared")
    base: int | None = Field(description="handle of op 0 of the segment that computes it; null for an upload")
    op: int | None = Field(description="index of the op that computes it in this segment; null for an upload")


class Arrays(BaseModel):
    """Arrays of a session, by handle."""

    arrays: tuple[ArrayView, ...]
    next: Next = None


class BlockView(BaseModel):
    """The blocks of one size in the device's memory pool."""

    size_bytes: int = Field(description="size of each block")
    free: int = Field(description="blocks that are kept for later allocations")
    live: int = Field(description="blocks in use")


class PoolView(BaseModel):
    """The memory of the device."""

    device_memory_bytes: int = Field(description="most bytes that all values may have")
    live_bytes: int = Field(description="bytes of values now")
    peak_bytes: int = Field(description="most bytes of values since the start")
    pool_bytes: int = Field(description="free bytes that the pool keeps for later allocations")
    free_bytes: int = Field(description="bytes of the device's memory that no value takes, those of the pool included")
    donations: int = Field(description="results that were written over inputs")
    donated_bytes: int = Field(description="bytes of these results")
    blocks: tuple[BlockView, ...] = Field(description="by size; empty on CUDA, whose pool does not tell sizes")


class QueuedTenant(BaseModel):
    """The rows of a tenant that wait."""

    tenant: str
    rows: int


class QueuedProgram(BaseModel):
    """A program, and how many sessions run it next."""

    digest: str
    sessions: int


class QueueView(BaseModel):
    """The segments (rows) that wait for the device, and the submissions that it works on."""

    rows: int = Field(description="rows that could run")
    held_back_rows: int = Field(description="rows that wait for an upload")
    oldest_row_s: float = Field(description="seconds that the oldest row at the head of a queue has waited")
    submissions: int = Field(description="submissions that the device has not completed")
    is_held: bool = Field(description="whether an operator holds the device")
    tenants: tuple[QueuedTenant, ...] = Field(description="at most 1,000, those with most rows first")
    programs: tuple[QueuedProgram, ...] = Field(description="at most 1,000, those of most sessions first")


class SlowSegmentView(BaseModel):
    """A segment that took at least 10 ms from its arrival until the device had completed it."""

    at: str = Field(description="when it was completed, ISO 8601, UTC")
    session: str
    program: str = Field(description="digest of the program")
    base: int = Field(description="handle of op 0; `session.line_of(base)` of a debugging client names its line")
    ops: int
    rows: int = Field(description="rows of its submission")
    total_s: float = Field(description="seconds from the arrival to the end")
    queue_s: float = Field(description="seconds until the device was told to run it")
    device_s: float = Field(description="device time of its submission, in seconds")


class SlowLogView(BaseModel):
    """The newest slow segments, at most 128, the newest first."""

    threshold_s: float
    entries: tuple[SlowSegmentView, ...]


class SettingView(BaseModel):
    """The value of a setting, and where it was set."""

    value: str | int | float | bool | None
    origin: str = Field(examples=["default", "environment"])


class Settings(BaseModel):
    """All settings of the server by `section.key`. They hold no secrets, only the names of files that do."""

    settings: Mapping[str, SettingView]


class Readiness(BaseModel):
    """Tells whether the server takes sessions, and why or why not."""

    is_ready: bool = Field(description="whether the server can do what clients send")
    is_draining: bool = Field(description="whether the server is shutting down")
    is_held: bool = Field(description="whether an operator holds the device")
    trouble: str = Field(description="why the machine cannot compile programs now, such as a full disk; or empty")
    backend: str = Field(examples=["cuda"])
    device: str
    device_memory_bytes: int
    live_bytes: int
    pool_bytes: int


class Gate(BaseModel):
    """Tells whether the device is held after the request."""

    is_held: bool


class Drain(BaseModel):
    """Tells that the server has begun to end."""

    is_draining: bool


class Ending(BaseModel):
    """Tells that a session is being ended."""

    session: str
    is_ending: bool


class LogLevel(BaseModel):
    """The level of the log: records below it are not written."""

    level: str = Field(pattern="^(debug|info|warning|error)$", examples=["info"])
