"""Limits of a program, which every decoder checks: those that the server sets, and one that is fixed."""

from __future__ import annotations

from typing import NamedTuple

# Inputs and scalars of a program, and operands of one op. The server looks at all of them in one step.
MOST_LEAVES = 1 << 12


class ProgramLimits(NamedTuple):
    """Limits the size of a program. The fields have the names of the server's settings."""

    program_ops: int = 8192
    program_operands: int = 32768
    program_bytes: int = 1 << 20
    array_bytes: int = 16 << 30
