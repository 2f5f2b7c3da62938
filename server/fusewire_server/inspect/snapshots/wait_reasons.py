"""Says in a few words what a session waits for now. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_server.sessions.session import NO_OP, Session, SessionState, ValueState

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def wait_reason(session: Session, kernels_of: Sequence[str], *, is_held: bool) -> str:
    """Returns what the session waits for; empty: its client sends nothing, and waits for nothing.

    `kernels_of` are ops whose kernels its rows wait for. `is_held` tells whether an operator holds the device.
    """
    if session.state is SessionState.DETACHED:
        return "its client's connection"
    if kernels_of:
        return f"kernel of {kernels_of[0]}"
    if session.queue:
        return "held" if is_held else "fair share"
    if session.held_back:
        return f"upload of {_size(_awaited_bytes(session))}"
    if session.reads:
        return "its client to take answers"
    if session.has_used_up_credit:
        return "credit"
    return "device" if session.in_flight.segments or session.fetches else ""


def _awaited_bytes(session: Session) -> int:
    """Returns the bytes of uploads that have not come, of one of the rows that wait for some."""
    row = next(iter(session.held_back))
    awaited = {value for value in row.inputs if value.state is ValueState.AWAITED and value.op_index == NO_OP}
    return sum(value.size_bytes for value in awaited)


def _size(size_bytes: int) -> str:
    return next(
        (f"{size_bytes / unit:.0f} {name}" for name, unit in _UNITS if size_bytes >= unit), f"{size_bytes} bytes"
    )
