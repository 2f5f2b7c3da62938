"""Limits of a program, which every decoder checks: those that the server sets, and fixed ones."""

from __future__ import annotations

from typing import NamedTuple

# The server looks at all of these in one step. A recorder cuts fragments and loops of at most 1,024 ops, so that only a
# body that a user has recorded could have more.
MOST_LEAVES = 1 << 12  # inputs and scalars of a program, and operands of one op
MOST_LIVE = 1 << 11  # live results of a program
MOST_STARTS = 1 << 13  # starts of slices of a program


class ProgramLimits(NamedTuple):
    """Limits the size of a program. The fields have the names of the server's settings."""

    program_ops: int = 8192
    program_operands: int = 32768
    program_bytes: int = 1 << 20
    array_bytes: int = 16 << 30
