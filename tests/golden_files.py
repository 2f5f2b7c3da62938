"""Golden files: bytes and texts that must not change unnoticed.

`FUSEWIRE_WRITE_GOLDEN=1 pytest tests/…` writes them anew; the difference then shows in version control.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
_BYTES_PER_LINE = 32


def check_text(name: str, text: str) -> None:
    """Compares `text` with the file tests/golden/`name`, or writes the file if asked to."""
    path = FOLDER / name
    if os.environ.get("FUSEWIRE_WRITE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"differs from {path}; FUSEWIRE_WRITE_GOLDEN=1 writes it anew"


def check_bytes(name: str, raw: bytes) -> None:
    """As `check_text`, for bytes as lines of hexadecimal digits."""
    lines = [raw[start : start + _BYTES_PER_LINE].hex() for start in range(0, len(raw), _BYTES_PER_LINE)]
    check_text(name, "".join(f"{line}\n" for line in lines))
