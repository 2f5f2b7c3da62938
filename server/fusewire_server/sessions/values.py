"""Makes a session's values within its quotas, and removes the values that nobody can read. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program
from fusewire_server.config.config import Limits
from fusewire_server.sessions.host_bytes import VALUE_BYTES, check_host_room
from fusewire_server.sessions.session import NO_OP, PendingFetch, Session, Value, ValueState
from fusewire_server.sessions.tables.packed_values import PackedValue
from fusewire_server.sessions.tables.salted_table import SaltedTable


def check_quota(session: Session, limits: Limits, more_bytes: int, more_handles: int) -> None:
    """Raises CaseError if `more_bytes` and `more_handles` would take the session over one of its limits."""
    live_bytes = session.live_bytes + more_bytes
    if live_bytes > limits.live_bytes:
        raise CaseError("quota_live_bytes", f"{live_bytes} live bytes; limits.live_bytes = {limits.live_bytes}")
    handles = len(session.values) + more_handles
    if handles + session.packed.count > limits.handles:
        text = f"{handles + session.packed.count} handles; limits.handles = {limits.handles}"
        raise CaseError("quota_handles", text)
    if handles - session.counted_values > session.tenant_bytes.free_values:
        check_host_room(session, more_handles * VALUE_BYTES)


def first_beyond_quota(session: Session, limits: Limits, program: Program, lengths: Iterable[int]) -> int:
    """Returns the first op whose result takes the session over one of its own limits, or else the last live one.

    `lengths` says how many values of each live result there will be.
    """
    live_bytes, handles = session.live_bytes, session.values_held
    for index, size_bytes, length in zip(program.live, program.live_sizes, lengths, strict=False):
        live_bytes += size_bytes * length
        handles += length
        if live_bytes > limits.live_bytes or handles > limits.handles:
            return index
    return program.live[-1]  # each of them is within the session's own limits


def mint(session: Session, handle: int, spec: Spec, state: ValueState, made_at_ns: int, op_index: int = NO_OP) -> Value:
    """Makes a new value. Raises CaseError (a protocol case) if its handle names a value already."""
    if handle in session.values or (
        (session.failed.firsts or session.packed.count) and (handle in session.failed or handle in session.packed)
    ):
        raise CaseError("reused_handle", f"handle {handle} exists already")
    value = Value(handle, spec, state, made_at_ns, op_index)
    value.share = session.tenant_bytes.device_share
    session.values[handle] = value
    session.live_bytes += value.size_bytes
    if value.size_bytes > INLINE_BYTES:
        session.large[handle] = value
    return value


def value_of(session: Session, handle: int) -> Value | None:
    """Returns the value of a handle, or None if the handle names none. A packed value is unpacked."""
    value = session.values.get(handle)
    if value is None and session.packed.count:
        packed = session.packed.pop(handle)
        if packed is not None:
            value = session.values[handle] = unpacked(session, packed)
    return value


def unpacked(session: Session, packed: PackedValue) -> Value:
    """Returns the object of a packed value."""
    value = Value(packed.handle, packed.spec, ValueState.READY, packed.made_at_ns, packed.op_index)
    value.share, value.block = session.tenant_bytes.device_share, packed.block
    return value


def pack(session: Session, value: Value) -> None:
    """Packs a value, if it is computed, the client holds it, and no row or fetch is about to read it.

    The row that computes it must have been completed, because only then the device thread leaves its block alone.
    """
    is_resting = value.state is ValueState.READY and value.is_named and not value.readers
    if not is_resting or value.block is None or value.size_bytes > INLINE_BYTES:
        return
    if session.values.get(value.handle) is value:
        del session.values[value.handle]
        session.packed.add(PackedValue(value.handle, value.spec, value.made_at_ns, value.op_index, value.block))


def make_ready(value: Value, reads: list[PendingFetch]) -> None:
    """Makes a value ready, because the device has been told to compute or write the value. Its fetches join `reads`."""
    value.state = ValueState.READY
    if value.fetches:
        reads += value.fetches.values()
        value.fetches = None


def free_handles(session: Session, handles: Iterable[int], released: list[Value]) -> None:
    """Frees handles that the client no longer holds. Ignores handles that name no value."""
    for handle in handles:
        value = value_of(session, handle)
        if value is None:
            session.failed.free(handle)
        elif value.is_named:
            value.is_named = False
            release_if_dead(session, value, released)


def forget_ended(values: SaltedTable[Value], dying: Iterable[tuple[int, Value]]) -> None:
    """Removes `dying` from the values that an ended session held, and clears their links to rows and fetches."""
    for handle, value in dying:
        del values[handle]
        value.is_named = False
        value.readers = 0
        value.fetches = value.waiting = None


def release_if_dead(session: Session, value: Value, released: list[Value]) -> None:
    """Removes a value from its session if nobody can read the value. If the value is ready, it joins `released`.

    A value that is not ready yet stays until it is ready or has failed.
    """
    if not value.is_dead:
        return
    if value.state is ValueState.READY:
        released.append(value)
        forget(session, value)
    elif value.state is ValueState.FAILED:
        forget(session, value)


def end_reading(pending: PendingFetch, released: list[Value]) -> None:
    """Stops counting a fetch as a reader of its value.

    The caller has told the device to read the value, or has given up the fetch.
    """
    pending.value.readers -= 1
    release_if_dead(pending.session, pending.value, released)


def forget_if_dead(session: Session, value: Value) -> None:
    """Removes a failed value from its session if nobody can read the value."""
    if value.is_dead and value.state is ValueState.FAILED:
        forget(session, value)


def forget(session: Session, value: Value) -> None:
    """Removes a dead value from its session's tables and from the count of its live bytes."""
    if session.values.get(value.handle) is value:
        del session.values[value.handle]
        session.large.pop(value.handle, None)
        session.live_bytes -= value.size_bytes
