"""Reads a program from its parts, op by op, and raises an error that says what is wrong, and where.

The parts come from an untrusted client. `parts` has only checked that they are arrays and lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as shortened
from typing import Any, TypeVar

from fusewire_protos import in_steps
from fusewire_protos.errors import CaseError, DtypeError, ShapeError
from fusewire_protos.in_steps import InSteps
from fusewire_protos.ops import attributes, catalogue, dtypes, shapes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.parts import Parts, carried_pairs
from fusewire_protos.programs.program import OPS_A_STEP, Program, ProgramOp, build_in_steps

SPECS_A_STEP = 128  # a spec takes some 3 µs

_INTEGER = frozenset((int,))  # the exact type: bool is a subclass of int

T = TypeVar("T")


def read(parts: Parts) -> InSteps[Program]:
    """The program of the parts, which may be numbered in any order. Raises CaseError if they are malformed."""
    specs = yield from in_steps.mapped(spec_of, parts.specs, SPECS_A_STEP)
    inputs = [_listed(specs, number, f"input {index} has spec") for index, number in enumerate(parts.inputs)]
    ops, claimed = yield from _claimed_ops(parts, specs)
    program = yield from build_in_steps(inputs, _scalars(parts, specs), ops, parts.live, carried_pairs(parts))
    _check_claimed(program, claimed)
    return program


def spec_of(item: Any) -> Spec:
    """The spec that an item of the list encodes. Raises CaseError."""
    if type(item) is not tuple or not item:
        raise CaseError("undecodable_frame", "a spec is not a list of a dtype and dims")
    dtype = _dtype(item[0])
    try:
        return Spec(dtype, shapes.check(item[1:]))
    except ShapeError as error:
        raise CaseError("bad_shape", str(error)) from None


def op_of(index: int, item: Any) -> Op:
    """The op of an encoded signature, with its attributes checked. Raises CaseError.

    `index` is the index of the first op that uses the signature; error messages name it.
    """
    if type(item) is not tuple or len(item) < 2:
        raise CaseError("undecodable_frame", f"the signature of op {index} is not a list of a code and operands")
    op = catalogue.BY_CODE.get(_integer(item[0], "op code"))
    if op is None:
        raise CaseError("unknown_op", f"op {index} has code {item[0]}, which is not in the catalogue")
    if len(item) - 2 != len(op.attributes):
        raise CaseError("bad_arity", f"op {index} {op.name} has {len(item) - 2} attributes, not {len(op.attributes)}")
    for attribute, value in zip(op.attributes, item[2:], strict=True):
        if not attributes.is_legal(attribute.kind, value):
            raise CaseError("bad_attribute", f"op {index} {op.name}: {attribute.name} = {shortened(value)}")
    return op


def _scalars(parts: Parts, specs: list[Spec]) -> list[DType]:
    found = []
    for index, number in enumerate(parts.scalars):
        dtype, shape = _listed(specs, number, f"scalar {index} has spec")
        if shape:
            raise CaseError("bad_shape", f"scalar {index} has shape {shape}")
        found.append(dtype)
    return found


def _claimed_ops(parts: Parts, specs: list[Spec]) -> InSteps[tuple[list[ProgramOp], list[tuple[Spec, ...]]]]:
    """The ops, and for each op the specs of its operands as its signature claims them."""
    numbers, begin = parts.operands.tolist(), 0
    known: dict[int, tuple[Op, tuple[Spec, ...]]] = {}
    ops: list[ProgramOp] = []
    claimed: list[tuple[Spec, ...]] = []
    for index, number in enumerate(parts.ops.tolist()):
        if index % OPS_A_STEP == OPS_A_STEP - 1:
            yield
        item = _listed(parts.signatures, number, f"op {index} has signature")
        if number not in known:
            known[number] = op_of(index, item), _claimed_specs(index, item[1], specs, most=len(numbers) - begin)
        op, operand_specs = known[number]
        end = begin + len(operand_specs)
        if end > len(numbers):
            raise _too_few(index, len(operand_specs), len(numbers) - begin)
        ops.append(ProgramOp(op, tuple(numbers[begin:end]), item[2:]))
        claimed.append(operand_specs)
        begin = end
    if begin < len(numbers):
        raise CaseError("undecodable_frame", f"{len(numbers)} operands are listed; the ops take {begin}")
    return ops, claimed


def _claimed_specs(index: int, numbers: Any, specs: list[Spec], *, most: int) -> tuple[Spec, ...]:
    """The specs that a signature claims. Raises CaseError for more than `most` operands, before any list is made."""
    what = f"operands of the signature of op {index}"
    if type(numbers) is not tuple or not _INTEGER.issuperset(map(type, numbers)):
        raise CaseError("undecodable_frame", f"{what} are not a list of integers")
    if len(numbers) > most:
        raise _too_few(index, len(numbers), most)
    return tuple([_listed(specs, number, f"{what} have spec") for number in numbers])


def _too_few(index: int, operands: int, left: int) -> CaseError:
    return CaseError("undecodable_frame", f"op {index} has {operands} operands; {left} are left")


def _check_claimed(program: Program, claimed: list[tuple[Spec, ...]]) -> None:
    for index, (signature, operand_specs) in enumerate(zip(program.signatures, claimed, strict=True)):
        if signature.operands != operand_specs:
            text = f"op {index} {signature.op.name} has operands of other specs than its signature"
            raise CaseError("bad_operand", text)


def _listed(items: Sequence[T], number: int, what: str) -> T:
    if not 0 <= number < len(items):
        raise CaseError("undecodable_frame", f"{what} {number}; {len(items)} are listed")
    return items[number]


def _dtype(code: Any) -> DType:
    try:
        return dtypes.from_code(_integer(code, "dtype"))
    except DtypeError as error:
        raise CaseError("bad_dtype", str(error)) from None


def _integer(value: Any, what: str) -> int:
    if type(value) is not int:
        raise CaseError("undecodable_frame", f"{what} {shortened(value)} is not an integer")
    return value
