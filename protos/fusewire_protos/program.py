"""A program: the structure that segments of work share, and its canonical bytes.

A program says what is computed: ops with local operand numbers, dtypes, sizes, axes, slice lengths and steps, and
which results outlive it. It holds no data and no value that may change from one use to the next: handles, scalars
and slice starts are bindings (see `frames`). Equal programs have equal bytes, so a digest names one.

Operands are numbered: the inputs first, then the scalars, then the result of each op in turn.

Bytes: msgpack, with shortest integers, no maps, strings or extensions:

    [inputs, scalars, ops, live]
    inputs   [[dtype code, dim, …], …]      scalars  [dtype code, …]
    ops      [[op code, [operand, …], attribute, …], …]      live  [op index ascending, …]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import chain, pairwise
from reprlib import repr as shortened
from typing import Any, NamedTuple

import msgpack

from fusewire_protos import catalogue, dtypes, shapes
from fusewire_protos.catalogue import AttributeKind, Attributes, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.errors import ArgumentError, CaseError, DtypeError, RequestError, ShapeError
from fusewire_protos.shapes import Spec

DIGEST_BYTES = 16
_HARMLESS_BYTES = 256  # so few cannot claim lists that take much room before they prove to be cut off

_INTEGER = frozenset((int,))  # not bool, which is a subclass
_TUPLE = frozenset((tuple,))

_MOST_REMEMBERED = 16  # operands of an op, which bounds the memory of what is remembered

_make = tuple.__new__  # of a NamedTuple that every op needs: its own constructor takes twice the time


class ProgramOp(NamedTuple):
    """One op of a program; `operands` are numbers as the module describes."""

    op: Op
    operands: tuple[int, ...]
    attributes: Attributes


@dataclass(frozen=True)
class Program:
    """A well-formed program with every spec inferred. Made by `build` or `decode`, which check it."""

    inputs: tuple[Spec, ...]
    scalars: tuple[DType, ...]
    ops: tuple[ProgramOp, ...]
    live: tuple[int, ...]
    specs: tuple[Spec, ...]  # of every operand number: inputs, scalars, results

    @property
    def first_result(self) -> int:
        """The operand number of the first op's result."""
        return len(self.inputs) + len(self.scalars)

    def result_spec(self, op_index: int) -> Spec:
        return self.specs[self.first_result + op_index]

    @cached_property
    def starts(self) -> int:
        """How many slice starts a binding of this program carries, in op order."""
        return sum(op.starts(attributes) for op, _, attributes in self.ops)

    @cached_property
    def live_bytes(self) -> int:
        """Bytes of all live results."""
        return sum(self.result_spec(index).size_bytes for index in self.live)


class ProgramLimits(NamedTuple):
    """How large a program may be; the names are those of the server's settings."""

    program_ops: int = 8192
    program_operands: int = 32768
    program_bytes: int = 1 << 20
    array_bytes: int = 16 << 30


def build(inputs: Sequence[Spec], scalars: Sequence[DType], ops: Sequence[ProgramOp], live: Sequence[int]) -> Program:
    """A program of these parts. Raises CaseError if the parts do not fit together."""
    specs = _leaf_specs(inputs, scalars)
    for index, op in enumerate(ops):
        specs.append(_infer(index, op, specs))
    _check_live(live, len(ops))
    return Program(tuple(inputs), tuple(scalars), tuple(ops), tuple(live), tuple(specs))


def encode(program: Program) -> bytes:
    """The canonical bytes of a program."""
    inputs = [[spec.dtype.code, *spec.shape] for spec in program.inputs]
    scalars = [dtype.code for dtype in program.scalars]
    ops = [[op.code, operands, *attributes] for op, operands, attributes in program.ops]
    raw: bytes = msgpack.packb([inputs, scalars, ops, program.live])
    return raw


def decode(raw: bytes, limits: ProgramLimits) -> Program:
    """The program of canonical bytes. Raises CaseError for any others, having allocated nothing large."""
    if len(raw) > limits.program_bytes:
        raise CaseError("quota_program", f"{len(raw)} bytes exceed limits.program_bytes = {limits.program_bytes}")
    parts = _parts(raw, limits)
    program = _quickly(parts, limits)
    if program is not None and encode(program) == raw:
        _check_sizes(program, limits)
        return program
    return _carefully(parts, raw, limits)


def digest(raw: bytes) -> bytes:
    """The name of a program among all programs, from its canonical bytes."""
    return blake2b(raw, digest_size=DIGEST_BYTES).digest()


def unpack_bounded(raw: bytes, longest_array: int) -> Any:
    """As `unpack`, for bytes that are short. Raises what msgpack does."""
    return msgpack.unpackb(
        raw,
        use_list=False,
        max_array_len=longest_array,
        max_bin_len=len(raw),
        max_str_len=0,
        max_map_len=0,
        max_ext_len=0,
    )


def unpack(raw: bytes, *, longest_array: int) -> Any:
    """One msgpack value as tuples, ints, floats, bools and bytes. Raises CaseError for anything else."""
    try:
        if len(raw) > _HARMLESS_BYTES:
            _check_whole(raw)
        return unpack_bounded(raw, longest_array)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise CaseError("undecodable_frame", f"not msgpack of the agreed form: {type(error).__name__}") from None


def _check_whole(raw: bytes) -> None:
    """Raises ValueError or UnpackException if `raw` is cut off.

    Unpacking may make room for a list as long as its head says before it sees one item, and a few nested heads would
    take gigabytes. Once every item is known to be there, the room needed is some thirty times `raw`, where lists of one
    byte each become tuples.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(raw), 1))
    unpacker.feed(raw)
    unpacker.skip()


def _leaf_specs(inputs: Sequence[Spec], scalars: Sequence[DType]) -> list[Spec]:
    return [*inputs, *[Spec(dtype, ()) for dtype in scalars]]


def _parts(raw: bytes, limits: ProgramLimits) -> tuple[Any, ...]:
    parts = unpack(raw, longest_array=len(raw))
    if type(parts) is not tuple or len(parts) != 4 or any(type(part) is not tuple for part in parts):
        raise CaseError("undecodable_frame", "a program is a list of four lists")
    if not 0 < len(parts[2]) <= limits.program_ops:
        raise CaseError("quota_program", f"{len(parts[2])} ops; limits.program_ops = {limits.program_ops}")
    _check_operands(parts, limits.program_operands)
    return parts


def _check_operands(parts: tuple[Any, ...], most: int) -> None:
    """Raises CaseError beyond `most`. A program whose ops take no more has no use for more inputs and scalars."""
    inputs, scalars, ops, _ = parts
    taken = sum([len(op[1]) for op in ops if type(op) is tuple and len(op) > 1 and type(op[1]) is tuple])
    if taken > most:
        raise CaseError("quota_program", f"{taken} operands of ops; limits.program_operands = {most}")
    if len(inputs) + len(scalars) > most:
        text = f"{len(inputs)} inputs and {len(scalars)} scalars; limits.program_operands = {most}"
        raise CaseError("quota_program", text)


def _quickly(parts: tuple[Any, ...], limits: ProgramLimits) -> Program | None:
    """The program of the parts, each distinct op checked once; None if anything is wrong with them.

    What is remembered of one program's ops serves the next. True and 1 find the same entry there, so the program is
    that of the parts only if its bytes are theirs.
    """
    inputs, scalars, items, live = parts
    try:
        operands = [item[1] for item in items]
        if not _are_lists_of_numbers(operands):
            return None
        input_specs = tuple([_spec(item, limits) for item in inputs])
        scalar_dtypes = tuple([_dtype(code) for code in scalars])
        specs, ops = _leaf_specs(input_specs, scalar_dtypes), []
        spec_of = specs.__getitem__
        for item, numbers in zip(items, operands, strict=True):
            op, attributes, spec = _known(item[0], item[2:], tuple(map(spec_of, numbers)))
            ops.append(_make(ProgramOp, (op, numbers, attributes)))
            specs.append(spec)
        _check_live(_integers(live, "live"), len(ops))
    except (CaseError, RequestError, LookupError, TypeError):
        return None
    return Program(input_specs, scalar_dtypes, tuple(ops), live, tuple(specs))


def _carefully(parts: tuple[Any, ...], raw: bytes, limits: ProgramLimits) -> Program:
    """The program of the parts, or the CaseError that says what is wrong with them, and where."""
    inputs, scalars, ops, live = parts
    program = build(
        [_spec(item, limits) for item in inputs],
        [_dtype(code) for code in scalars],
        [_op(index, item) for index, item in enumerate(ops)],
        _integers(live, "live"),
    )
    _check_sizes(program, limits)
    if encode(program) != raw:
        raise CaseError("undecodable_frame", "program bytes are not canonical")
    return program


def _are_lists_of_numbers(operands: list[Any]) -> bool:
    """Whether these are lists of numbers from 0 on."""
    if not _TUPLE.issuperset(map(type, operands)):
        return False
    numbers = [*chain.from_iterable(operands)]
    return _INTEGER.issuperset(map(type, numbers)) and min(numbers, default=0) >= 0


@lru_cache(1 << 12)
def _known(code: Any, attributes: Attributes, operands: tuple[Spec, ...]) -> tuple[Op, Attributes, Spec]:
    """An op over operands of these specs and the spec of its result.

    Raises CaseError or RequestError if that is no op, LookupError if it is too long to be remembered.
    """
    if len(operands) > _MOST_REMEMBERED:
        raise LookupError
    op, _, attributes = _op(0, (code, (), *attributes))
    return op, attributes, catalogue.infer(op, operands, attributes)


def _spec(item: Any, limits: ProgramLimits) -> Spec:
    if type(item) is not tuple or not item:
        raise CaseError("undecodable_frame", "an input is a list of a dtype and dims")
    dtype = _dtype(item[0])
    try:
        return Spec(dtype, shapes.check(item[1:]))
    except ShapeError as error:
        raise CaseError("bad_shape", f"input: {error}") from None


def _dtype(code: Any) -> DType:
    try:
        return dtypes.from_code(_integer(code, "dtype"))
    except DtypeError as error:
        raise CaseError("bad_dtype", str(error)) from None


def _op(index: int, item: Any) -> ProgramOp:
    if type(item) is not tuple or len(item) < 2:
        raise CaseError("undecodable_frame", f"op {index} is no list of a code and operands")
    op = catalogue.BY_CODE.get(_integer(item[0], "op code"))
    if op is None:
        raise CaseError("unknown_op", f"op {index} has code {item[0]}, which the catalogue does not hold")
    if len(item) - 2 != len(op.attributes):
        raise CaseError("bad_arity", f"op {index} {op.name} has {len(item) - 2} attributes, not {len(op.attributes)}")
    for attribute, value in zip(op.attributes, item[2:], strict=True):
        if not _is_legal(attribute.kind, value):
            raise CaseError("bad_attribute", f"op {index} {op.name}: {attribute.name} = {shortened(value)}")
    return ProgramOp(op, _integers(item[1], f"operands of op {index}"), item[2:])


def _infer(index: int, op: ProgramOp, specs: list[Spec]) -> Spec:
    known = len(specs)
    for operand in op.operands:
        if not 0 <= operand < known:
            raise CaseError(
                "bad_operand", f"op {index} {op.op.name} has operands {shortened(op.operands)}; {known} are known"
            )
    try:
        return catalogue.infer(op.op, tuple([specs[operand] for operand in op.operands]), op.attributes)
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
            "bad_operand", f"live results {shortened(tuple(live))} are not ascending op indices below {ops}"
        )


def _check_sizes(program: Program, limits: ProgramLimits) -> None:
    if any(spec.size_bytes > limits.array_bytes for spec in dict.fromkeys(program.specs)):
        raise CaseError("quota_array_bytes", _first_too_large(program, limits.array_bytes))


def _first_too_large(program: Program, limit_bytes: int) -> str:
    """What is said of the first operand number that is larger than an array may be."""
    specs = program.specs
    number = next(number for number, spec in enumerate(specs) if spec.size_bytes > limit_bytes)
    if number < program.first_result:
        return f"input {number}: {catalogue.size_beyond(specs[number], limit_bytes)}"
    index = number - program.first_result
    op, operands, _ = program.ops[index]
    text = catalogue.too_large(op, tuple([specs[operand] for operand in operands]), specs[number], limit_bytes)
    return f"op {index} {text}"


def _integer(value: Any, what: str) -> int:
    if type(value) is not int:
        raise CaseError("undecodable_frame", f"{what} {shortened(value)} is no integer")
    return value


def _integers(value: Any, what: str) -> tuple[int, ...]:
    if type(value) is not tuple or not _INTEGER.issuperset(map(type, value)):
        raise CaseError("undecodable_frame", f"{what} are no list of integers")
    return value


def _is_dim(value: Any) -> bool:
    return type(value) is int and 0 <= value <= shapes.MAX_DIM


def _is_axis(value: Any) -> bool:
    return type(value) is int and 0 <= value < shapes.MAX_RANK


def _is_list_of(check: Callable[[Any], bool], value: Any) -> bool:
    return type(value) is tuple and len(value) <= shapes.MAX_RANK and all(check(item) for item in value)


def _is_bounded(value: Any) -> bool:
    return type(value) is int and abs(value) <= shapes.MAX_DIM


_LEGAL: dict[AttributeKind, Callable[[Any], bool]] = {
    AttributeKind.AXIS: _is_axis,
    AttributeKind.AXES: lambda value: _is_list_of(_is_axis, value) and list(value) == sorted(set(value)),
    AttributeKind.DIM: _is_dim,
    AttributeKind.DIMS: lambda value: _is_list_of(_is_dim, value),
    AttributeKind.PERMUTATION: lambda value: _is_list_of(_is_axis, value),
    AttributeKind.STEPS: lambda value: _is_list_of(lambda step: _is_bounded(step) and step != 0, value),
    AttributeKind.INTEGER: _is_bounded,
    AttributeKind.FLAG: lambda value: type(value) is bool,
    AttributeKind.DTYPE: lambda value: type(value) is int and value in dtypes.BY_CODE,
}


def _is_legal(kind: AttributeKind, value: Any) -> bool:
    return _LEGAL[kind](value)
