"""Signatures: a signature is an op with the specs of its operands and of its result.

A program names the signature of each of its ops. Loops repeat a few signatures, and mostly all programs share the
object of a signature. So a fact about a signature (that its rules hold, or which kernel it has) is computed once, and
is found again by the identity of the object.

Each spec gets a number when it is seen first. A signature is found by the numbers of its operands' specs, because
numbers are faster to look up than specs. Equal signatures may be two objects, because a full cache is emptied, and
because signatures with many operands are not cached. There is no lock: no number is given twice, so a lookup after the
cache was emptied cannot find a wrong signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import msgpack

from fusewire_protos.ops.inference import infer
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Spec

MOST_OPERANDS = 16  # of a signature that is cached
MOST_REMEMBERED = 1 << 12  # specs, and as many signatures

Key = tuple[int | bytes, ...]  # op code, `attributes_key` of the attributes, and `kind_of` each operand
Likeness = tuple[int, bytes, tuple[Spec, ...]]  # op code, `attributes_key` of the attributes, and the operands' specs


class Signature:
    """An op on operands of these specs. Made by `signature_of`. Signatures are compared by identity."""

    __slots__ = ("attributes", "kind", "op", "operands", "result", "size_bytes", "starts")

    def __init__(self, op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> None:
        self.op = op
        self.operands = operands
        self.attributes = attributes
        self.result = infer(op, operands, attributes)
        self.kind = kind_of(self.result)
        self.size_bytes = self.result.size_bytes
        self.starts = op.starts(attributes)  # the number of slice starts that such an op takes

    def __repr__(self) -> str:
        return f"Signature({self.op.name}, {self.operands}, {self.attributes})"


_kinds: dict[Spec, int] = {}
_signatures: dict[Key, Signature] = {}
_next_kind = count()

known = _signatures.get


def kind_of(spec: Spec) -> int:
    """The number of a spec in this process."""
    kind = _kinds.get(spec)
    if kind is not None:
        return kind
    if len(_kinds) >= MOST_REMEMBERED:
        _forget()
    return _kinds.setdefault(spec, next(_next_kind))


def attributes_key(attributes: Sequence[object]) -> bytes:
    """The attributes as bytes, which differ for True, 1 and 1.0. Raises TypeError or ValueError for illegal values."""
    if not attributes:
        return b""
    key: bytes = msgpack.packb(attributes)
    return key


def likeness_of(signature: Signature) -> Likeness:
    """A key that is the same for equal signatures."""
    return signature.op.code, attributes_key(signature.attributes), signature.operands


def signature_of(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> Signature:
    """The signature of these parts. The attributes must be legal.

    Raises ShapeError, DtypeError or ArgumentError if the parts do not fit together.
    """
    if len(operands) > MOST_OPERANDS:
        return Signature(op, operands, attributes)
    key: Key = (op.code, attributes_key(attributes), *map(kind_of, operands))
    found = known(key)
    if found is not None:
        return found
    signature = Signature(op, operands, attributes)
    if len(_signatures) >= MOST_REMEMBERED:
        _forget()
    return _signatures.setdefault(key, signature)


def _forget() -> None:
    _signatures.clear()
    _kinds.clear()
