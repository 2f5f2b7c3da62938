"""Lines of the user's code."""

from __future__ import annotations

from fusewire._recording.source_lines import SourceLine, SourceLines, user_source_line


def test_the_line_of_the_op_itself_is_exact() -> None:
    lines = SourceLines()
    lines.note(5, SourceLine("a.py", 1))
    lines.note(9, SourceLine("a.py", 2))
    assert str(lines.find(9)) == "recorded at a.py:2"


def test_between_noted_ops_the_line_of_the_one_before_is_found() -> None:
    lines = SourceLines()
    lines.note(5, SourceLine("a.py", 1))
    assert str(lines.find(8)) == "recorded at or after a.py:1"
    assert lines.find(4) is None


def test_the_line_is_outside_the_package() -> None:
    source_line = user_source_line()
    assert source_line.file == __file__
