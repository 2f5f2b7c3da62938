"""Programs and lines have short names."""

from __future__ import annotations

from fusewire._profile.events import NO_LINE, Line
from fusewire._profile.labels import label_of, lines_label


def test_labels_are_short() -> None:
    assert label_of(["add", "tanh", "add", "exp", "log", ""]) == "add ×2, tanh, exp, …"
    assert lines_label([Line("/a/b.py", 4), NO_LINE, Line("/a/b.py", 2), Line("/c.py", 1)]) == "b.py:2-4"
    assert lines_label([Line(r"C:\a\b.py", 4)]) == "b.py:4"
    assert lines_label([NO_LINE]) == ""
