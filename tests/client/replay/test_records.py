"""The file of a recording: what is written is read again, and anything else is refused."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire._replay.records import (
    SCHEMA,
    VERSION,
    Answer,
    Header,
    LargeUpload,
    Record,
    Recording,
    RecordWriter,
    SentFrame,
)
from fusewire_protos.credit import Amount

_RECORDS: tuple[Record, ...] = (
    SentFrame(5, Amount(1, 2, 3), b"frame"),
    LargeUpload(7, 1 << 50, b"bytes"),
    Answer(8, 1, b"value"),
    Answer(9, 2, False),
)


def _write(path: Path, *records: Record) -> bytes:
    writer = RecordWriter(path, Header("me", keeps_values=True))
    for record in records:
        writer.write(record)
    writer.end(10)
    return path.read_bytes()


def _read(path: Path) -> list[Record]:
    with Recording(path) as recording:
        return list(recording.records())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    _write(tmp_path / "r", *_RECORDS)
    assert _read(tmp_path / "r") == list(_RECORDS)
    with Recording(tmp_path / "r") as recording:
        assert recording.header == Header("me", keeps_values=True)


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode")
@pytest.mark.parametrize("umask", [0, 0o022, 0o777], ids=oct)
@pytest.mark.parametrize("is_new", [True, False])
def test_only_its_owner_may_read_a_recording(tmp_path: Path, umask: int, is_new: bool) -> None:
    path = tmp_path / "r"
    if not is_new:
        path.write_bytes(bytes(1000))
        path.chmod(0o644)
    before = os.umask(umask)
    try:
        _write(path, *_RECORDS)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert _read(path) == list(_RECORDS)


def test_a_recording_may_go_to_no_file() -> None:
    before = Path(os.devnull).stat().st_mode
    RecordWriter(Path(os.devnull), Header("me", keeps_values=True)).end(1)
    assert Path(os.devnull).stat().st_mode == before


def test_a_file_that_has_ended_takes_no_record(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r", Header("me", keeps_values=False))
    writer.end(1)
    writer.write(_RECORDS[0])
    writer.end(2)
    assert _read(tmp_path / "r") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("size_bytes", [1, 1 << 20])  # within the buffer of a file, and beyond it
def test_a_full_disk_ends_the_recording_and_nothing_else(caplog: pytest.LogCaptureFixture, size_bytes: int) -> None:
    writer = RecordWriter(Path("/dev/full"), Header("me", keeps_values=True))
    writer.write(LargeUpload(7, 1, b"a" * size_bytes))
    writer.write(_RECORDS[0])
    writer.end(10)
    assert [record.getMessage() for record in caplog.records] == [
        "the recording /dev/full was cut short: No space left on device"
    ]


@pytest.mark.parametrize("missing", [1, 2, 9, 30])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, missing: int) -> None:
    raw = _write(tmp_path / "r", *_RECORDS)
    (tmp_path / "r").write_bytes(raw[:-missing])
    with pytest.raises(fw.ConfigurationError, match="cut short"):
        _read(tmp_path / "r")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "it is no recording"),
        (b"\x00", "it is no recording"),
        (b"\xc1", "no record can be read"),
        (msgpack.packb(["another", 1]), "it is no recording"),
        (msgpack.packb([SCHEMA, VERSION + 1, "me", True]), "version 2 of the format; this client reads version 1"),
        (msgpack.packb([SCHEMA, VERSION, "me"]), "its header is malformed"),
        (msgpack.packb({"a": 1}), "no record can be read"),
        (msgpack.packb([SCHEMA, VERSION, "me", True]) + msgpack.packb([9, 1]), "begins no record"),
        (msgpack.packb([SCHEMA, VERSION, "me", True]) + msgpack.packb([0, 1, 2, 3, 4, "text"]), "begins no record"),
        (msgpack.packb([SCHEMA, VERSION, "me", True]) + msgpack.packb([2, 1, 1.5, True]), "begins no record"),
        (msgpack.packb([SCHEMA, VERSION, "me", True]) + b"\xc6\xff\xff\xff\xff", "no record can be read|cut short"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, raw: bytes, why: str) -> None:
    (tmp_path / "r").write_bytes(raw)
    with pytest.raises(fw.ConfigurationError, match=why):
        _read(tmp_path / "r")


@given(raw=st.binary(max_size=200), at=st.integers(0, 200))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, raw: bytes, at: int) -> None:
    path = tmp_path_factory.mktemp("r") / "r"
    whole = _write(path, *_RECORDS)
    path.write_bytes(whole[:at] + raw + whole[at + len(raw) :])
    with suppress(fw.ConfigurationError):
        _read(path)


def test_a_missing_file_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(fw.ConfigurationError, match="No such file"):
        Recording(tmp_path / "nothing")
    with pytest.raises(fw.ConfigurationError, match="No such file"):
        RecordWriter(tmp_path / "nothing" / "r", Header("me", keeps_values=True))
