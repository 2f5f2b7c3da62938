"""Updates a session's tables when an upload arrives, fails or has been written to the device. Pure."""

from __future__ import annotations

from fusewire_kernels.devices.base import Staged
from fusewire_server.device.orders import Write
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.rows import bring_upload, fail_value
from fusewire_server.sessions.session import Session, Value
from fusewire_server.sessions.values import release_if_dead


def arrive(session: Session, value: Value) -> Effects:
    """Makes an upload ready when its bytes have arrived in a call beside the stream.

    The value gets one more reader until its bytes are written, so that the bytes count for the session until then.
    """
    effects = Effects()
    value.readers += 1
    bring_upload(session, value, effects.reads, effects.released)
    return effects


def fail(session: Session, value: Value, failure: Failure) -> Effects:
    """Fails an upload that will never come. Of the other values, only those that depend on the upload fail too."""
    effects = Effects()
    effects.failures.append(failure)
    fail_value(session, value, failure)
    return effects


def end_writing(write: Write, failure: Failure | None) -> Effects:
    """Ends the write of a value. `failure` is the reason if the write failed, else None."""
    effects = Effects()
    if isinstance(write.data, Staged):
        write.value.readers -= 1
        release_if_dead(write.session, write.value, effects.released)
    if failure is not None:
        effects.failures.append(failure)
        fail_value(write.session, write.value, failure)
    return effects
