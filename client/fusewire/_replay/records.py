"""Defines the file of a recording: its records, and how they are written and read.

`docs/recordings.md` describes the format for people. A file is a sequence of msgpack arrays: a header, then records in
the order in which they happened, then an end. A file without an end was cut short.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import msgpack

from fusewire._errors import ConfigurationError
from fusewire_protos.credit import Amount

SCHEMA, VERSION = "fusewire-recording", 1
OWNERS_MODE = 0o600  # of a recording, which holds data of the session: scalars always, and values if they are kept
_LONGEST_BYTES = (1 << 31) - 1  # of one record; a server takes arrays of up to 1 GiB by default
_MOST_FIELDS = 8
_FRAME, _UPLOAD, _RESULT, _END = range(4)

_log = logging.getLogger("fusewire")


Outcome = bytes | bool  # of a fetch: its value, or True for a value that is not kept, or False for a failure


class Header(NamedTuple):
    """The beginning of a recording."""

    client: str  # name and version of the client library that recorded
    keeps_values: bool


class SentFrame(NamedTuple):
    """A frame of the client. `completed` is all that the server had completed when the frame was sent."""

    at_ns: int  # since the session began, as in all records
    completed: Amount
    raw: bytes  # a `ClientFrame`; its tensors are empty if values are not kept


class LargeUpload(NamedTuple):
    """The bytes of an upload that were sent outside the stream. There are such records only if values are kept."""

    at_ns: int
    handle: int
    value: bytes


class Answer(NamedTuple):
    """The answer of a fetch. `value` is the bytes of the value, True if they are not kept, or False for a failure."""

    at_ns: int
    fetch: int
    value: Outcome


Record = SentFrame | LargeUpload | Answer


class RecordWriter:
    """Writes a recording. Any thread may call `write`.

    A recording that cannot be written, as on a full disk, stops with an error in the log. The session that is recorded
    goes on.
    """

    def __init__(self, path: Path, header: Header) -> None:
        """Creates the file, which only its owner may read. Raises ConfigurationError if it cannot be created."""
        try:
            self._file: BinaryIO = open(path, "wb", opener=_open_for_owner)  # noqa: SIM115 - ended by `end`
        except OSError as reason:
            raise ConfigurationError(f"record = {path}: {reason.strerror}") from None
        self.keeps_values = header.keeps_values
        self._path = path
        self._lock = threading.Lock()
        self._put(SCHEMA, VERSION, *header)

    def write(self, record: Record) -> None:
        if isinstance(record, SentFrame):
            completed = record.completed
            self._put(_FRAME, record.at_ns, completed.ops, completed.bytes, completed.segments, record.raw)
        else:
            self._put(_UPLOAD if isinstance(record, LargeUpload) else _RESULT, *record)

    def end(self, at_ns: int) -> None:
        """Ends and closes the file. Does nothing if it has ended."""
        self._put(_END, at_ns, is_last=True)

    def _put(self, *fields: object, is_last: bool = False) -> None:
        packed = msgpack.packb(fields)
        with self._lock:
            if self._file.closed:
                return
            try:
                self._file.write(packed)
                if is_last:
                    self._file.close()
            except OSError as reason:
                with suppress(OSError):  # it writes what it still holds, and closes the file also if it cannot
                    self._file.close()
                _log.error("the recording %s was cut short: %s", self._path, reason.strerror)


def _open_for_owner(path: str, flags: int) -> int:
    """Opens a file whose content is its owner's alone, whatever the umask, and also if the file was there before."""
    descriptor = os.open(path, flags & ~os.O_TRUNC, OWNERS_MODE)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # not a pipe, or /dev/null
            os.chmod(descriptor if os.chmod in os.supports_fd else path, OWNERS_MODE)  # noqa: PTH101 - of a descriptor
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Recording:
    """Reads a recording record by record. As a context manager, closes the file."""

    def __init__(self, path: Path) -> None:
        """Opens the file and reads its header.

        Raises ConfigurationError if there is no such file, or if it is no recording of this version.
        """
        self._path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as reason:
            raise ConfigurationError(f"recording {path}: {reason.strerror}") from None
        self._unpacker = self._new_unpacker()
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def check(self) -> None:
        """Reads the whole file, and begins again. Raises ConfigurationError as `records` does."""
        for _ in self.records():
            pass
        self._file.seek(0)
        self._unpacker = self._new_unpacker()
        self._read_header()

    def records(self) -> Iterator[Record]:
        """Yields all records in order. Raises ConfigurationError if a record is malformed or the file was cut short."""
        while True:
            offset = self._unpacker.tell()
            fields = self._next_fields("it was cut short")
            if len(fields) == 2 and fields[0] == _END:
                return
            try:
                yield _record(fields)
            except (TypeError, ValueError):
                raise self._wrong(f"byte {offset} begins no record") from None

    def _new_unpacker(self) -> msgpack.Unpacker:
        return msgpack.Unpacker(
            self._file,
            max_buffer_size=_LONGEST_BYTES,
            max_array_len=_MOST_FIELDS,
            max_map_len=0,
            max_ext_len=0,
        )

    def _read_header(self) -> Header:
        fields = self._next_fields("it is no recording")
        if len(fields) < 2 or fields[0] != SCHEMA:
            raise self._wrong("it is no recording")
        if fields[1] != VERSION:
            raise self._wrong(f"it has version {fields[1]!r} of the format; this client reads version {VERSION}")
        if len(fields) != 4 or type(fields[2]) is not str or type(fields[3]) is not bool:
            raise self._wrong("its header is malformed")
        return Header(*fields[2:])

    def _next_fields(self, at_end: str) -> list[Any]:
        try:
            fields = self._unpacker.unpack()
        except msgpack.OutOfData:
            raise self._wrong(at_end) from None
        except (ValueError, msgpack.UnpackException):  # also for what is too long, too deep or not UTF-8
            raise self._wrong(f"no record can be read at byte {self._unpacker.tell()}") from None
        return fields if type(fields) is list else []

    def _wrong(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"recording {self._path}: {why}")


def _record(fields: list[Any]) -> Record:
    """Returns the record with these fields. Raises ValueError if the fields are no record."""
    kind, *rest = fields
    if kind == _FRAME and _are(rest, int, int, int, int, bytes):
        at_ns, ops, size_bytes, segments, raw = rest
        return SentFrame(at_ns, Amount(ops, size_bytes, segments), raw)
    if kind == _UPLOAD and _are(rest, int, int, bytes):
        return LargeUpload(*rest)
    if kind == _RESULT and (_are(rest, int, int, bytes) or _are(rest, int, int, bool)):
        return Answer(*rest)
    raise ValueError("no record")


def _are(fields: list[Any], *types: type) -> bool:
    return [type(field) for field in fields] == list(types)
