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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from reprlib import repr as shortened
from typing import Any, NamedTuple

import msgpack

from fusewire_protos import catalogue, dtypes, shapes, signatures
from fusewire_protos.catalogue import AttributeKind, Attributes, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.errors import ArgumentError, CaseError, DtypeError, RequestError, ShapeError
from fusewire_protos.shapes import Spec
from fusewire_protos.signatures import Signature

DIGEST_BYTES = 16
_HARMLESS_BYTES = 256  # so few cannot claim lists that take much room before they prove to be cut off

_INTEGER = frozenset((int,))  # not bool, which is a subclass
_TUPLE = frozenset((tuple,))

_code_of = itemgetter(0)
_operands_of = itemgetter(1)
_result_of = attrgetter("result")
_size_of = attrgetter("size_bytes")


class ProgramOp(NamedTuple):
    """One op of a program; `operands` are numbers as the module describes."""

    op: Op
    operands: tuple[int, ...]
    attributes: Attributes


@dataclass(frozen=True, eq=False)
class Program:
    """A well-formed program with every spec inferred. Made by `build` or `decode`, which check it.

    Two are the same if their bytes are. What only some need is worked out when it is asked for first.
    """

    inputs: tuple[Spec, ...]
    scalars: tuple[DType, ...]
    signatures: tuple[Signature, ...]  # one an op
    operands: tuple[tuple[int, ...], ...]  # of each op, as the module describes
    live: tuple[int, ...]

    @cached_property
    def ops(self) -> tuple[ProgramOp, ...]:
        pairs = zip(self.signatures, self.operands, strict=True)
        return tuple([ProgramOp(signature.op, operands, signature.attributes) for signature, operands in pairs])

    @cached_property
    def specs(self) -> tuple[Spec, ...]:
        """Of every operand number: inputs, scalars, results."""
        return (*_leaf_specs(self.inputs, self.scalars), *map(_result_of, self.signatures))

    @property
    def first_result(self) -> int:
        """The operand number of the first op's result."""
        return len(self.inputs) + len(self.scalars)

    def result_spec(self, op_index: int) -> Spec:
        return self.signatures[op_index].result

    @cached_property
    def starts(self) -> int:
        """How many slice starts a binding of this program carries, in op order."""
        return sum(map(attrgetter("starts"), self.signatures))

    @cached_property
    def live_bytes(self) -> int:
        """Bytes of all live results."""
        return sum([self.signatures[index].size_bytes for index in self.live])

    @cached_property
    def all_bytes(self) -> int:
        """Bytes of inputs, scalars and all results."""
        results_bytes = sum([signature.size_bytes for signature in self.signatures])
        return sum([spec.size_bytes for spec in _leaf_specs(self.inputs, self.scalars)]) + results_bytes


class ProgramLimits(NamedTuple):
    """How large a program may be; the names are those of the server's settings."""

    program_ops: int = 8192
    program_operands: int = 32768
    program_bytes: int = 1 << 20
    array_bytes: int = 16 << 30


def build(inputs: Sequence[Spec], scalars: Sequence[DType], ops: Sequence[ProgramOp], live: Sequence[int]) -> Program:
    """A program of these parts. Raises CaseError if the parts do not fit together."""
    specs, found = _leaf_specs(inputs, scalars), []
    for index, op in enumerate(ops):
        signature = _signature(index, op, specs)
        found.append(signature)
        specs.append(signature.result)
    _check_live(live, len(ops))
    operands = tuple([tuple(op.operands) for op in ops])
    return Program(tuple(inputs), tuple(scalars), tuple(found), operands, tuple(live))


def encode(program: Program) -> bytes:
    """The canonical bytes of a program."""
    listed = [[op.code, operands, *attributes] for op, operands, attributes in program.ops]
    return encode_parts(program.inputs, program.scalars, listed, program.live)


def encode_parts(
    inputs: Iterable[Spec], scalars: Iterable[DType], ops: Sequence[Sequence[Any]], live: Sequence[int]
) -> bytes:
    """The canonical bytes of the program of these parts, which are not checked; `ops` as they are in the bytes."""
    listed_inputs = [[spec.dtype.code, *spec.shape] for spec in inputs]
    listed_scalars = [dtype.code for dtype in scalars]
    raw: bytes = msgpack.packb([listed_inputs, listed_scalars, ops, live])
    return raw


def decode(raw: bytes, limits: ProgramLimits) -> Program:
    """The program of canonical bytes. Raises CaseError for any others, having allocated nothing large."""
    if len(raw) > limits.program_bytes:
        raise CaseError("quota_program", f"{len(raw)} bytes exceed limits.program_bytes = {limits.program_bytes}")
    parts = _parts(raw, limits)
    program = _quickly(parts, raw, limits)
    if program is None:
        return _carefully(parts, raw, limits)
    _check_sizes(program, limits)
    return program


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


def _quickly(parts: tuple[Any, ...], raw: bytes, limits: ProgramLimits) -> Program | None:
    """The program of the parts, each distinct op checked once; None if anything is wrong with them.

    What is known of one program's ops serves the next: nothing is looked into but types and signatures.
    """
    inputs, scalars, items, live = parts
    try:
        operands = tuple(map(_operands_of, items))
        if not _are_ops_of_numbers(items, operands) or msgpack.packb(parts) != raw:
            return None
        input_specs = tuple([_spec(item, limits) for item in inputs])
        scalar_dtypes = tuple([_dtype(code) for code in scalars])
        found = _known_signatures(items, operands, _leaf_specs(input_specs, scalar_dtypes))
        _check_live(_integers(live, "live"), len(found))
    except (CaseError, RequestError, LookupError, TypeError, ValueError):
        return None
    return Program(input_specs, scalar_dtypes, tuple(found), operands, live)


def _known_signatures(items: Sequence[Any], operands: Sequence[tuple[int, ...]], leaves: list[Spec]) -> list[Signature]:
    """The signature of each op. Raises LookupError, CaseError or RequestError if one has none.

    A hot path: all that a new program costs the server for each op is in this loop and in what C code does beside it.
    """
    kinds = [*map(signatures.kind_of, leaves)]
    kind_of, known, append_kind = kinds.__getitem__, signatures.known, kinds.append
    found: list[Signature] = []
    append = found.append
    for item, numbers in zip(items, operands, strict=True):
        key = (item[0], b"" if len(item) == 2 else msgpack.packb(item[2:]), *map(kind_of, numbers))
        signature = known(key)
        if signature is None:
            signature = _new_signature(item, numbers, leaves, found)
        append(signature)
        append_kind(signature.kind)
    return found


def _new_signature(item: Any, numbers: tuple[int, ...], leaves: list[Spec], found: list[Signature]) -> Signature:
    """Of an op on operands that `leaves` and the signatures before it give."""
    first = len(leaves)
    specs = tuple([leaves[number] if number < first else found[number - first].result for number in numbers])
    op, _, attributes = _op(0, (item[0], (), *item[2:]))
    return signatures.signature_of(op, specs, attributes)


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


def _are_ops_of_numbers(items: Sequence[Any], operands: Sequence[Any]) -> bool:
    """Whether these are lists that begin with a number, and lists of numbers from 0 on."""
    if not _TUPLE.issuperset(map(type, chain(items, operands))):
        return False
    numbers = [*chain.from_iterable(operands), *map(_code_of, items)]
    return _INTEGER.issuperset(map(type, numbers)) and min(numbers) >= 0


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


def _signature(index: int, op: ProgramOp, specs: list[Spec]) -> Signature:
    known = len(specs)
    for operand in op.operands:
        if not 0 <= operand < known:
            raise CaseError(
                "bad_operand", f"op {index} {op.op.name} has operands {shortened(op.operands)}; {known} are known"
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
            "bad_operand", f"live results {shortened(tuple(live))} are not ascending op indices below {ops}"
        )


def _check_sizes(program: Program, limits: ProgramLimits) -> None:
    largest_bytes = max(map(_size_of, chain(program.inputs, program.signatures)))
    if largest_bytes > limits.array_bytes:
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
