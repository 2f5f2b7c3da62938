"""Defines all errors of the project: the tree of exceptions, and the table of the cases.

    FusewireError
    ├── RequestError            the caller's fault; the session goes on
    │   ├── ShapeError          (ValueError)
    │   │   └── AxisError       (np.exceptions.AxisError, an IndexError too; in `ops.axis_error`)
    │   ├── DtypeError          (TypeError)
    │   ├── ArgumentError       (ValueError)
    │   ├── UnknownHandle       (ValueError)   the handle is unknown, freed or of another session
    │   ├── UploadFailed        (ValueError)
    │   ├── QuotaExceeded       (MemoryError)  a limit of the session; the text names its setting
    │   └── OutOfMemory         (MemoryError)  the device has too little memory
    ├── ProtocolError           the peer broke the protocol; ends the session
    ├── Unauthenticated         (PermissionError)
    ├── SessionLost             (ConnectionError)  the connection broke, and the session cannot be resumed
    ├── SessionClosed           (RuntimeError)     used after its end, or after a fork
    ├── WaitTimeout             (TimeoutError)     the wait ended; the work goes on
    ├── Cancelled               the work was cancelled on request
    ├── ConfigurationError      (ValueError)       a setting is wrong; the process does not start
    └── ServerFault             the server's own fault

A case is one kind of failure that is sent to clients, or one documented result. A case has one of three consequences:

- A *protocol* failure ends the client's session.
- An *operation* failure does not end the session. All values that depend on the operation fail
  too. Reading any of these values raises the first failure.
- A *defined value* is no failure. The operation has a documented result, and nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FusewireError(Exception):
    """Is the base class of all exceptions of Fusewire."""


class RequestError(FusewireError):
    """The caller asked for something that cannot be done; other work of the session goes on."""


class ShapeError(RequestError, ValueError):
    """Shapes, ranks or axes do not fit together."""


class DtypeError(RequestError, TypeError):
    """A dtype is unknown, or an op does not take it."""


class ArgumentError(RequestError, ValueError):
    """An op, attribute, scalar or index has a value outside its range."""


class UnknownHandle(RequestError, ValueError):
    """A handle has no value.

    The handle was never given out, or belongs to another session, or was freed. The error does not say which.
    """


class UploadFailed(RequestError, ValueError):
    """An upload stalled, or its bytes differed from what the client had declared."""


class QuotaExceeded(RequestError, MemoryError):
    """A limit of this session is reached; the text names the setting of the limit."""


class OutOfMemory(RequestError, MemoryError):
    """The device has too little memory for a submission."""


class ProtocolError(FusewireError):
    """The peer sent a frame that no correct peer sends. The session has ended."""


class Unauthenticated(FusewireError, PermissionError):
    """The token is missing, unknown or revoked, or the token does not have the scope that the call needs."""


class SessionLost(FusewireError, ConnectionError):
    """The connection broke, and the session was not resumed: all its values are gone."""


class SessionClosed(FusewireError, RuntimeError):
    """The session cannot be used any more.

    The client closed the session, or the server shut down, or the session belongs to the process from which this
    process was forked.
    """


class WaitTimeout(FusewireError, TimeoutError):
    """The wait ended before the value came; the work itself goes on."""


class Cancelled(FusewireError):
    """The work was cancelled on request."""


class ConfigurationError(FusewireError, ValueError):
    """A setting, or an argument of `connect`, is unknown or has a value outside its range."""


class ServerFault(FusewireError):
    """The server failed in a way that no request should be able to cause."""


class Consequence(Enum):
    """Says what a case does to its session."""

    PROTOCOL = "protocol"  # ends the session
    OPERATION = "operation"  # fails the values that depend on the operation
    DEFINED_VALUE = "defined value"  # no failure: the result is documented


@dataclass(frozen=True)
class Case:
    """One kind of failure that is sent to clients, or one documented result.

    `code` is sent in frames. `status` is the name of the gRPC status of a call that ends with this case.
    """

    code: int
    name: str
    consequence: Consequence
    status: str
    exception: type[FusewireError] | None
    summary: str


_P, _O, _D = Consequence.PROTOCOL, Consequence.OPERATION, Consequence.DEFINED_VALUE

CASES: tuple[Case, ...] = (
    Case(
        1,
        "undecodable_frame",
        _P,
        "INVALID_ARGUMENT",
        ProtocolError,
        "malformed, truncated or nested too deep; a program number used twice, or more than limits.programs of them; a "
        "tensor that was not sent, or the acknowledgement of a frame that was not sent",
    ),
    Case(
        2,
        "oversized_frame",
        _P,
        "RESOURCE_EXHAUSTED",
        ProtocolError,
        "longer than limits.message_bytes, with too many entries, or with an entry of too many handles or numbers",
    ),
    Case(3, "frame_gap", _P, "FAILED_PRECONDITION", ProtocolError, "a frame number that does not follow the last one"),
    Case(4, "wrong_version", _P, "FAILED_PRECONDITION", ProtocolError, "no protocol version in common"),
    Case(5, "out_of_turn", _P, "FAILED_PRECONDITION", ProtocolError, "a frame that this state of the session forbids"),
    Case(6, "reused_handle", _P, "INVALID_ARGUMENT", ProtocolError, "a handle minted twice"),
    Case(7, "unknown_program", _P, "INVALID_ARGUMENT", ProtocolError, "the number of a program that was not sent"),
    Case(
        8,
        "credit_overdrawn",
        _P,
        "RESOURCE_EXHAUSTED",
        ProtocolError,
        "more in flight than the credit given",
    ),
    Case(9, "unauthenticated", _P, "UNAUTHENTICATED", Unauthenticated, "no valid token"),
    Case(10, "session_lost", _P, "NOT_FOUND", SessionLost, "no such session, or it was not resumed in time"),
    Case(
        11,
        "slow_reader",
        _P,
        "RESOURCE_EXHAUSTED",
        ProtocolError,
        "results not read within limits.unread_s, or more fetches than limits.handles or tenant_host_bytes allow",
    ),
    Case(12, "draining", _P, "UNAVAILABLE", SessionClosed, "the server shuts down: it ends all sessions, opens none"),
    Case(
        13,
        "too_many_sessions",
        _P,
        "RESOURCE_EXHAUSTED",
        QuotaExceeded,
        "limits.sessions or limits.tenant_sessions is reached",
    ),
    Case(14, "ended_by_operator", _P, "ABORTED", SessionClosed, "an operator of the server ended the session"),
    Case(
        15, "unknown_device", _P, "NOT_FOUND", ConfigurationError, "a device that the server does not have, or has lost"
    ),
    Case(20, "unknown_op", _O, "INVALID_ARGUMENT", ArgumentError, "an op code outside the catalogue"),
    Case(21, "bad_arity", _O, "INVALID_ARGUMENT", ArgumentError, "the wrong number of operands or attributes"),
    Case(22, "bad_attribute", _O, "INVALID_ARGUMENT", ArgumentError, "an attribute of the wrong kind or range"),
    Case(
        23,
        "bad_operand",
        _O,
        "INVALID_ARGUMENT",
        ArgumentError,
        "an operand that is not made before its op, or has another spec than the op's signature",
    ),
    Case(24, "bad_shape", _O, "INVALID_ARGUMENT", ShapeError, "rank, dims or axes out of range, or that do not fit"),
    Case(25, "bad_dtype", _O, "INVALID_ARGUMENT", DtypeError, "an unknown dtype, or one the op does not take"),
    Case(26, "unknown_handle", _O, "NOT_FOUND", UnknownHandle, "never minted, of another session, or freed"),
    Case(27, "bad_binding", _O, "INVALID_ARGUMENT", ArgumentError, "inputs, scalars or starts that do not fit"),
    Case(
        28,
        "upload_failed",
        _O,
        "DATA_LOSS",
        UploadFailed,
        "stalled for more than limits.upload_stall_s, or other bytes than declared",
    ),
    Case(29, "chunk_order", _O, "DATA_LOSS", UploadFailed, "an upload's chunk out of order, repeated or missing"),
    Case(30, "quota_live_bytes", _O, "RESOURCE_EXHAUSTED", QuotaExceeded, "limits.live_bytes is reached"),
    Case(31, "quota_handles", _O, "RESOURCE_EXHAUSTED", QuotaExceeded, "limits.handles is reached"),
    Case(32, "quota_array_bytes", _O, "RESOURCE_EXHAUSTED", QuotaExceeded, "limits.array_bytes is exceeded"),
    Case(
        33,
        "quota_program",
        _O,
        "RESOURCE_EXHAUSTED",
        QuotaExceeded,
        "limits.program_ops, program_operands, program_bytes or held_program_bytes, or planner.cached_bytes",
    ),
    Case(34, "out_of_memory", _O, "RESOURCE_EXHAUSTED", OutOfMemory, "the device has too little memory"),
    Case(35, "cancelled", _O, "CANCELLED", Cancelled, "cancelled on request"),
    Case(36, "server_fault", _O, "INTERNAL", ServerFault, "the server failed; the text says where"),
    Case(
        37,
        "too_many_calls",
        _O,
        "RESOURCE_EXHAUSTED",
        QuotaExceeded,
        "more calls for uploads and downloads than a session may have at once, or than one answer may have",
    ),
    Case(38, "quota_host_bytes", _O, "RESOURCE_EXHAUSTED", QuotaExceeded, "limits.tenant_host_bytes is reached"),
    Case(50, "integer_division_by_zero", _D, "OK", None, "the quotient and the remainder are 0"),
    Case(51, "index_out_of_range", _D, "OK", None, "means the first or the last element"),
    Case(52, "float_to_integer", _D, "OK", None, "saturates; NaN becomes 0"),
    Case(53, "nan_and_infinity", _D, "OK", None, "as in IEEE 754; min and max return NaN, argmin and argmax its index"),
    Case(54, "integer_overflow", _D, "OK", None, "wraps around"),
    Case(55, "shift_out_of_range", _D, "OK", None, "by a negative count or at least the width: all bits shifted out"),
    Case(56, "negative_integer_power", _D, "OK", None, "of an integer: 0, except for the bases 1 and −1"),
)
BY_CODE: dict[int, Case] = {case.code: case for case in CASES}
BY_NAME: dict[str, Case] = {case.name: case for case in CASES}


MOST_TEXT = 1024  # characters of a failure's text, which is stored and sent with each answer


def bounded_text(text: str) -> str:
    """Returns `text`. A text of more than `MOST_TEXT` characters is cut to that length, with a note at the end."""
    if len(text) <= MOST_TEXT:
        return text
    end = f"… (truncated: {len(text)} characters)"
    return text[: MOST_TEXT - len(end)] + end


class CaseError(Exception):
    """Reports a case of the table that occurred while the server read a client's frame.

    Only the server raises this error. The server sends the code of the case and the text to the client, and the client
    raises the exception of the case.
    """

    def __init__(self, case: str, text: str) -> None:
        self.case = BY_NAME[case]
        self.text = bounded_text(text)
        super().__init__(f"{case}: {self.text}")


def exception_of(code: int, text: str) -> FusewireError:
    """Returns the exception that a client raises for a case with this code and text."""
    case = BY_CODE.get(code)
    if case is None or case.exception is None:
        return ServerFault(f"unknown failure code {code}: {text}")
    return case.exception(text)
