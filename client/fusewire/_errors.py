"""The errors that users may get. `fusewire_protos.errors` draws their tree."""

from fusewire_protos.errors import (
    ArgumentError,
    Cancelled,
    ConfigurationError,
    DtypeError,
    FusewireError,
    OutOfMemory,
    ProtocolError,
    QuotaExceeded,
    RequestError,
    ServerFault,
    SessionClosed,
    SessionLost,
    ShapeError,
    Unauthenticated,
    UnknownHandle,
    UploadFailed,
    WaitTimeout,
)
from fusewire_protos.ops.axis_error import AxisError

__all__ = [
    "ArgumentError",
    "AxisError",
    "Cancelled",
    "ConfigurationError",
    "DtypeError",
    "FusewireError",
    "OutOfMemory",
    "ProtocolError",
    "QuotaExceeded",
    "RequestError",
    "ServerFault",
    "SessionClosed",
    "SessionLost",
    "ShapeError",
    "Unauthenticated",
    "UnknownHandle",
    "UploadFailed",
    "WaitTimeout",
]
