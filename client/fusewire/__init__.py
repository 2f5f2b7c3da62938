"""Ordinary array code whose operations run on a Fusewire server.

    import fusewire as fw

    with fw.connect("localhost:7423") as session:
        x = session.array(data)
        print(fw.tanh(x @ x.T).sum().numpy())

Ops are recorded, and sent in the background. Only a call that reads a value waits for the server. Names are those of
NumPy and of the array API standard.
"""

from math import e, inf, nan, pi

from fusewire._api import catalogued as _catalogued
from fusewire._api.array import Array
from fusewire._api.catalogued import *  # noqa: F403  # the catalogue of ops says which names there are
from fusewire._api.functions import (
    arange,
    argmax,
    argmin,
    array,
    astype,
    broadcast_to,
    clip,
    concat,
    concatenate,
    dot,
    empty,
    empty_like,
    expand_dims,
    eye,
    flip,
    full,
    full_like,
    layer_norm,
    linspace,
    matrix_transpose,
    mean,
    one_hot,
    ones,
    ones_like,
    outer,
    permute_dims,
    pow,  # noqa: A004
    prod,
    ravel,
    reshape,
    result_type,
    roll,
    round,  # noqa: A004
    split,
    squeeze,
    stack,
    std,
    sum,  # noqa: A004
    swapaxes,
    take,
    transpose,
    var,
    where,
    zeros,
    zeros_like,
)
from fusewire._api.loops import fori_loop
from fusewire._api.operands import asarray
from fusewire._api.recorded_function import function
from fusewire._connect import __version__, connect, default_session, replay
from fusewire._errors import (
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
from fusewire._recordings.replay import Replayed
from fusewire._session import Session, SessionStats
from fusewire._stream.sender import Trigger
from fusewire_protos.ops.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
)

bool = bool_  # noqa: A001  # the standard's name
newaxis = None

__all__ = [
    "ArgumentError",
    "Array",
    "Cancelled",
    "ConfigurationError",
    "DType",
    "DtypeError",
    "FusewireError",
    "OutOfMemory",
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
    "UnknownHandle",
    "UploadFailed",
    "WaitTimeout",
    "__version__",
    "arange",
    "argmax",
    "argmin",
    "array",
    "asarray",
    "astype",
    "bfloat16",
    "bool",
    "bool_",
    "broadcast_to",
    "clip",
    "concat",
    "concatenate",
    "connect",
    "default_session",
    "dot",
    "e",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "flip",
    "float16",
    "float32",
    "float64",
    "fori_loop",
    "full",
    "full_like",
    "function",
    "inf",
    "int32",
    "int64",
    "layer_norm",
    "linspace",
    "matrix_transpose",
    "mean",
    "nan",
    "newaxis",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "permute_dims",
    "pi",
    "pow",
    "prod",
    "ravel",
    "replay",
    "reshape",
    "result_type",
    "roll",
    "round",
    "split",
    "squeeze",
    "stack",
    "std",
    "sum",
    "swapaxes",
    "take",
    "transpose",
    "uint8",
    "var",
    "where",
    "zeros",
    "zeros_like",
]
__all__ += _catalogued.__all__
