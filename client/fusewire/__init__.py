"""Ordinary array code whose operations run on a Fusewire server.

    import fusewire as fw

    with fw.connect("localhost:7423") as session:
        x = session.array(data)
        print(fw.tanh(x @ x.T).sum().numpy())

Ops are recorded, and sent in the background. Only a call that reads a value waits for the server. Names are those of
NumPy and of the array API standard.
"""

import typing as _typing
from importlib import import_module as _import_module
from math import e, inf, nan, pi

from fusewire import fft as fft
from fusewire import lib as lib
from fusewire import linalg as linalg
from fusewire import random as random
from fusewire._api import functions as _functions
from fusewire._api.array import Array
from fusewire._api.catalogue import catalogued as _catalogued
from fusewire._api.catalogue.catalogued import *  # noqa: F403  # the catalogue of ops says which names there are
from fusewire._api.complex import rules as _rules  # noqa: F401  # lets ops take complex numbers
from fusewire._api.dtype_views import viewed as _viewed  # noqa: F401  # arrays call it
from fusewire._api.explaining import explain
from fusewire._api.explanation import ExplainedOp, Explanation, ProgramExplanation, Unfused
from fusewire._api.functions import *  # noqa: F403  # each topic of functions says which names it has
from fusewire._api.functions.namespace_info import __array_namespace_info__
from fusewire._api.gradients.gradients import grad, value_and_grad, vjp
from fusewire._api.member_docs import document_members as _document_members
from fusewire._api.missing_names import missing as _missing
from fusewire._api.names_of_numpy import of_numpy as _of_numpy
from fusewire._api.protocols.array_api import ARRAY_API_VERSIONS as _ARRAY_API_VERSIONS
from fusewire._api.protocols.numpy_ufuncs import give_methods as _give_methods
from fusewire._api.recorded_once.loops import fori_loop
from fusewire._api.recorded_once.recorded_function import function
from fusewire._connect import __version__, connect, default_session, replay
from fusewire._errors import (
    ArgumentError,
    AxisError,
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
from fusewire._profile.profile import Profile, profile
from fusewire._replay.replay import Replayed
from fusewire._session import Session, SessionStats
from fusewire._stream.sender import Trigger
from fusewire_protos.ops.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

bool = bool_  # noqa: A001  # the standard's name
newaxis = None
__array_api_version__ = _ARRAY_API_VERSIONS[-1]

__all__ = [
    "ArgumentError",
    "Array",
    "AxisError",
    "Cancelled",
    "ConfigurationError",
    "DType",
    "DtypeError",
    "ExplainedOp",
    "Explanation",
    "FusewireError",
    "OutOfMemory",
    "Profile",
    "ProgramExplanation",
    "ProtocolError",
    "QuotaExceeded",
    "Replayed",
    "RequestError",
    "ServerFault",
    "Session",
    "SessionClosed",
    "SessionLost",
    "SessionStats",
    "ShapeError",
    "Trigger",
    "Unauthenticated",
    "Unfused",
    "UnknownHandle",
    "UploadFailed",
    "WaitTimeout",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "bfloat16",
    "bool",
    "bool_",
    "complex64",
    "complex128",
    "connect",
    "default_session",
    "e",
    "explain",
    "float16",
    "float32",
    "float64",
    "fori_loop",
    "function",
    "grad",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "profile",
    "replay",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
    "vjp",
]
__all__ += _catalogued.__all__
__all__ += _functions.__all__  # type: ignore[attr-defined]  # a type checker follows imports
_give_methods({name: globals()[name] for name in __all__})
_document_members({name: globals()[name] for name in __all__})


def __dir__() -> list[str]:
    """Returns the names that completion offers, with the folder that is imported when it is used."""
    return sorted({*globals(), "testing"})


if not _typing.TYPE_CHECKING:  # a type checker would allow every attribute

    def __getattr__(name: str) -> _typing.Any:
        if name == "testing":  # its servers are for tests alone
            return _import_module("fusewire.testing")
        found = _of_numpy(name)
        if found is None:
            raise _missing(name, [*__all__, "fft", "lib", "linalg", "random", "testing"])
        return found
