"""Applies an upload: makes its value. The bytes are in the frame, or come later in an Upload call. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Upload
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.entries.failed_results import keep_failed
from fusewire_server.sessions.entries.frame import Frame
from fusewire_server.sessions.entries.validation import check_uploaded
from fusewire_server.sessions.session import ValueState
from fusewire_server.sessions.tables.failed_handles import FailedRange
from fusewire_server.sessions.values import check_quota, mint


def take_upload(frame: Frame, upload: Upload) -> None:
    """Makes the value of an upload. If the upload is bad, its value fails. Raises CaseError for a protocol case."""
    session, effects = frame.session, frame.effects
    tensor = _tensor_of(upload, frame.arrival.tensors)
    credit = Amount(0, 0 if tensor is None else len(tensor), 0)
    session.take_credit(credit)
    try:
        _check(frame, upload, tensor)
    except CaseError as error:
        failure = Failure.of(error)
        session.complete(credit)
        effects.failures.append(failure)
        if tensor is None:
            effects.refused_uploads.append(upload.handle)
        keep_failed(frame, FailedRange(failure, upload.handle))
        return
    state = ValueState.AWAITED if tensor is None else ValueState.READY
    value = mint(session, upload.handle, upload.spec, state, frame.arrival.now_ns)
    if tensor is None:
        effects.declared.append(value)
    else:
        effects.writes.append((value, tensor))


def _check(frame: Frame, upload: Upload, tensor: bytes | None) -> None:
    size_bytes = upload.spec.size_bytes
    if size_bytes > frame.limits.array_bytes:
        limit = frame.limits.array_bytes
        raise CaseError("quota_array_bytes", f"an upload of {size_bytes} bytes; limits.array_bytes = {limit}")
    check_quota(frame.session, frame.limits, size_bytes, 1)
    if tensor is None:
        return
    if len(tensor) != size_bytes:
        raise CaseError("upload_failed", f"{len(tensor)} bytes came for an upload declared as {size_bytes}")
    check_uploaded(upload.spec.dtype, tensor)


def _tensor_of(upload: Upload, tensors: Sequence[bytes]) -> bytes | None:
    """Returns the bytes of an upload, or None if they are not in its frame.

    Raises CaseError if the upload names a tensor that the frame does not have.
    """
    if upload.tensor is None:
        return None
    if upload.tensor >= len(tensors):
        raise CaseError("undecodable_frame", f"tensor {upload.tensor} of a frame that carries {len(tensors)}")
    return tensors[upload.tensor]
