"""What a session keeps of a structure: the bytes of its program, and how values are bound to it.

Nothing per op runs in Python: what the ops of a signature have in common is worked out once for each, and spread over
the ops in a few steps over arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from fusewire._recording.segments import INSIDE, OUTSIDE, VALUE, Structure
from fusewire._recording.signature import Signature, signature_of
from fusewire._recording.tape import Integers, places_of_signatures
from fusewire_protos.frames import Scalar
from fusewire_protos.program_parts import Parts, pack
from fusewire_protos.shapes import Spec


class EncodedProgram(NamedTuple):
    """A program as the client keeps it: what it takes to send it, and to bind it again."""

    raw: bytes
    live_bytes: int
    is_scalar: tuple[bool, ...] = ()  # of each value in op order; empty if all are
    is_start: tuple[bool, ...] = ()  # likewise


class Bindings(NamedTuple):
    scalars: tuple[Scalar, ...]
    starts: tuple[Scalar, ...]  # whole, and among the scalars on the tape


def encode_program(structure: Structure, live: tuple[int, ...]) -> EncodedProgram:
    """Builds the program of a structure met for the first time. Runs no rule: recording ran them all."""
    cells = np.frombuffer(structure.key, np.int64)
    ops, live_ops = _ops(cells), np.array(live, np.int64)
    raw = pack(_parts(cells, ops, len(structure.inputs), live))
    uses = np.bincount(ops.numbers[live_ops], minlength=len(ops.signatures)).tolist()
    kept = zip(ops.signatures, uses, strict=True)
    live_bytes = sum([signature.result.spec.size_bytes * count for signature, count in kept if count])
    if not any(signature.starts for signature in ops.signatures):
        return EncodedProgram(raw, live_bytes)
    is_start = _is_start(ops)
    return EncodedProgram(raw, live_bytes, tuple([not each for each in is_start]), tuple(is_start))


def bind(encoded: EncodedProgram, values: Sequence[Scalar]) -> Bindings:
    """`values`: those of the piece in op order."""
    if not encoded.is_start:
        return Bindings(tuple(values), ())
    return Bindings(tuple(compress(values, encoded.is_scalar)), tuple(compress(values, encoded.is_start)))


class _Ops(NamedTuple):
    """The ops of a structure."""

    signatures: list[Signature]  # those that differ, in order of first use
    numbers: Integers  # int64[ops], places in `signatures`
    places: Integers  # int64[ops], where in the structure each begins


class _Table(NamedTuple):
    """What signatures have in common with all ops that have them.

    Two that differ may be one to the program, which does not tell a scalar from an array without dims.
    """

    specs: list[Spec]  # of all operands, each once
    listed: list[tuple[Signature, list[int]]]  # each that differs to the program, with its operands' places in `specs`
    numbers: Integers  # int64[signatures], places in `listed`
    counts: Integers  # int64[signatures], how many operands each has
    operand_specs: Integers  # int64[operands of all signatures], places in `specs`
    operand_cells: Integers  # likewise, where in a record


def _ops(cells: Integers) -> _Ops:
    places = places_of_signatures(cells)
    numbers = cells[places]
    least = int(numbers.min())
    numbers -= least  # those of a loop are mostly near one another
    order = _by_first_use(numbers)
    return _Ops([signature_of(least + number) for number in order.tolist()], _ranks(order)[numbers], places)


def _by_first_use(numbers: Integers) -> Integers:
    """Each of the numbers once, in the order in which they come first."""
    first_uses = np.full(int(numbers.max(initial=-1)) + 1, len(numbers))
    np.minimum.at(first_uses, numbers, np.arange(len(numbers)))
    used = (first_uses < len(numbers)).nonzero()[0]
    return used[first_uses[used].argsort()]


def _ranks(order: Integers) -> Integers:
    """Of each number that is there, where in the order it stands."""
    ranks = np.empty(int(order.max(initial=-1)) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _is_start(ops: _Ops) -> list[bool]:
    """Of each value in op order: those of an op are its scalars and then its starts."""
    counts = np.array([(len(signature.scalars), signature.starts) for signature in ops.signatures], np.int64)
    flags: list[bool] = np.tile((False, True), len(ops.numbers)).repeat(counts[ops.numbers].ravel()).tolist()
    return flags


def _table(signatures: list[Signature]) -> _Table:
    specs: dict[Spec, int] = {}
    known: dict[tuple[object, ...], int] = {}
    listed: list[tuple[Signature, list[int]]] = []
    numbers, operands = [], []
    for signature in signatures:
        places = [specs.setdefault(spec, len(specs)) for spec in signature.specs]
        number = known.setdefault((signature.op.code, tuple(places), signature.attributes), len(listed))
        if number == len(listed):
            listed.append((signature, places))
        numbers.append(number)
        operands.append(places)
    return _Table(
        [*specs],
        listed,
        np.array(numbers, np.int64),
        np.array([*map(len, operands)], np.int64),
        np.array([*chain.from_iterable(operands)], np.int64),
        np.array([*chain.from_iterable([signature.cells for signature in signatures])], np.int64),
    )


def _parts(cells: Integers, ops: _Ops, inputs: int, live: tuple[int, ...]) -> Parts:
    """The parts of the program."""
    table = _table(ops.signatures)
    operands, specs = _operands(cells, ops, table)
    outside = (operands >= OUTSIDE).nonzero()[0]
    scalars = (operands == VALUE).nonzero()[0]  # starts are values too, but no operands
    leaves = np.empty(inputs + len(scalars), np.int64)
    leaves[operands[outside] - OUTSIDE] = specs[outside]  # the same for all ops that take an input
    leaves[inputs:] = specs[scalars]
    numbers = operands + (len(leaves) - INSIDE)
    numbers[outside] = operands[outside] - OUTSIDE
    numbers[scalars] = np.arange(inputs, len(leaves))
    mentioned = [*chain.from_iterable([places for _, places in table.listed])]
    order = _by_first_use(np.concatenate((leaves, np.array(mentioned, np.int64))))
    spec_numbers = _ranks(order)
    leaf_numbers, op_numbers = spec_numbers[leaves].tolist(), table.numbers[ops.numbers]
    listed_specs, listed_signatures = _listed(table, order.tolist(), spec_numbers.tolist())
    return Parts(
        leaf_numbers[:inputs], leaf_numbers[inputs:], listed_specs, listed_signatures, op_numbers, numbers, live
    )


def _operands(cells: Integers, ops: _Ops, table: _Table) -> tuple[Integers, Integers]:
    """Of all ops behind one another, in the op's order and not the record's: the cells, and the places of the specs."""
    counts = table.counts[ops.numbers]
    ends = np.add.accumulate(counts)
    shifts = (np.add.accumulate(table.counts) - table.counts)[ops.numbers] - (ends - counts)
    entries = np.arange(ends[-1]) + shifts.repeat(counts)
    places = table.operand_cells[entries] + (ops.places + 1).repeat(counts)
    return cells[places], table.operand_specs[entries]


def _listed(table: _Table, order: list[int], spec_numbers: list[int]) -> tuple[list[Any], list[Any]]:
    """The lists of specs and of signatures, as they are in the bytes."""
    specs = [table.specs[place] for place in order]
    listed_specs = [[spec.dtype.code, *spec.shape] for spec in specs]
    listed_signatures = [
        [signature.op.code, [spec_numbers[place] for place in places], *signature.attributes]
        for signature, places in table.listed
    ]
    return listed_specs, listed_signatures
