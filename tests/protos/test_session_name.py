"""Names and labels of sessions are short words that are safe wherever they are shown."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.session_name import MOST_LABELS, check_labels, check_name, shown_id


@pytest.mark.parametrize("name", ["", "a", "ppo-worker-7", "team/run:3", "v1.2+x@host", "7" * 64])
def test_a_word_is_a_name(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", [" ", "a b", "-a", "a" * 65, "ä", "a\n", "\x1b[2J", "a,b", 7, None, b"a"])
def test_what_is_no_word_is_no_name(name: object) -> None:
    with pytest.raises(ValueError, match=r"^name = .*: expected at most 64 letters"):
        check_name(name)


@given(st.text())
def test_a_name_that_is_taken_is_printable_and_short(name: str) -> None:
    with suppress(ValueError):
        check_name(name)
        assert name == "" or (name.isprintable() and name.isascii() and len(name) <= 64)


def test_labels_are_words_and_few() -> None:
    check_labels({f"k{number}": "v" for number in range(MOST_LABELS)})
    for labels in ({f"k{number}": "v" for number in range(MOST_LABELS + 1)}, {"a b": "c"}, {"a": ""}, {"a": "b c"}):
        with pytest.raises(ValueError, match="expected at most"):
            check_labels(labels)


def test_a_shown_id_is_too_short_to_resume_a_session() -> None:
    session_id = bytes(range(16))
    assert session_id.hex().startswith(shown_id(session_id))
    assert len(shown_id(session_id)) < len(session_id.hex()) // 2
