"""Writes the pages into a folder: `python -m tests.api_reference docs/api`, or `make api-docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.api_reference.pages import written_pages


def main(folder: Path) -> None:
    """Writes all pages, and removes those that are no more."""
    texts = written_pages()
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
