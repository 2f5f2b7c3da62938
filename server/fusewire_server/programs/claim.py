"""Notes what rejected program bytes claim: the results that become failures, and the credit of their segments. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fusewire_protos.credit import Amount
from fusewire_protos.programs.parts import claimed_live
from fusewire_protos.programs.program import Program
from fusewire_server.programs.outline import Outline, bits_of

_MOST_CLAIMED = 1 << 16  # most results of a rejected program that become failures; later results stay unknown handles
# The approximate bytes of a claim with its failure, and of each live result's size; a test compares them.
REJECTED_BYTES, SIZE_BYTES = 1024, 24


@dataclass(frozen=True)
class Claim:
    """The claims of rejected program bytes: the results that become failures, and the credit that a segment takes.

    The session keeps the claim as long as it has a number for the program, so a claim is small whatever the bytes say.
    """

    outline: Outline
    amount: Amount  # of a segment; a loop takes credit for the bytes of the results that it keeps
    sizes: tuple[int, ...] = ()  # the bytes of each live result; empty if a segment takes no credit for bytes

    @property
    def size_bytes(self) -> int:
        """The approximate host memory of the claim and its failure."""
        return REJECTED_BYTES + self.outline.width // 7 + SIZE_BYTES * len(self.sizes)

    @classmethod
    def of(cls, live: Iterable[int], amount: Amount, sizes: tuple[int, ...] = ()) -> Claim:
        return cls(Outline(bits_of(live, _MOST_CLAIMED)), amount, sizes)


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
