"""Notes what rejected program bytes claim: the results that become failures, and the credit of their segments. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fusewire_protos.credit import Amount
from fusewire_protos.programs.parts import claimed_live
from fusewire_protos.programs.program import Program

_MOST_CLAIMED = 1 << 16  # most results of a rejected program that become failures; later results stay unknown handles


@dataclass(frozen=True)
class Claim:
    """The claims of rejected program bytes: the results that become failures, and the credit that a segment takes.

    The session keeps the claim as long as it has a number for the program, so a claim is small whatever the bytes say.
    """

    live_bits: bytes  # bit i, counted from the lowest of the first byte, stands for result i
    amount: Amount  # of a segment; a loop takes credit for the bytes of the results that it keeps
    sizes: tuple[int, ...] = ()  # the bytes of each live result; empty if a segment takes no credit for bytes

    @classmethod
    def of(cls, live: Iterable[int], amount: Amount, sizes: tuple[int, ...] = ()) -> Claim:
        bits = bytearray(_MOST_CLAIMED // 8)
        for index in live:
            if index < _MOST_CLAIMED:
                bits[index >> 3] |= 1 << (index & 7)
        return cls(bytes(bits.rstrip(b"\0")), amount, sizes)

    def live(self) -> list[int]:
        """Returns the indices of the results, ascending. Each segment asks for them, so NumPy looks for the bits."""
        bits = np.frombuffer(self.live_bits, np.uint8)
        indices: list[int] = np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()
        return indices


def claim_of_program(program: Program) -> Claim:
    """Returns the claim of a program that a quota rejects: its arrays are too large, or there is no room for it.

    The server counts its credit as the client does, so that the client gets all of the credit back.
    """
    return Claim.of(program.live, Amount(program.op_count, program.live_bytes, 1), program.live_sizes)


def claim_of_bytes(raw: bytes) -> Claim:
    """Returns the claim of bytes that are no program within the limits.

    They are not read for their credit, because a correct client checks all rules and limits before it sends.
    """
    return Claim.of(claimed_live(raw), Amount(0, 0, 1))
