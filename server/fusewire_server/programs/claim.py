"""Notes what a rejected program claims: the results that become failures, and the credit of its segments. Pure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy.typing as npt

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.in_steps import InSteps
from fusewire_protos.programs.codec import check_sizes, decode_in_steps
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.parts import arrays_of
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.unpacked import unpacked
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
    def of(cls, live: npt.ArrayLike, amount: Amount, sizes: tuple[int, ...] = ()) -> Claim:
        return cls(Outline(bits_of(live, _MOST_CLAIMED)), amount, sizes)


def claim_of_program(program: Program) -> Claim:
    """Returns the claim of a program that a quota rejects: its arrays are too large, or there is no room for it.

    The server counts its credit as the client does, so that the client gets all of the credit back.
    """
    return Claim.of(program.live, Amount(program.op_count, program.live_bytes, 1), program.live_sizes)


def claim_of_bytes(raw: bytes, limits: ProgramLimits) -> InSteps[Claim]:
    """Returns the claim of bytes that are no program within the limits.

    They are not read for their credit, because a correct client checks all rules and limits before it sends. Nor are
    bytes read that are too long, or that have not the form of a program: they claim nothing.
    """
    live: npt.ArrayLike = ()
    if len(raw) <= limits.program_bytes:
        with suppress(CaseError):
            arrays = arrays_of((yield from unpacked(raw)).fields)
            live = arrays.live[arrays.live < len(arrays.ops)]
    return Claim.of(live, Amount(0, 0, 1))


class Rejected(NamedTuple):
    """Why bytes are no program that the server takes, and what they claim."""

    error: CaseError
    claim: Claim


def read_program(raw: bytes, limits: ProgramLimits) -> InSteps[Program | Rejected]:
    """Reads the canonical bytes of a program."""
    try:
        program = yield from decode_in_steps(raw, limits)
    except CaseError as error:
        return Rejected(error, (yield from claim_of_bytes(raw, limits)))
    try:
        check_sizes(program, limits)
    except CaseError as error:
        return Rejected(error, claim_of_program(program))
    return program
