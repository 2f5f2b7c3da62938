"""Encodes recorded structures as programs, and binds values to a program.

A piece is a run of recorded ops that is sent as one segment. A structure is a piece without the numbers that change
from use to use. In this file a value is a scalar or the start of a slice. Encoding runs no Python code for each op:
Python code computes the facts of each signature once, and NumPy copies them to all ops that have the signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from fusewire._recording.cutting.segments import Structure
from fusewire._recording.integer_scans import INSIDE, OUTSIDE, VALUE, places_of_signatures
from fusewire._recording.signature import Signature, signature_of
from fusewire._recording.tape import Integers
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Scalar, Steps
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.parts import Parts, pack


class EncodedProgram(NamedTuple):
    """A program in the form that is sent, and the flags that `bind` uses to sort the values of a use."""

    raw: bytes  # the canonical encoding: equal programs have equal bytes
    live_sizes: tuple[int, ...]  # the bytes of each live result
    cost: Amount  # of a use that does not repeat it
    is_scalar: tuple[bool, ...] = ()  # whether each value in op order is a scalar; empty if no value is a slice start
    is_start: tuple[bool, ...] = ()  # whether each value in op order is a slice start; empty if no value is one


class Bindings(NamedTuple):
    scalars: tuple[Scalar, ...]
    starts: tuple[Scalar, ...]  # the slice starts, which are integers


def encode_program(
    structure: Structure, live: tuple[int, ...], carried: tuple[tuple[int, int], ...] = ()
) -> EncodedProgram:
    """Encodes the program of a new structure. `live`: the indices of the ops with live results.

    Each pair of `carried` is the index of an input, and the cell of what it takes in the next iteration.

    This function does not check shapes and dtypes, because recording has checked them.
    """
    cells = np.frombuffer(structure.key, np.int64)
    ops, live_ops = _ops(cells), np.array(live, np.int64)
    raw = pack(_parts(cells, ops, len(structure.inputs), live, carried))
    live_sizes = tuple([ops.signatures[number].result.spec.size_bytes for number in ops.numbers[live_ops].tolist()])
    cost = Amount(len(ops.numbers), sum(live_sizes), 1)
    if not any(signature.starts for signature in ops.signatures):
        return EncodedProgram(raw, live_sizes, cost)
    is_start = _is_start(ops)
    return EncodedProgram(raw, live_sizes, cost, tuple([not each for each in is_start]), tuple(is_start))


def bind(encoded: EncodedProgram, values: Sequence[Scalar]) -> Bindings:
    """Returns the bindings of one use of the program. `values`: all values of this use, in op order."""
    if not encoded.is_start:
        return Bindings(tuple(values), ())
    return Bindings(tuple(compress(values, encoded.is_scalar)), tuple(compress(values, encoded.is_start)))


class SteppedBindings(NamedTuple):
    scalars: tuple[tuple[int, Steps], ...]
    starts: tuple[tuple[int, Steps], ...]


def bind_stepped(encoded: EncodedProgram, values: Sequence[tuple[int, Steps]]) -> SteppedBindings:
    """Returns the stepped bindings of a loop. `values`: positions among the values of an iteration, each with steps."""
    if not encoded.is_start:
        return SteppedBindings(tuple(values), ())
    scalars = [(sum(encoded.is_scalar[:each]), steps) for each, steps in values if encoded.is_scalar[each]]
    starts = [(sum(encoded.is_start[:each]), steps) for each, steps in values if encoded.is_start[each]]
    return SteppedBindings(tuple(scalars), tuple(starts))


class _Ops(NamedTuple):
    """The ops of a structure."""

    signatures: list[Signature]  # each signature once, in order of first use
    numbers: Integers  # int64[ops], indices into `signatures`
    places: Integers  # int64[ops], the index in the structure at which each op begins


class _Table(NamedTuple):
    """The facts of each signature of a structure.

    A program does not distinguish a scalar from an array of rank 0, but the client's signatures do. So two signatures
    of the client may become one signature of the program.
    """

    specs: list[Spec]  # the specs of all operands, each spec once
    listed: list[tuple[Signature, list[int]]]  # each signature of the program, with its operands' indices into `specs`
    numbers: Integers  # int64[signatures], indices into `listed`
    counts: Integers  # int64[signatures], how many operands each signature has
    operand_specs: Integers  # int64[operands of all signatures], indices into `specs`
    operand_cells: Integers  # int64[operands of all signatures], the index of the operand in a record


def _ops(cells: Integers) -> _Ops:
    places = places_of_signatures(cells)
    numbers = cells[places]
    least = int(numbers.min())
    numbers -= least  # the numbers of a loop lie close together, so arrays indexed by them stay short
    order = _by_first_use(numbers)
    return _Ops([signature_of(least + number) for number in order.tolist()], _ranks(order)[numbers], places)


def _by_first_use(numbers: Integers) -> Integers:
    """Returns each number once, in the order of first occurrence."""
    first_uses = np.full(int(numbers.max(initial=-1)) + 1, len(numbers))
    np.minimum.at(first_uses, numbers, np.arange(len(numbers)))
    used = (first_uses < len(numbers)).nonzero()[0]
    return used[first_uses[used].argsort()]


def _ranks(order: Integers) -> Integers:
    """Returns an array that maps each number in `order` to the index of this number in `order`."""
    ranks = np.empty(int(order.max(initial=-1)) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _is_start(ops: _Ops) -> list[bool]:
    """Returns, for each value in op order, whether it is a slice start. An op's scalars come before its starts."""
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


def _parts(
    cells: Integers, ops: _Ops, inputs: int, live: tuple[int, ...], carried: tuple[tuple[int, int], ...]
) -> Parts:
    """Returns the parts of the program, which `pack` encodes."""
    table = _table(ops.signatures)
    operands, specs = _operands(cells, ops, table)
    outside = (operands >= OUTSIDE).nonzero()[0]
    scalars = (operands == VALUE).nonzero()[0]  # no slice start is found here, because a start is not an operand
    leaves = np.empty(inputs + len(scalars), np.int64)
    leaves[operands[outside] - OUTSIDE] = specs[outside]  # an input has the same spec in all ops that take it
    for number, cell in carried:
        if cell >= OUTSIDE:  # no op may take this input, through which a value passes to the input `number`
            leaves[cell - OUTSIDE] = leaves[number]
    fitting = [(number, cell) for number, cell in sorted(carried) if _fits(table.specs[leaves[number]], cell, ops)]
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
        leaf_numbers[:inputs],
        leaf_numbers[inputs:],
        listed_specs,
        listed_signatures,
        op_numbers,
        numbers,
        live,
        [number for each, cell in fitting for number in (each, _operand_number(cell, len(leaves)))],
    )


def _fits(spec: Spec, cell: int, ops: _Ops) -> bool:
    """Returns whether an input of this spec can take what `cell` holds.

    If not, the body has run once only: its input came from elsewhere, from as far back as in a loop.
    """
    return cell >= OUTSIDE or ops.signatures[int(ops.numbers[cell - INSIDE])].result.spec == spec


def _operand_number(cell: int, leaves: int) -> int:
    """Returns the operand number of a cell that holds an input or a result."""
    return cell - OUTSIDE if cell >= OUTSIDE else leaves + cell - INSIDE


def _operands(cells: Integers, ops: _Ops, table: _Table) -> tuple[Integers, Integers]:
    """Returns the cells of all operands, and the index of each operand's spec in `table.specs`.

    A cell is an integer of the structure. The operands stand in op order, and those of one op keep their order.
    """
    counts = table.counts[ops.numbers]
    ends = np.add.accumulate(counts)
    shifts = (np.add.accumulate(table.counts) - table.counts)[ops.numbers] - (ends - counts)
    entries = np.arange(ends[-1]) + shifts.repeat(counts)
    places = table.operand_cells[entries] + (ops.places + 1).repeat(counts)
    return cells[places], table.operand_specs[entries]


def _listed(table: _Table, order: list[int], spec_numbers: list[int]) -> tuple[list[Any], list[Any]]:
    """Returns the list of specs and the list of signatures, in the form that `pack` encodes."""
    specs = [table.specs[place] for place in order]
    listed_specs = [[spec.dtype.code, *spec.shape] for spec in specs]
    listed_signatures = [
        [signature.op.code, [spec_numbers[place] for place in places], *signature.attributes]
        for signature, places in table.listed
    ]
    return listed_specs, listed_signatures
