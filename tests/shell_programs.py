"""Programs of the shell that stand for others, such as for a compiler in trouble."""

from __future__ import annotations

from pathlib import Path


def shell_program(path: Path, script: str) -> Path:
    """Writes a program that may be executed. Returns its path."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o700)
    return path
