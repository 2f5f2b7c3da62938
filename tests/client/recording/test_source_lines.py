"""Lines of the user's code."""

from __future__ import annotations

from fusewire._recording.source_lines import SourceLine, user_source_line


def test_a_line_is_told_with_its_file() -> None:
    assert str(SourceLine("a.py", 2)) == "recorded at a.py:2"


def test_the_line_is_outside_the_package() -> None:
    source_line = user_source_line()
    assert source_line.file == __file__
