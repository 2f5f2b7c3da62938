"""Counts the host memory that sessions hold, by session and tenant, and refuses what would pass the limit. Pure.

What a session holds is estimated: the number of each kind of item, times the bytes of one. Bytes of uploads and answers
are counted as they are. A tenant's sessions together hold at most `limits.tenant_host_bytes`, and beyond that each of
them a little (`FREE_BYTES`), so that a session of few values goes on beside one that holds all.

Beyond the limit results and uploads of the frame fail, failures are not kept, so that their handles are unknown, large
uploads and answers wait for others to end, and a session that asks for more fetches ends as a slow reader.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fusewire_protos.errors import CaseError
from fusewire_server.programs.program_table import REFERENCE_BYTES
from fusewire_server.sessions.device_share import DeviceShare
from fusewire_server.sessions.profile import MOST_BYTES as PROFILE_BYTES

if TYPE_CHECKING:
    from fusewire_server.sessions.session import Row, Session

# The approximate bytes that an item takes; a test compares them with measurements.
VALUE_BYTES = 352  # a value with its handle, and the objects of its block beside the block's memory
PACKED_BYTES = 64  # a packed value with its handle
FAILED_RANGE_BYTES = 416  # a range of failed results with its failure
FREED_BYTES = 72  # a handle of such a range that the client has freed
LOOP_BYTES, STEP_BYTES = 640, 36  # what a row in flight has more if it is a loop, and each value that it steps through
FETCH_BYTES = 352  # a fetch that waits, or its answer

# What each session may hold whatever its tenant holds: in all, and of failures, of freed handles and of fetches.
FREE_BYTES = 1 << 20


class TenantBytes:
    """The memory that the sessions of one tenant hold. The engine thread owns this object, but not `device_share`.

    `free_values` says how many more values there is room for. It is exact when a session has just been counted.
    """

    def __init__(self, limit_bytes: int = sys.maxsize) -> None:
        self.limit_bytes = limit_bytes
        self.sessions: set[Session] = set()
        self.device_share = DeviceShare()
        self.program_bytes = 0  # of the programs that its sessions have numbered, each counted once
        self.free_values = limit_bytes // VALUE_BYTES
        self._session_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The host memory that the tenant holds."""
        return self._session_bytes + self.program_bytes

    def count(self, session: Session) -> None:
        """Counts what a session holds now, unless it has ended."""
        if session not in self.sessions:
            return
        size_bytes = own_bytes(session)
        self._session_bytes += size_bytes - session.host_bytes
        session.host_bytes, session.counted_values = size_bytes, len(session.values)
        self.free_values = (self.limit_bytes - self.size_bytes) // VALUE_BYTES

    def add(self, session: Session) -> None:
        """Adds a session of the tenant."""
        self.sessions.add(session)
        session.tenant_bytes = self

    def remove(self, session: Session) -> None:
        """Removes a session that has ended."""
        self.sessions.remove(session)
        self._session_bytes -= session.host_bytes
        session.host_bytes = 0

    def has_room(self, session: Session, more_bytes: int) -> bool:
        """Returns whether a session may hold more. Counts all sessions of the tenant again if it seems not."""
        self.count(session)
        if self.size_bytes + more_bytes <= self.limit_bytes:
            return True
        for each in self.sessions:
            self.count(each)
        return self.size_bytes + more_bytes <= self.limit_bytes or session.host_bytes + more_bytes <= FREE_BYTES


def own_bytes(session: Session) -> int:
    """Returns the approximate host memory that a session holds, not counting its programs."""
    answers, failed = session.answers, session.failed
    return (
        VALUE_BYTES * len(session.values)
        + PACKED_BYTES * session.packed.count
        + FAILED_RANGE_BYTES * len(failed.firsts)
        + FREED_BYTES * failed.freed
        + FETCH_BYTES * (len(session.fetches) + len(answers.untaken))
        + session.rows_bytes
        + session.rejected_bytes
        + answers.unread_bytes
        + session.uploading_bytes
        + (0 if session.profile is None else PROFILE_BYTES)
    )


def row_bytes(row: Row) -> int:
    """Returns the approximate host memory of a row, not counting its values."""
    loop = row.iterations
    if loop is None:
        return row.entry.row_bytes
    stepped = [*loop.stepped.values(), *loop.scalars.values(), *loop.starts.values()]
    steps = sum([len(each) if isinstance(each, Sequence) else 1 for each in stepped])
    values = len(row.inputs) + 2 * len(row.outputs)  # the results are in the rings too
    return row.entry.row_bytes + LOOP_BYTES + REFERENCE_BYTES * values + STEP_BYTES * steps


def may_hold(session: Session, kind_bytes: int, more_bytes: int) -> bool:
    """Returns whether a session may hold more of a kind of which it holds `kind_bytes`, and a little of it always."""
    return kind_bytes + more_bytes <= FREE_BYTES or session.tenant_bytes.has_room(session, more_bytes)


def check_host_room(session: Session, more_bytes: int) -> None:
    """Raises CaseError if there is no host memory for a session to hold so much more."""
    tenant = session.tenant_bytes
    if not tenant.has_room(session, more_bytes):
        text = f"{tenant.size_bytes + more_bytes} bytes of host memory of the tenant's sessions"
        raise CaseError("quota_host_bytes", f"{text}; limits.tenant_host_bytes = {tenant.limit_bytes}")
