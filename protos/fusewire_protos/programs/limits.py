"""Limits of a program, which the server sets and every decoder checks."""

from __future__ import annotations

from typing import NamedTuple


class ProgramLimits(NamedTuple):
    """Limits the size of a program. The fields have the names of the server's settings."""

    program_ops: int = 8192
    program_operands: int = 32768
    program_bytes: int = 1 << 20
    array_bytes: int = 16 << 30
