"""Encodes programs as canonical bytes and decodes these. Equal programs have equal bytes, and so equal digests.

To be fast, this module reads and writes all ops of a program at once with NumPy. It runs Python code only once for each
signature. If a program has an error, `reading` goes through the ops one by one to find the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from fusewire_protos import in_steps
from fusewire_protos.errors import CaseError, RequestError
from fusewire_protos.in_steps import InSteps
from fusewire_protos.ops import inference, signatures
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import Signature
from fusewire_protos.programs.limits import MOST_LEAVES, MOST_LIVE, MOST_STARTS, ProgramLimits
from fusewire_protos.programs.parts import Arrays, Parts, arrays_of, carried_pairs, pack, parts_of
from fusewire_protos.programs.program import OPS_A_STEP, Carried, Integers, Program, check_carried
from fusewire_protos.programs.reading import SPECS_A_STEP, op_of, read, spec_of
from fusewire_protos.programs.unpacked import unpacked

DIGEST_BYTES = 16
_LONG_BYTES = 1 << 14  # a longer program is also read in steps where all of it is looked at together

_INTEGER = frozenset((int,))  # the exact type: bool is a subclass of int
_TUPLE = frozenset((tuple,))

_code_of = itemgetter(0)
_operands_of = itemgetter(1)
_size_of = attrgetter("size_bytes")


def encode(program: Program) -> bytes:
    """Returns the canonical bytes of a program."""
    inputs, operands = len(program.inputs), [signature.operands for signature in program.distinct]
    specs = [*program.leaves, *chain.from_iterable(operands)]
    number_of = {spec: number for number, spec in enumerate(dict.fromkeys(specs))}
    leaves = [number_of[spec] for spec in program.leaves]
    listed_signatures = [
        [signature.op.code, [number_of[spec] for spec in signature.operands], *signature.attributes]
        for signature in program.distinct
    ]
    return pack(
        Parts(
            leaves[:inputs],
            leaves[inputs:],
            [[spec.dtype.code, *spec.shape] for spec in number_of],
            listed_signatures,
            program.signature_numbers,
            program.operand_numbers,
            program.live,
            [*chain.from_iterable(program.carried)],
        )
    )


def decode(raw: bytes, limits: ProgramLimits) -> Program:
    """Returns the program that the canonical bytes `raw` encode.

    Raises CaseError if `raw` is not canonical or exceeds a limit, before anything large is allocated.
    """
    program = in_steps.finished(decode_in_steps(raw, limits))
    check_sizes(program, limits)
    return program


def decode_in_steps(raw: bytes, limits: ProgramLimits) -> InSteps[Program]:
    """Returns what `decode` returns, and raises what it does; but `check_sizes` is left to the caller."""
    if len(raw) > limits.program_bytes:
        raise CaseError("quota_program", f"{len(raw)} bytes exceed limits.program_bytes = {limits.program_bytes}")
    fields, is_canonical = yield from unpacked(raw)
    arrays = arrays_of(fields)
    _check_counts(arrays, limits)
    parts = parts_of(arrays)
    known = (yield from _quickly(parts, raw)) if is_canonical else None
    if known is None:
        yield from read(parts)  # which raises what is wrong, if the parts say so
        raise CaseError("undecodable_frame", "program bytes are not canonical")
    return known


def check_sizes(program: Program, limits: ProgramLimits) -> None:
    """Raises CaseError if an input or result is larger than an array may be, or if there are too many slices."""
    if program.starts > MOST_STARTS:
        raise CaseError("quota_program", f"{program.starts} starts of slices; the most is {MOST_STARTS}")
    largest_bytes = max(map(_size_of, chain(program.inputs, program.distinct)))
    if largest_bytes > limits.array_bytes:
        raise CaseError("quota_array_bytes", _first_too_large(program, limits.array_bytes))


def digest(raw: bytes) -> bytes:
    """Returns the identifier of a program, which is computed from the program's canonical bytes."""
    return blake2b(raw, digest_size=DIGEST_BYTES).digest()


def _check_counts(parts: Arrays, limits: ProgramLimits) -> None:
    """Raises CaseError if a limit is exceeded, or if specs or signatures are more than the program can mention.

    The limit of the operands of all ops also limits inputs and scalars together. If inputs and scalars were more than
    the operands, some of them would not be used.
    """
    inputs, scalars, ops, operands = len(parts.inputs), len(parts.scalars), len(parts.ops), len(parts.operands)
    if not 0 < ops <= limits.program_ops:
        raise CaseError("quota_program", f"{ops} ops; limits.program_ops = {limits.program_ops}")
    most = limits.program_operands
    if operands > most:
        raise CaseError("quota_program", f"{operands} operands of ops; limits.program_operands = {most}")
    if inputs + scalars > most:
        raise CaseError("quota_program", f"{inputs} inputs and {scalars} scalars; limits.program_operands = {most}")
    if inputs + scalars > MOST_LEAVES:
        raise CaseError("quota_program", f"{inputs} inputs and {scalars} scalars; the most is {MOST_LEAVES}")
    if len(parts.live) > ops or len(parts.carried) > 2 * inputs:
        text = f"{len(parts.live)} live results of {ops} ops, {len(parts.carried)} numbers for {inputs} inputs"
        raise CaseError("bad_operand", text)
    if len(parts.live) > MOST_LIVE:
        raise CaseError("quota_program", f"{len(parts.live)} live results; the most is {MOST_LIVE}")
    if len(parts.specs) > inputs + scalars + operands or len(parts.signatures) > ops:
        text = f"{len(parts.specs)} specs and {len(parts.signatures)} signatures are more than the program can mention"
        raise CaseError("undecodable_frame", text)


def _quickly(parts: Parts, raw: bytes) -> InSteps[Program | None]:
    """Returns the program that consists of the `parts` of canonical bytes, or None if the parts have any error.

    Each signature is checked once. A signature that an earlier program had is not checked again.
    """
    try:
        yield from _pause(raw)
        claims = _claims(parts)
        yield from _pause(raw)
        specs = yield from in_steps.mapped(spec_of, parts.specs, SPECS_A_STEP)
        found = yield from _known_signatures(parts.signatures, specs)
    except (CaseError, RequestError, LookupError, TypeError, ValueError):
        return None
    yield from _pause(raw)
    if not _are_in_order(parts, claims) or any(specs[number].shape for number in {*parts.scalars}):
        return None
    yield from _pause(raw)
    counts = np.array(claims.counts, np.int64)[parts.ops]
    ends = np.add.accumulate(counts)
    if ends[-1] != len(parts.operands) or not _are_before(parts, counts):
        return None
    if not _are_as_claimed(parts, claims, _result_numbers(specs, found), ends - counts, counts):
        return None
    program = Program(
        tuple([specs[number] for number in parts.inputs]),
        tuple([specs[number].dtype for number in parts.scalars]),
        tuple(found),
        parts.ops,
        parts.operands,
        ends,
        tuple(parts.live),
        tuple([Carried(*pair) for pair in carried_pairs(parts)]),
    )
    if program.carried:
        check_carried(program.carried, program.specs, len(program.inputs), program.op_count, program.live)
    return program


def _pause(raw: bytes) -> InSteps[None]:
    """Ends a step of a long program."""
    if len(raw) > _LONG_BYTES:
        yield


class _Claims(NamedTuple):
    """Lists the specs that the signatures of a program claim for the operands of ops."""

    specs: list[int]  # spec numbers: the operands of the first signature, then those of the second, and so on
    counts: list[int]  # how many operands each signature has


def _claims(parts: Parts) -> _Claims:
    """Returns the claims of the signatures.

    Raises LookupError, TypeError or ValueError if a signature is malformed.
    """
    items = parts.signatures
    operands = [*map(_operands_of, items)]
    if not _TUPLE.issuperset(map(type, chain(items, operands))):
        raise TypeError
    counts = [*map(len, operands)]
    if sum(counts) > len(parts.operands):  # `_check_counts` has limited `parts.operands`
        raise ValueError
    numbers = [*chain.from_iterable(operands)]
    if not _INTEGER.issuperset(map(type, chain(numbers, map(_code_of, items)))):
        raise TypeError
    if numbers and not 0 <= min(numbers) <= max(numbers) < len(parts.specs):
        raise ValueError
    return _Claims(numbers, counts)


def _known_signatures(items: Sequence[Any], specs: list[Spec]) -> InSteps[list[Signature]]:
    """Returns the signature of each item. Raises LookupError, CaseError or RequestError if an item is no signature."""
    kinds = yield from in_steps.mapped(signatures.kind_of, specs, SPECS_A_STEP)
    kind_of = kinds.__getitem__

    def signature_of(item: Any) -> Signature:
        operands = item[1]
        signature = signatures.known((item[0], signatures.attributes_key(item[2:]), *map(kind_of, operands)))
        if signature is None:
            op = op_of(0, item)
            signature = signatures.signature_of(op, tuple([specs[number] for number in operands]), item[2:])
        return signature

    return (yield from in_steps.mapped(signature_of, items, OPS_A_STEP))


def _are_in_order(parts: Parts, claims: _Claims) -> bool:
    """Returns whether specs and signatures are numbered in order of first mention, and whether live results ascend."""
    live, mentioned = parts.live, dict.fromkeys(chain(parts.inputs, parts.scalars, claims.specs))
    return (
        [*mentioned] == [*range(len(parts.specs))]
        and _are_by_first_use(parts.ops, len(parts.signatures))
        and (not live or (live[-1] < len(parts.ops) and live == sorted({*live})))
    )


def _are_by_first_use(numbers: Integers, count: int) -> bool:
    """Returns whether `numbers` are the numbers below `count`, in ascending order of first occurrence.

    Every number below `count` must occur. The first number must be 0, and the first n must follow the first n − 1.
    """
    highest = np.maximum.accumulate(numbers)
    return bool(highest[0] == 0 and highest[-1] == count - 1 and not np.count_nonzero(highest[1:] - highest[:-1] > 1))


def _are_before(parts: Parts, counts: Integers) -> bool:
    """Returns whether each operand of an op is made before the op. `counts` are the numbers of operands of the ops."""
    first_result = len(parts.inputs) + len(parts.scalars)
    ends = np.arange(first_result, first_result + len(counts)).repeat(counts)
    return not np.count_nonzero(parts.operands >= ends)


def _are_as_claimed(parts: Parts, claims: _Claims, results: list[int], begins: Integers, counts: Integers) -> bool:
    """Returns whether the operands of ops have the specs that the signatures of the ops claim.

    `results` has the spec number of each signature's result. For each op, `begins` has the position of its first
    operand in `parts.operands`, and `counts` has the number of its operands.
    """
    shifts = np.array([*accumulate(claims.counts[:-1], initial=0)], np.int64)[parts.ops] - begins
    claimed = np.array(claims.specs, np.int64)[np.arange(len(parts.operands)) + shifts.repeat(counts)]
    leaves, made = np.array([*parts.inputs, *parts.scalars], np.int64), np.array(results, np.int64)[parts.ops]
    return not np.count_nonzero(np.concatenate((leaves, made))[parts.operands] != claimed)


def _result_numbers(specs: list[Spec], found: list[Signature]) -> list[int]:
    """Returns the spec number of each signature's result.

    If the program does not list the spec of a result, its number is `len(specs)`, which equals no claimed number.
    """
    number_of = {spec: number for number, spec in enumerate(specs)}
    return [number_of.get(signature.result, len(specs)) for signature in found]


def _first_too_large(program: Program, limit_bytes: int) -> str:
    """Returns the error message for the first input or result that is larger than an array may be."""
    specs = program.specs
    number = next(number for number, spec in enumerate(specs) if spec.size_bytes > limit_bytes)
    if number < program.first_result:
        return f"input {number}: {inference.size_beyond(specs[number], limit_bytes)}"
    index = number - program.first_result
    signature = program.signatures[index]
    text = inference.too_large(signature.op, signature.operands, specs[number], limit_bytes)
    return f"op {index} {text}"
