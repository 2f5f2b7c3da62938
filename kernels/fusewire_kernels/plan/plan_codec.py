"""Encodes plans as msgpack bytes and decodes them, because the planner's processes send plans to the server process.

A column is encoded as a list. The list begins with the index of the column's class in `_COLUMNS`; the fields follow.
A dtype is encoded as its code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from fusewire_kernels.plan.plan import (
    ArenaColumn,
    Column,
    ConstantColumn,
    Cost,
    Donation,
    InputColumn,
    KernelSource,
    Launch,
    OperandRef,
    OutputColumn,
    PersistentLaunch,
    Plan,
    ScalarColumn,
    Term,
    UpdatedArray,
    ViewColumn,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.records import decoded_records, encoded_records

_COLUMNS: tuple[type[Column], ...] = (
    ArenaColumn,
    InputColumn,
    ScalarColumn,
    ConstantColumn,
    OutputColumn,
    ViewColumn,
)


def encode_plan(plan: Plan) -> bytes:
    raw: bytes = msgpack.packb(
        [
            plan.kernels,
            plan.launches,
            [_column_fields(column) for column in plan.columns],
            plan.arena_bytes,
            plan.donations,
            plan.cost,
            encoded_records(plan.records),
            plan.persistent,
            plan.updates,
        ]
    )
    return raw


def decode_plan(raw: bytes) -> Plan:
    """Returns the plan that `encode_plan` encoded. The bytes are not checked, because the sender is trusted."""
    kernels, launches, columns, arena_bytes, donations, cost, records, persistent, updates = msgpack.unpackb(
        raw, use_list=False
    )
    return Plan(
        tuple([KernelSource(*fields) for fields in kernels]),
        tuple([_launch(fields) for fields in launches]),
        tuple([_column(fields) for fields in columns]),
        arena_bytes,
        tuple([Donation(*fields) for fields in donations]),
        Cost(*cost),
        decoded_records(records),
        None if persistent is None else _persistent(persistent),
        tuple([Donation(*fields) for fields in updates]),
    )


def _column_fields(column: Column) -> list[Any]:
    fields = [field.code if isinstance(field, DType) else field for field in column]
    return [_COLUMNS.index(type(column)), *fields]


def _column(fields: Sequence[Any]) -> Column:
    kind, *rest = fields
    made = _COLUMNS[kind]
    if made is ScalarColumn or made is ConstantColumn:
        return made(rest[0], dtypes.from_code(rest[1]))
    if made is ViewColumn:
        base_column, byte_offset, terms = rest
        return ViewColumn(base_column, byte_offset, tuple([Term(*term) for term in terms]))
    column: Column = made(*rest)
    return column


def _launch(fields: Sequence[Any]) -> Launch:
    kernel, sizes, instances = fields
    refs = tuple([tuple([OperandRef(*ref) for ref in instance]) for instance in instances])
    return Launch(kernel, sizes, refs)


def _persistent(fields: Sequence[Any]) -> PersistentLaunch:
    *others, updated, follows = fields
    launch = PersistentLaunch(*others)
    return launch._replace(
        operands=tuple([OperandRef(*ref) for ref in launch.operands]),
        updated=tuple([UpdatedArray(*array) for array in updated]),
        follows=follows,
    )
