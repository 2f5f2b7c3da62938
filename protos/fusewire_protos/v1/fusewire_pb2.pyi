from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientFrame(_message.Message):
    __slots__ = ("number", "acknowledged", "hello", "programs", "bindings", "tensors", "goodbye")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    BINDINGS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    number: int
    acknowledged: int
    hello: Hello
    programs: bytes
    bindings: bytes
    tensors: _containers.RepeatedScalarFieldContainer[bytes]
    goodbye: Goodbye
    def __init__(self, number: _Optional[int] = ..., acknowledged: _Optional[int] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., programs: _Optional[bytes] = ..., bindings: _Optional[bytes] = ..., tensors: _Optional[_Iterable[bytes]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("number", "acknowledged", "welcome", "completed", "results", "goodbye", "draining_ms")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_MS_FIELD_NUMBER: _ClassVar[int]
    number: int
    acknowledged: int
    welcome: Welcome
    completed: Completed
    results: _containers.RepeatedCompositeFieldContainer[Result]
    goodbye: Goodbye
    draining_ms: int
    def __init__(self, number: _Optional[int] = ..., acknowledged: _Optional[int] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., completed: _Optional[_Union[Completed, _Mapping]] = ..., results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ..., draining_ms: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("versions", "client", "session_id", "server_instance", "epoch", "device", "programs", "name", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedScalarFieldContainer[int]
    client: str
    session_id: bytes
    server_instance: bytes
    epoch: int
    device: int
    programs: _containers.RepeatedScalarFieldContainer[bytes]
    name: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, versions: _Optional[_Iterable[int]] = ..., client: _Optional[str] = ..., session_id: _Optional[bytes] = ..., server_instance: _Optional[bytes] = ..., epoch: _Optional[int] = ..., device: _Optional[int] = ..., programs: _Optional[_Iterable[bytes]] = ..., name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("version", "server_instance", "session_id", "epoch", "credit", "limits", "backend", "server", "local_name", "local_secret", "busy_poll_us")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SERVER_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    LOCAL_NAME_FIELD_NUMBER: _ClassVar[int]
    LOCAL_SECRET_FIELD_NUMBER: _ClassVar[int]
    BUSY_POLL_US_FIELD_NUMBER: _ClassVar[int]
    version: int
    server_instance: bytes
    session_id: bytes
    epoch: int
    credit: Credit
    limits: Limits
    backend: str
    server: str
    local_name: str
    local_secret: bytes
    busy_poll_us: int
    def __init__(self, version: _Optional[int] = ..., server_instance: _Optional[bytes] = ..., session_id: _Optional[bytes] = ..., epoch: _Optional[int] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., backend: _Optional[str] = ..., server: _Optional[str] = ..., local_name: _Optional[str] = ..., local_secret: _Optional[bytes] = ..., busy_poll_us: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("ops", "bytes", "segments")
    OPS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ops: int
    bytes: int
    segments: int
    def __init__(self, ops: _Optional[int] = ..., bytes: _Optional[int] = ..., segments: _Optional[int] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("message_bytes", "array_bytes", "handles", "live_bytes", "programs", "program_ops", "program_bytes", "chunk_bytes", "program_operands")
    MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ARRAY_BYTES_FIELD_NUMBER: _ClassVar[int]
    HANDLES_FIELD_NUMBER: _ClassVar[int]
    LIVE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_OPS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_OPERANDS_FIELD_NUMBER: _ClassVar[int]
    message_bytes: int
    array_bytes: int
    handles: int
    live_bytes: int
    programs: int
    program_ops: int
    program_bytes: int
    chunk_bytes: int
    program_operands: int
    def __init__(self, message_bytes: _Optional[int] = ..., array_bytes: _Optional[int] = ..., handles: _Optional[int] = ..., live_bytes: _Optional[int] = ..., programs: _Optional[int] = ..., program_ops: _Optional[int] = ..., program_bytes: _Optional[int] = ..., chunk_bytes: _Optional[int] = ..., program_operands: _Optional[int] = ...) -> None: ...

class Completed(_message.Message):
    __slots__ = ("ops", "bytes", "segments")
    OPS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ops: int
    bytes: int
    segments: int
    def __init__(self, ops: _Optional[int] = ..., bytes: _Optional[int] = ..., segments: _Optional[int] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("fetch", "inline", "beside_bytes", "failure")
    FETCH_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    BESIDE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    fetch: int
    inline: bytes
    beside_bytes: int
    failure: Failure
    def __init__(self, fetch: _Optional[int] = ..., inline: _Optional[bytes] = ..., beside_bytes: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("code", "text", "base", "op_index")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    OP_INDEX_FIELD_NUMBER: _ClassVar[int]
    code: int
    text: str
    base: int
    op_index: int
    def __init__(self, code: _Optional[int] = ..., text: _Optional[str] = ..., base: _Optional[int] = ..., op_index: _Optional[int] = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("code", "text")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    code: int
    text: str
    def __init__(self, code: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("offset", "data")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class UploadReceipt(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...

class DownloadRequest(_message.Message):
    __slots__ = ("session_id", "fetch")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    session_id: bytes
    fetch: int
    def __init__(self, session_id: _Optional[bytes] = ..., fetch: _Optional[int] = ...) -> None: ...
