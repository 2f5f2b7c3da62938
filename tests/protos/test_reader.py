"""A list read item by item gives what it gives at once, and is refused where it is malformed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos import frames
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Entry, Fetch, Free
from fusewire_protos.reader import Reader
from tests.protos.test_frames import MALFORMED, ONE_OF_EACH, entries

MOST_LISTED = 300
ONE_BYTE_ITEMS = st.lists(st.sampled_from((0x90, 0x91, 0x92, 0x93, 0x05, 0xC0, 0xDC, 0xDD, 0x00, 0xC4, 0xCB)))


def _read(raw: bytes) -> list[Entry]:
    return [*frames.read_entries(raw, MOST_LISTED)]


def _outcome(decode: Callable[[bytes], list[Entry]], raw: bytes) -> list[Entry] | None:
    """None for a refusal."""
    try:
        return decode(raw)
    except CaseError:
        return None


@given(st.lists(entries, max_size=6))
def test_entries_come_one_by_one_as_they_come_at_once(sent: list[Entry]) -> None:
    assert _read(frames.encode_entries(sent)) == sent


@given(st.one_of(st.binary(max_size=200), ONE_BYTE_ITEMS.map(bytes)))
def test_whatever_the_bytes_are_both_ways_agree(raw: bytes) -> None:
    assert _outcome(_read, raw) == _outcome(frames.decode_entries, raw)


@given(st.lists(entries, min_size=1, max_size=6), st.data())
def test_both_ways_agree_when_a_byte_is_changed(sent: list[Entry], data: st.DataObject) -> None:
    raw = bytearray(frames.encode_entries(sent))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert _outcome(_read, bytes(raw)) == _outcome(frames.decode_entries, bytes(raw))


@pytest.mark.parametrize("items", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_entries_are_refused(items: Any) -> None:
    with pytest.raises(CaseError, match="undecodable_frame"):
        _read(msgpack.packb(items))


def test_what_stands_before_a_malformed_entry_is_read() -> None:
    reader = frames.read_entries(msgpack.packb([[3, 1, 10], [3, 2, 11], [3, None, 12], [3, 4, 13]]), MOST_LISTED)
    assert (next(reader), next(reader), len(reader)) == (Fetch(1, 10), Fetch(2, 11), 2)
    with pytest.raises(CaseError, match="undecodable_frame"):
        next(reader)


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

    reader = Reader(msgpack.packb([[1, [2, 3]], [4], [5]]), see, MOST_LISTED)
    assert (seen, len(reader)) == ([], 3)
    assert next(reader) == (1, (2, 3))
    assert (seen, len(reader)) == ([(1, (2, 3))], 2)
    assert [*reader] == [(4,), (5,)]
    assert len(reader) == 0


def test_a_list_of_the_longest_length_is_read() -> None:
    longest = Free(tuple(range(MOST_LISTED)))
    assert _read(frames.encode_entries([longest])) == [longest]
