"""The answers of the routes that are not in a snapshot, as models: each field with its meaning and unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from fusewire_server.inspect.snapshots.snapshot import DeviceView, KernelWaits, ProgramView, SessionView

Next = Annotated[
    str | None, Field(description="the value of `after` that gives the next page; null: this is the last page")
]


class Sessions(BaseModel):
    """Sessions, detached ones included, in the order in which they were opened."""

    sessions: tuple[SessionView, ...] = Field(description="the sessions of the page")
    next: Next = None


class Programs(BaseModel):
    """Programs that the server knows."""

    programs: tuple[ProgramView, ...] = Field(description="the programs of the page")
    next: Next = None


class TenantView(BaseModel):
    """The sessions of one tenant together."""

    tenant: str = Field(description="name of the tenant", examples=["lab"])
    sessions: int = Field(description="sessions that have not ended")
    in_flight_ops: int = Field(description="ops that the device has not completed")
    live_handles: int = Field(description="arrays")
    live_bytes: int = Field(description="bytes of these arrays")
    unread_bytes: int = Field(description="bytes of results that clients have not taken")
    device_bytes: int = Field(description="bytes of the device's blocks that hold values")
    host_bytes: int = Field(description="estimated bytes of host memory, as `limits.tenant_host_bytes` counts them")
    device_ns: int = Field(description="device time used, in nanoseconds")
    loop_ns: int = Field(description="time of the loop thread that frames have used, in nanoseconds")


class Tenants(BaseModel):
    """Tenants that have sessions, by name."""

    tenants: tuple[TenantView, ...] = Field(description="the tenants of the page")
    next: Next = None


class ArrayView(BaseModel):
    """One array of a session, without its value."""

    handle: int = Field(description="number of the array in its session")
    dtype: str = Field(description="type of the elements", examples=["float32"])
    shape: tuple[int, ...] = Field(description="elements along each axis", examples=[[64, 256]])
    bytes: int = Field(description="size of the array")
    state: str = Field(description="awaited, issued, ready or failed")
    age_s: float = Field(description="seconds since the array was declared")
    base: int | None = Field(description="handle of op 0 of the segment that computes it; null for an upload")
    op: int | None = Field(description="index of the op that computes it in this segment; null for an upload")


class Arrays(BaseModel):
    """Arrays of a session, by handle."""

    arrays: tuple[ArrayView, ...] = Field(description="the arrays of the page")
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

    tenant: str = Field(description="name of the tenant")
    rows: int = Field(description="rows that could run")


class QueuedProgram(BaseModel):
    """A program, and how many sessions run it next."""

    digest: str = Field(description="digest of the program")
    sessions: int = Field(description="sessions that run it next")


class QueueView(BaseModel):
    """The segments (rows) that wait for the device, and the submissions that it works on."""

    rows: int = Field(description="rows that could run")
    held_back_rows: int = Field(description="rows that wait for an upload")
    oldest_row_s: float = Field(description="seconds that the oldest row at the head of a queue has waited")
    submissions: int = Field(description="submissions that the device has not completed")
    is_held: bool = Field(description="whether an operator holds the device")
    tenants: tuple[QueuedTenant, ...] = Field(description="at most 1,000, those with most rows first")
    programs: tuple[QueuedProgram, ...] = Field(description="at most 1,000, those of most sessions first")
    kernel_waits: KernelWaits = Field(description="kernels of single ops that rows on the device wait for")


class SlowSegmentView(BaseModel):
    """A segment that took at least 10 ms from its arrival until the device had completed it.

    It has the ops `base` to `base + ops - 1`. The client's `session.line_of` names the line of each.
    """

    at: str = Field(description="when it was completed, ISO 8601, UTC")
    session: str = Field(description="shown id of the session")
    program: str = Field(description="digest of the program")
    base: int = Field(description="handle of op 0; op i has the handle base + i, for i from 0 to ops - 1")
    ops: int = Field(
        description="ops of the segment; of a loop, the ops of its body, with the handles of the first iteration"
    )
    iterations: int = Field(description="how often these ops ran: 1, or the iterations of a loop")
    tier: int = Field(description="0 if it ran op by op, 1 if it ran by a plan")
    rows: int = Field(description="rows of its submission; of a loop in several submissions, of the last")
    total_s: float = Field(description="seconds from the arrival to the end: queue_s, order_s and device_s")
    queue_s: float = Field(
        description="seconds until the device was told to run it (of a loop: its last part), uploads awaited included"
    )
    order_s: float = Field(
        description="seconds from then to the end without device_s: waiting for other work, launching, reporting"
    )
    device_s: float = Field(description="device time of its submission, in seconds")
    planning_s: float = Field(description="seconds of planning its program, for which segments do not wait")
    compiling_s: float = Field(description="seconds of compiling its program, for which segments do not wait")


class SlowLogView(BaseModel):
    """The newest slow segments, at most 128, the newest first."""

    threshold_s: float = Field(description="least seconds of a segment in the log")
    entries: tuple[SlowSegmentView, ...] = Field(description="the segments, the newest first")


class SettingView(BaseModel):
    """The value of a setting, and where it was set."""

    value: str | int | float | bool | None = Field(description="in the unit that ends the setting's name; null: unset")
    origin: str = Field(
        description="default, or the file, environment variable or flag that gave it",
        examples=["default", "flag --grpc"],
    )


class Settings(BaseModel):
    """All settings of the server by `section.key`. They hold no secrets, only the names of files that do."""

    settings: Mapping[str, SettingView] = Field(description="the settings by `section.key`")


class Readiness(BaseModel):
    """Tells whether the server takes sessions, and why or why not."""

    is_ready: bool = Field(description="whether the server can do what clients send")
    is_draining: bool = Field(description="whether the server is shutting down")
    is_held: bool = Field(description="whether an operator holds the device")
    trouble: str = Field(description="why the machine cannot compile programs now, such as a full disk; or empty")
    kernel_waits: KernelWaits = Field(description="kernels of single ops that rows wait for, and why these do not come")
    backend: str = Field(description="name of the backend", examples=["cuda"])
    device: str = Field(description="name of the device")
    device_memory_bytes: int = Field(description="memory of the device")
    live_bytes: int = Field(description="bytes of all values now")
    pool_bytes: int = Field(description="free bytes that the pool keeps for later allocations")
    devices: tuple[DeviceView, ...] = Field(description="the devices, if there is an engine process for each")


class Gate(BaseModel):
    """Tells whether the device is held after the request."""

    is_held: bool = Field(description="whether the device takes no new submissions")


class Drain(BaseModel):
    """Tells that the server has begun to end."""

    is_draining: bool = Field(description="true; the server ends after limits.drain_s at the latest")


class Ending(BaseModel):
    """Tells that a session is being ended."""

    session: str = Field(description="shown id of the session")
    is_ending: bool = Field(description="true; the session has ended once `/v1/sessions` no longer lists it")


class LogLevel(BaseModel):
    """The level of the log: records below it are not written."""

    level: str = Field(
        description="the least level that is written", pattern="^(debug|info|warning|error)$", examples=["info"]
    )
