"""A list read item by item gives what it gives at once, and is refused where it is malformed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos import frames, reader
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Entry, Fetch, Free
from fusewire_protos.reader import Reader
from tests.protos.test_frames import MALFORMED, ONE_OF_EACH, entries

MOST_LISTED = 300
ONE_BYTE_ITEMS = st.lists(st.sampled_from((0x90, 0x91, 0x92, 0x93, 0x05, 0xC0, 0xDC, 0xDD, 0x00, 0xC4, 0xCB)))


def _read(raw: bytes) -> list[Entry]:
    return [*frames.read_entries(raw, MOST_LISTED)]


def _read_by_fields(raw: bytes) -> list[Entry]:
    """As long items are read."""
    with patch.object(reader, "SHORT_ITEM_BYTES", 0):
        return _read(raw)


def _outcome(decode: Callable[[bytes], list[Entry]], raw: bytes) -> str | None:
    """The entries in words, for a NaN among them equals nothing; None for a refusal."""
    try:
        return repr(decode(raw))
    except CaseError:
        return None


@given(st.lists(entries, max_size=6))
def test_entries_come_one_by_one_as_they_come_at_once(sent: list[Entry]) -> None:
    raw = frames.encode_entries(sent)
    assert (_read(raw), _read_by_fields(raw)) == (sent, sent)


@given(st.one_of(st.binary(max_size=200), ONE_BYTE_ITEMS.map(bytes)))
def test_whatever_the_bytes_are_all_ways_agree(raw: bytes) -> None:
    assert _outcome(_read, raw) == _outcome(_read_by_fields, raw) == _outcome(frames.decode_entries, raw)


@given(st.lists(entries, min_size=1, max_size=6), st.data())
def test_all_ways_agree_when_a_byte_is_changed(sent: list[Entry], data: st.DataObject) -> None:
    changed = bytearray(frames.encode_entries(sent))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    raw = bytes(changed)
    assert _outcome(_read, raw) == _outcome(_read_by_fields, raw) == _outcome(frames.decode_entries, raw)


@pytest.mark.parametrize("items", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_entries_are_refused(items: Any) -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        _read(msgpack.packb(items))


def test_what_stands_before_a_malformed_entry_is_read() -> None:
    left = frames.read_entries(msgpack.packb([[3, 1, 10], [3, 2, 11], [3, None, 12], [3, 4, 13]]), MOST_LISTED)
    assert (next(left), next(left), len(left)) == (Fetch(1, 10), Fetch(2, 11), 2)
    with pytest.raises(CaseError, match="undecodable_frame"):
        next(left)


def test_every_truncation_is_refused() -> None:
    raw = frames.encode_entries(ONE_OF_EACH)
    for length in range(1, len(raw)):
        with pytest.raises(CaseError, match="undecodable_frame"):
            _read(raw[:length])


@pytest.mark.parametrize("items", [[], [[5]]])
def test_what_stands_behind_the_last_item_is_refused(items: list[Any]) -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        _read(msgpack.packb(items) + b"\x05")


def test_a_list_that_is_too_long_is_refused_by_its_head() -> None:
    head = b"\xdd" + (1 << 31).to_bytes(4, "big")
    with pytest.raises(CaseError, match=f"oversized_frame.*lists {1 << 31} numbers; the most is {MOST_LISTED}"):
        _read(b"\x91\x92\x02" + head)


def test_a_list_that_is_too_long_is_refused_in_a_long_item_and_in_a_short_one() -> None:
    raw = frames.encode_entries([Free(tuple(range(MOST_LISTED + 1)))])
    for read in (_read, _read_by_fields):
        with pytest.raises(CaseError, match=f"oversized_frame.*lists {MOST_LISTED + 1} numbers"):
            read(raw)


def test_a_list_within_a_list_of_a_long_item_is_not_unpacked() -> None:
    nested = msgpack.packb([[2, [[7] * 20_000]]])
    with pytest.raises(CaseError, match=r"undecodable_frame.*not msgpack of the expected form"):
        [*frames.read_entries(nested, 50_000)]


def test_lists_are_read_where_msgpack_is_python_alone() -> None:
    sent = [*ONE_OF_EACH, Free(tuple(range(2**40, 2**40 + frames.MAX_FREED)))]
    program = (
        "import sys; from fusewire_protos import frames; raw = sys.stdin.buffer.read();"
        "print([*frames.read_entries(raw, 50_000)] == frames.decode_entries(raw))"
    )
    fields = {**os.environ, "MSGPACK_PUREPYTHON": "1"}
    raw = frames.encode_entries(sent)
    finished = subprocess.run(
        [sys.executable, "-c", program], check=True, env=fields, input=raw, capture_output=True, timeout=60
    )
    assert finished.stdout == b"True\n"


def test_an_item_of_too_many_fields_is_refused_by_its_head() -> None:
    head = b"\xdd" + (1 << 31).to_bytes(4, "big")
    with pytest.raises(CaseError, match=r"undecodable_frame.*fields"):
        _read(b"\x91" + head)


@pytest.mark.parametrize("depth", [4, 1000, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        _read(b"\x91" * depth + b"\x00")


def test_no_item_is_looked_at_before_it_is_asked_for() -> None:
    seen: list[object] = []

    def see(item: object) -> object:
        seen.append(item)
        return item

    left = Reader(msgpack.packb([[1, [2, 3]], [4], [5]]), see, MOST_LISTED)
    assert (seen, len(left)) == ([], 3)
    assert next(left) == (1, (2, 3))
    assert (seen, len(left)) == ([(1, (2, 3))], 2)
    assert [*left] == [(4,), (5,)]
    assert len(left) == 0


def test_a_list_of_the_longest_length_is_read() -> None:
    longest = Free(tuple(range(MOST_LISTED)))
    assert _read(frames.encode_entries([longest])) == [longest]
