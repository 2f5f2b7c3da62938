"""Records of what a plan does with each op of its program, and why two ops are not computed together. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

NO_OP = -1


class OpForm(StrEnum):
    """What an op became."""

    KERNELS = "kernels"  # groups compute it
    VIEW = "view"  # it shows elements of another value, which are read where they are
    ASSEMBLY = "assembly"  # a buffer without elements, or one whose parts are read where they are
    CONSTANT = "constant"  # the plan holds its value
    DEAD = "dead"  # no result that is wanted depends on it
    OP_BY_OP = "op_by_op"  # there is no plan: a kernel of its own computes it


class OpRecord(NamedTuple):
    """The groups that compute an op. Groups are numbered in the order of the launches' instances.

    There are none unless the form is KERNELS.
    """

    form: OpForm
    groups: tuple[int, ...] = ()


class Unfused(NamedTuple):
    """Says that `consumer` reads from memory what `producer` computes, and the code of the reason. Both are ops.

    They are one op if that op is computed in several steps.
    """

    consumer: int
    producer: int
    reason: str


class Separate(NamedTuple):
    """Says that a launch and an earlier `other`, for which it does not wait, read one input, and why they are two."""

    launch: int
    other: int
    input: int
    reason: str


class Records(NamedTuple):
    """The records of a plan.

    `ops` has a record for each op, in the form of launches. `persistent` has the same for the persistent kernel of a
    loop, which is one group; it is empty if there is none, and `why_launched` then says why a loop has none. `unfused`
    has each pair of a consumer and a producer once. `updated` are the inputs that iterations change in place.
    `values[group]` has the op of each value that the text of the group's kernel numbers, or NO_OP; it is empty for a
    kernel that numbers none.
    """

    ops: tuple[OpRecord, ...] = ()
    unfused: tuple[Unfused, ...] = ()
    separate: tuple[Separate, ...] = ()
    updated: tuple[int, ...] = ()
    persistent: tuple[OpRecord, ...] = ()
    why_launched: str = ""
    values: tuple[tuple[int, ...], ...] = ()


NO_RECORDS = Records()


def ops_of_groups(ops: Sequence[OpRecord], groups: int) -> list[list[int]]:
    """Returns the ops that each of the first `groups` groups computes, in the order of the program."""
    found: list[list[int]] = [[] for _ in range(groups)]
    for index, record in enumerate(ops):
        for group in record.groups:
            if group < groups:
                found[group].append(index)
    return found


def encoded_records(records: Records) -> list[Any]:
    """Returns records in the form in which msgpack carries them. Equal records of ops are listed once."""
    distinct = {record: number for number, record in enumerate(dict.fromkeys((*records.ops, *records.persistent)))}
    numbers = [[distinct[record] for record in of_form] for of_form in (records.ops, records.persistent)]
    return [
        [*distinct],
        *numbers,
        records.unfused,
        records.separate,
        records.updated,
        records.why_launched,
        records.values,
    ]


def decoded_records(fields: Sequence[Any]) -> Records:
    """Returns the records that `encoded_records` encoded. They are not checked."""
    listed, ops, persistent, unfused, separate, updated, why_launched, values = fields
    distinct = [OpRecord(OpForm(form), tuple(groups)) for form, groups in listed]
    return Records(
        tuple([distinct[number] for number in ops]),
        tuple([Unfused(*each) for each in unfused]),
        tuple([Separate(*each) for each in separate]),
        tuple(updated),
        tuple([distinct[number] for number in persistent]),
        why_launched,
        tuple([tuple(ops) for ops in values]),
    )
