"""What is told of a session. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_server.figures import Described, counter, fact, gauge


def _next_program(look: Any) -> str:
    return look.session.queue[0].entry.digest.hex() if look.session.queue else ""


@dataclass(frozen=True)
class SessionView(Described):
    """One session."""

    session: str = fact(read="session.shown_id")
    """Shown id of the session: 12 hexadecimal digits."""
    name: str = fact(read="session.name")
    """What its user calls it, or empty."""
    labels: Mapping[str, str] = fact(read="session.labels", default={})
    """What else its user tells of it."""
    tenant: str = fact(read="session.tenant")
    """Name of its tenant."""
    peer: str = fact(read="session.peer")
    """Network address of the client."""
    client: str = fact(read="session.client")
    """What the client says of itself."""
    protocol_version: int = fact(read=lambda _look: PROTOCOL_VERSION, default=0)
    """Version of the protocol."""
    epoch: int = counter(read="session.epoch")
    """Number of connections that have carried the session."""
    state: str = gauge(read="session.state.value", default="")
    """open, or detached: its connection broke and it waits to be resumed."""
    ops: int = counter(read="session.ops_total")
    """Number of ops that came."""
    segments: int = counter(read="session.completed.segments")
    """Number of segments that the device has completed."""
    received_bytes: int = counter(read="session.bytes_in")
    """Bytes from the client."""
    sent_bytes: int = counter(read="session.bytes_out")
    """Bytes to the client."""
    in_flight_ops: int = gauge(read="session.in_flight.ops")
    """Credit in ops that segments in flight have taken. A loop takes as many ops as it runs, and at most all credit."""
    in_flight_bytes: int = gauge(read="session.in_flight.bytes")
    """Bytes of results and small uploads in flight."""
    in_flight_segments: int = gauge(read="session.in_flight.segments")
    """Number of segments in flight."""
    queued_rows: int = gauge(read=lambda look: len(look.session.queue))
    """Number of rows that could run."""
    next_program: str = gauge(read=_next_program, default="")
    """Digest of the program of the first of them, or empty."""
    live_handles: int = gauge(read=lambda look: look.session.values_held + look.session.failed.count)
    """Number of arrays, with those that loops keep while they run."""
    live_bytes: int = gauge(read="session.live_bytes")
    """Bytes of these arrays, failed ones included, as `limits.live_bytes` counts them."""
    unread_bytes: int = gauge(read="session.answers.unread_bytes")
    """Bytes of results that the client has not taken."""
    host_bytes: int = gauge()
    """Estimated bytes of host memory that it holds: tables, failures, answers, uploads, and its programs."""
    device_ns: int = counter(read="session.device_ns")
    """Device time in ns that the session has used."""
    loop_ns: int = counter(read="session.loop_ns")
    """Time of the engine thread in ns that the session's frames have used."""
    idle_s: float = gauge(read=lambda look: max(look.now_ns - look.session.heard_at_ns, 0) / 1e9)
    """Time in s since the last frame came."""
    wait_reason: str = gauge(default="")
    """What it waits for now: `kernel of max`, `held`, `fair share` (others' turns), `upload of 64 MiB`, `credit`,
    `device` (its work runs), `its client's connection`, or `its client to take answers`. Empty: for its client.
    """
    waiting_ns: int = counter(read=lambda look: look.waiting_ns)
    """Time in ns in which fetches of its client were not answered, so that the client waited, or might have."""
    age_s: float = gauge(read=lambda look: max(look.now_ns - look.session.opened_at_ns, 0) / 1e9)
    """Time in s since the session was opened."""
    failures: tuple[str, ...] = gauge(default=())
    """Its last failures, at most 3, the newest first."""
    waits_for: tuple[str, ...] = gauge(default=())
    """Names of ops whose kernels its rows wait for, at most 10."""
    device: int = fact(default=0)
    """Number of the device that it is on. 0 if the server has one."""
