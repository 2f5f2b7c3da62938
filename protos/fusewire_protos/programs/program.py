"""A program: the structure that several segments share.

A program holds its ops, with operand numbers, dtypes, sizes, axes, and the lengths and steps of slices. It also holds
the indices of its live results. It holds no data, and nothing that differs from one use of the program to the next:
handles, scalars and slice starts are bindings (see `frames`).

Operands are numbered: first the inputs, then the scalars, then the results of the ops in order.

A program is the body of a loop if it has *carried* inputs. A carried input takes the value that another operand had in
the iteration before: a live result, or another input, which may be carried too. So a value of several iterations before
passes through several inputs. In the first iteration a carried input takes what the segment binds, as every input does.

A loop repeats a few signatures. So a program holds each signature once, and its ops as arrays of numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from reprlib import repr as shortened
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_protos import in_steps
from fusewire_protos.errors import ArgumentError, CaseError, DtypeError, ShapeError
from fusewire_protos.in_steps import InSteps
from fusewire_protos.ops import signatures
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import Signature

Integers = npt.NDArray[np.int64]

MOST_LAG = 8  # the most iterations over which a value is carried
OPS_A_STEP = 32  # a new signature takes some 20 µs


class ProgramOp(NamedTuple):
    """One op of a program; `operands` are operand numbers as defined above."""

    op: Op
    operands: tuple[int, ...]
    attributes: Attributes


class Carried(NamedTuple):
    """Says that input number `input` takes the value that operand number `source` had in the iteration before."""

    input: int
    source: int


class Origin(NamedTuple):
    """Where a carried input takes its value from.

    In iteration t it takes what the segment binds to input number `initial[t]`, as long as there is one. Then it takes
    the value of operand number `source`, a live result or an input that is not carried, of `len(initial)` iterations
    before.
    """

    initial: tuple[int, ...]
    source: int


class Users(NamedTuple):
    """The users of all operand numbers, one after another: those of operand n end at `ends[n + 1]`."""

    ends: array[int]
    numbers: array[int]

    def of(self, operand: int) -> array[int]:
        """Returns the operand numbers of the results whose ops take this operand, ascending."""
        return self.numbers[self.ends[operand] : self.ends[operand + 1]]


@dataclass(frozen=True, eq=False)
class Program:
    """A well-formed program with all specs inferred. Made by `build` or `codec.decode`, which check it.

    `==` compares instances by identity. Two programs are equal if their encoded bytes are equal. Cached
    properties are computed at first use.
    """

    inputs: tuple[Spec, ...]
    scalars: tuple[DType, ...]
    distinct: tuple[Signature, ...]  # the signatures of all ops, each once, in order of first use
    signature_numbers: Integers  # int64[ops], indices into `distinct`
    operand_numbers: Integers  # int64[operands of all ops]
    operand_ends: Integers  # int64[ops], the end of each op's operands in `operand_numbers`
    live: tuple[int, ...]
    carried: tuple[Carried, ...] = ()  # by input, ascending

    @property
    def op_count(self) -> int:
        return len(self.signature_numbers)

    @cached_property
    def signatures(self) -> tuple[Signature, ...]:
        """The signature of each op."""
        return tuple(map(self.distinct.__getitem__, self.signature_numbers.tolist()))

    @property
    def op_names(self) -> list[str]:
        """The name of each op."""
        names = [signature.op.name for signature in self.distinct]
        return [names[number] for number in self.signature_numbers.tolist()]

    @cached_property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """The operand numbers of each op."""
        numbers = tuple(self.operand_numbers.tolist())
        return tuple([numbers[begin:end] for begin, end in pairwise((0, *self.operand_ends.tolist()))])

    @cached_property
    def users(self) -> Users:
        """For each operand number those of the results whose ops take it, ascending."""
        counts = np.diff(self.operand_ends, prepend=0)
        takers = np.repeat(np.arange(self.op_count) + self.first_result, counts)
        order = np.argsort(self.operand_numbers, kind="stable")
        taken = np.bincount(self.operand_numbers, minlength=self.first_result + self.op_count)
        ends = np.concatenate(([0], np.cumsum(taken)))
        return Users(array("i", ends.astype(np.intc).tobytes()), array("i", takers[order].astype(np.intc).tobytes()))

    @cached_property
    def ops(self) -> tuple[ProgramOp, ...]:
        pairs = zip(self.signatures, self.operands, strict=True)
        return tuple([ProgramOp(signature.op, operands, signature.attributes) for signature, operands in pairs])

    @cached_property
    def specs(self) -> tuple[Spec, ...]:
        """The spec of every operand number: inputs, scalars, results."""
        return (*self.leaves, *[signature.result for signature in self.signatures])

    @property
    def leaves(self) -> list[Spec]:
        """The specs of the inputs and the scalars."""
        return _leaf_specs(self.inputs, self.scalars)

    @property
    def first_result(self) -> int:
        """The operand number of the first op's result."""
        return len(self.inputs) + len(self.scalars)

    def result_spec(self, op_index: int) -> Spec:
        return self.distinct[int(self.signature_numbers[op_index])].result

    def op_name(self, index: int) -> str:
        """The name of an op."""
        return self.distinct[int(self.signature_numbers[index])].op.name

    @cached_property
    def origins(self) -> dict[int, Origin]:
        """The origin of each carried input, by the input's number."""
        source_of = dict(self.carried)
        chains = {number: _initial(number, source_of) for number in source_of}
        return {number: Origin(tuple(chain_), source_of[chain_[-1]]) for number, chain_ in chains.items()}

    @cached_property
    def starts(self) -> int:
        """The number of slice starts that a use of this program binds."""
        return self._sum(lambda signature: signature.starts, self.signature_numbers)

    @cached_property
    def sliced(self) -> tuple[tuple[int, Signature], ...]:
        """The index and the signature of each op that takes slice starts."""
        are_sliced = np.array([signature.starts > 0 for signature in self.distinct])[self.signature_numbers]
        indices = np.flatnonzero(are_sliced).tolist()
        return tuple([(index, self.distinct[self.signature_numbers[index]]) for index in indices])

    @cached_property
    def live_positions(self) -> dict[int, int]:
        """The position of each live result among the live results, by the index of its op."""
        return {index: position for position, index in enumerate(self.live)}

    @cached_property
    def lags(self) -> dict[int, int]:
        """For each op with a carried result, over how many iterations the result is carried at most."""
        lags: dict[int, int] = {}
        for initial, source in self.origins.values():
            index = source - self.first_result
            lags[index] = max(lags.get(index, 0), len(initial))
        return lags

    @cached_property
    def live_specs(self) -> tuple[Spec, ...]:
        """The spec of each live result."""
        return tuple([self.result_spec(index) for index in self.live])

    @cached_property
    def live_sizes(self) -> tuple[int, ...]:
        """Bytes of each live result."""
        return tuple([spec.size_bytes for spec in self.live_specs])

    @cached_property
    def live_bytes(self) -> int:
        """Bytes of all live results."""
        return self._sum(lambda signature: signature.size_bytes, self.signature_numbers[[*self.live]])

    @cached_property
    def all_bytes(self) -> int:
        """Bytes of inputs, scalars and all results."""
        results_bytes = self._sum(lambda signature: signature.size_bytes, self.signature_numbers)
        return sum([spec.size_bytes for spec in self.leaves]) + results_bytes

    def _sum(self, figure: Callable[[Signature], int], numbers: Integers) -> int:
        """The sum of `figure` over the signatures with these numbers. A number may occur several times.

        The sum is a Python integer, because that does not overflow.
        """
        uses = np.bincount(numbers, minlength=len(self.distinct)).tolist()
        return sum([figure(signature) * count for signature, count in zip(self.distinct, uses, strict=True)])


def build(
    inputs: Sequence[Spec],
    scalars: Sequence[DType],
    ops: Sequence[ProgramOp],
    live: Sequence[int],
    carried: Sequence[tuple[int, int]] = (),
) -> Program:
    """A program of these parts. Raises CaseError if the parts do not fit together."""
    return in_steps.finished(build_in_steps(inputs, scalars, ops, live, carried))


def build_in_steps(
    inputs: Sequence[Spec],
    scalars: Sequence[DType],
    ops: Sequence[ProgramOp],
    live: Sequence[int],
    carried: Sequence[tuple[int, int]] = (),
) -> InSteps[Program]:
    """Does what `build` does, in steps."""
    specs, found = _leaf_specs(inputs, scalars), []
    for index, op in enumerate(ops):
        if index % OPS_A_STEP == OPS_A_STEP - 1:
            yield
        signature = _signature(index, op, specs)
        found.append(signature)
        specs.append(signature.result)
    _check_live(live, len(ops))
    check_carried(carried, specs, len(inputs), len(ops), live)
    distinct, numbers = _distinct(found)
    return Program(
        tuple(inputs),
        tuple(scalars),
        distinct,
        np.array(numbers, np.int64),
        np.array([*chain.from_iterable([op.operands for op in ops])], np.int64),
        np.cumsum([len(op.operands) for op in ops], dtype=np.int64),
        tuple(live),
        tuple([Carried(*pair) for pair in carried]),
    )


def check_carried(
    carried: Sequence[tuple[int, int]], specs: Sequence[Spec], inputs: int, results: int, live: Sequence[int]
) -> None:
    """Raises CaseError unless the pairs of input and source are those of a loop's body.

    `specs` are the specs of all operands: of `inputs` inputs, of the scalars, and of `results` results.
    """
    first_result = len(specs) - results
    source_of, computed = dict(carried), frozenset(live)
    if len(source_of) < len(carried) or [*source_of] != sorted(source_of):
        raise CaseError("bad_operand", f"the carried inputs {shortened([*source_of])} are not in ascending order")
    for number, source in carried:
        if number >= inputs or source >= len(specs) or inputs <= source < first_result:
            raise CaseError("bad_operand", f"operand {source} cannot be carried to input {number}")
        if source >= first_result and source - first_result not in computed:
            raise CaseError("bad_operand", f"result {source - first_result} is carried to input {number}, but not live")
        if specs[source] != specs[number]:
            text = f"input {number} is {specs[number]}; operand {source}, which is carried to it, is {specs[source]}"
            raise CaseError("bad_shape", text)
    for number in source_of:
        if len(_initial(number, source_of)) > MOST_LAG:
            raise CaseError("bad_operand", f"input {number} takes a value of more than {MOST_LAG} iterations before")


def _initial(number: int, source_of: dict[int, int]) -> list[int]:
    """The inputs through which a value passes on its way to a carried input. At most one more than `MOST_LAG`."""
    passed = [number]
    while source_of[passed[-1]] in source_of and len(passed) <= MOST_LAG:
        passed.append(source_of[passed[-1]])
    return passed


def _leaf_specs(inputs: Sequence[Spec], scalars: Sequence[DType]) -> list[Spec]:
    return [*inputs, *[Spec(dtype, ()) for dtype in scalars]]


def _signature(index: int, op: ProgramOp, specs: list[Spec]) -> Signature:
    known = len(specs)
    for operand in op.operands:
        if not 0 <= operand < known:
            raise CaseError(
                "bad_operand",
                f"op {index} {op.op.name} has operands {shortened(op.operands)}, but only those below {known} exist",
            )
    try:
        return signatures.signature_of(op.op, tuple([specs[operand] for operand in op.operands]), op.attributes)
    except ShapeError as error:
        raise CaseError("bad_shape", f"op {index} {error}") from None
    except DtypeError as error:
        raise CaseError("bad_dtype", f"op {index} {error}") from None
    except ArgumentError as error:
        raise CaseError("bad_arity", f"op {index} {error}") from None


def _check_live(live: Sequence[int], ops: int) -> None:
    ascending = all(a < b for a, b in pairwise(live))
    if not ascending or any(not 0 <= index < ops for index in live):
        raise CaseError(
            "bad_operand",
            f"the live results {shortened(tuple(live))} must be op indices in ascending order, each below {ops}",
        )


def _distinct(found: list[Signature]) -> tuple[tuple[Signature, ...], list[int]]:
    """The distinct signatures in order of first use, and for each of `found` its index among these.

    Two objects among `found` may be equal signatures: they get the same index.
    """
    first: dict[signatures.Likeness, Signature] = {}
    same = {each: first.setdefault(signatures.likeness_of(each), each) for each in dict.fromkeys(found)}
    numbers = {each: number for number, each in enumerate(first.values())}
    return tuple(numbers), [numbers[same[each]] for each in found]
