"""Programs' bytes are unpacked in steps, and bytes that are not canonical are told."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.in_steps import finished
from fusewire_protos.programs.unpacked import unpacked

FIELDS = (b"\1", b"", ((1, 2), (3, 400)), ((0, (0, 1), -5, 2.5, True),), b"\0", b"\0\1", b"\0")
BYTES = msgpack.packb(FIELDS)


def test_the_fields_are_those_that_were_packed() -> None:
    assert finished(unpacked(BYTES)) == (FIELDS, True)


@pytest.mark.parametrize(
    ("canonical", "other"),
    [
        (msgpack.packb((1, 2)), b"\xdc\x00\x02\x01\x02"),
        (msgpack.packb((1, 2)), b"\x92\xcc\x01\x02"),
        (msgpack.packb((3, 400)), msgpack.packb((1, 2))),
        (b"\x97", b"\xdc\x00\x07"),
        (b"\xc4\x00", b"\xc5\x00\x00"),
        (msgpack.packb(FIELDS[2]), b"\xdc\x00\x02" + msgpack.packb(FIELDS[2])[1:]),
    ],
    ids=["long list", "long number", "an item twice", "long list of fields", "long bytes", "long list of items"],
)
def test_bytes_that_are_not_canonical_are_unpacked_and_told(canonical: bytes, other: bytes) -> None:
    raw = BYTES.replace(canonical, other, 1)
    fields, is_canonical = finished(unpacked(raw))
    assert fields == msgpack.unpackb(raw, use_list=False)
    assert not is_canonical


def test_one_and_true_are_two_items() -> None:
    fields = (b"", b"", (), ((0, (), 1), (0, (), True), (0, (), 1.0)), b"", b"", b"")
    assert finished(unpacked(msgpack.packb(fields))) == (fields, True)


@pytest.mark.parametrize("raw", [b"", b"\x01", b"\xc4\x01a", msgpack.packb([b""] * 9)], ids=repr)
def test_what_is_no_short_list_has_no_fields(raw: bytes) -> None:
    assert finished(unpacked(raw)) == ((), False)


@pytest.mark.parametrize("raw", [BYTES[:-1], BYTES + b"\0", b"\x97", b"\x91\xc1", b"\x91\x92\x91\x01\xd4"], ids=repr)
def test_truncated_and_surplus_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(CaseError) as caught:
        finished(unpacked(raw))
    assert caught.value.case.name == "undecodable_frame"


def _steps_of(items: Any) -> int:
    raw = msgpack.packb((b"", b"", items, (), b"", b"", b""))
    return 1 + sum(1 for _ in unpacked(raw))


def test_a_step_unpacks_some_kilobytes() -> None:
    assert _steps_of([[1, 2]] * 10) == 1
    assert _steps_of([[1, 2]] * 80_000) >= 100
