"""Signatures: an op with the specs of its operands and result, mostly one object for all programs that have it.

A program names the signature of each of its ops. What is worked out for one (its rules checked, its kernel found) is
then found again by identity for every op and program that share it: loops repeat a few.

Specs are numbered as they come, and a signature is found by the numbers of its operands, which are faster to look up
than specs. Of signatures that equal one another there may be two all the same: when many are remembered all are
forgotten, and ops of many operands never are remembered. There is no lock: numbers are never given twice, so whoever
forgets leaves nothing behind that could be mistaken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import msgpack

from fusewire_protos.catalogue import Attributes, Op, infer
from fusewire_protos.shapes import Spec

MOST_OPERANDS = 16  # of an op that is remembered
MOST_REMEMBERED = 1 << 12

Key = tuple[int | bytes, ...]  # op code, attributes as `attributes_key` tells them, and the kinds of the operands
Likeness = tuple[int, bytes, tuple[Spec, ...]]  # likewise, with the operands themselves


class Signature:
    """An op on operands of these specs. Made by `signature_of`, which runs the op's rules; compared by identity."""

    __slots__ = ("attributes", "kind", "op", "operands", "result", "size_bytes", "starts")

    def __init__(self, op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> None:
        self.op = op
        self.operands = operands
        self.attributes = attributes
        self.result = infer(op, operands, attributes)
        self.kind = kind_of(self.result)
        self.size_bytes = self.result.size_bytes
        self.starts = op.starts(attributes)  # how many slice starts a use of it takes

    def __repr__(self) -> str:
        return f"Signature({self.op.name}, {self.operands}, {self.attributes})"


_kinds: dict[Spec, int] = {}
_signatures: dict[Key, Signature] = {}
_next_kind = count()

known = _signatures.get


def kind_of(spec: Spec) -> int:
    """The number of a spec."""
    kind = _kinds.get(spec)
    if kind is not None:
        return kind
    if len(_kinds) >= MOST_REMEMBERED:
        _forget()
    return _kinds.setdefault(spec, next(_next_kind))


def attributes_key(attributes: Sequence[object]) -> bytes:
    """Tells True, 1 and 1.0 apart, as equality does not. Raises TypeError or ValueError for what never travels."""
    if not attributes:
        return b""
    key: bytes = msgpack.packb(attributes)
    return key


def likeness_of(signature: Signature) -> Likeness:
    """What those have in common that are equal."""
    return signature.op.code, attributes_key(signature.attributes), signature.operands


def signature_of(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> Signature:
    """The signature of legal attributes. Raises ShapeError, DtypeError or ArgumentError if the parts do not fit."""
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
