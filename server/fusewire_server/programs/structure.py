"""Names what programs for different sizes have in common, and tells their inputs. Pure."""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice

import numpy as np

from fusewire_protos.programs.program import Program

MOST_INPUTS = 8  # that are told
_DIGEST_BYTES = 8


def structure_of(program: Program) -> str:
    """Returns a digest of the ops of a program and of their operands, without shapes, dtypes and attributes.

    Takes numbers for names, so that only distinct signatures take a step of Python.
    """
    names: dict[str, int] = {}
    of_signature = [names.setdefault(signature.op.name, len(names)) for signature in program.distinct]
    ops = np.array(of_signature, np.int64)[program.signature_numbers]
    order = dict.fromkeys(ops.tolist())  # names by their first use: signatures are in another order for other sizes
    listed = [*names]
    text = "\n".join([listed[number] for number in order])
    renamed = np.zeros(len(names), np.int64)
    renamed[[*order]] = np.arange(len(order))
    hashed = blake2b(text.encode(), digest_size=_DIGEST_BYTES)
    for numbers in (renamed[ops], program.operand_numbers, program.operand_ends):
        hashed.update(np.ascontiguousarray(numbers, np.int64).data)
    hashed.update(repr((len(program.inputs), len(program.scalars), program.carried)).encode())
    return hashed.hexdigest()


def inputs_of(program: Program) -> tuple[str, ...]:
    """Returns dtypes and shapes of the first inputs, such as `float32[64,256]`."""
    return tuple([f"{dtype.name}[{','.join(map(str, shape))}]" for dtype, shape in islice(program.inputs, MOST_INPUTS)])


def difference(inputs: tuple[str, ...], results: int, others: tuple[str, ...], other_results: int) -> str:
    """Says what differs in another program of the same structure, by the inputs and the numbers of results of both."""
    for number, (own, other) in enumerate(zip(inputs, others, strict=True)):
        if own != other:
            return f"input {number} is {other} in place of {own}"
    if results != other_results:
        return f"{other_results} results are kept in place of {results}"
    return "an attribute such as a length or an axis, a later input, or which results are kept"
