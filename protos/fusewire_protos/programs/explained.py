"""What a server tells a session of one of its programs: how it runs, and the records of its plan. With its codec."""

from __future__ import annotations

from typing import NamedTuple

import msgpack

from fusewire_protos.programs.records import NO_RECORDS, Records, decoded_records, encoded_records

MOST_EXPLAINED = 1024  # ops, launches, and pairs of ops, so that the answer is made in less than a millisecond


class Launched(NamedTuple):
    """A launch of a plan: the name of its kernel, and how many groups are its instances."""

    kernel: str
    instances: int


class ExplainedProgram(NamedTuple):
    """How a program runs. It tells nothing of who else uses it, nor how often.

    `names` are those of its first ops, at most `MOST_EXPLAINED` of `op_count`. `state` is that of its plan, such as
    "planning" or "loaded", `form` how it has run ("ops", "launches", "graphs" or "persistent"), and `refusal` why it
    has no plan. `row_ns` is the estimated device time of a row; 0 if it is not known. `reasons` are the sentences of
    the records' codes.
    """

    digest: str
    is_fragment: bool
    op_count: int
    names: tuple[str, ...]
    state: str
    form: str
    refusal: str = ""
    why_no_graph: str = ""
    why_not_persistent: str = ""
    row_ns: int = 0
    planning_ns: int = 0
    compiling_ns: int = 0
    launches: tuple[Launched, ...] = ()
    records: Records = NO_RECORDS
    reasons: tuple[tuple[str, str], ...] = ()


def cut_to_limits(records: Records) -> Records:
    """Returns the records of the first ops and launches: `MOST_EXPLAINED` of each at most, none of kernels' texts."""
    unfused = [each for each in records.unfused if max(each.consumer, each.producer) < MOST_EXPLAINED]
    return records._replace(
        ops=records.ops[:MOST_EXPLAINED],
        unfused=tuple(unfused[:MOST_EXPLAINED]),
        separate=records.separate[:MOST_EXPLAINED],
        persistent=records.persistent[:MOST_EXPLAINED],
        values=(),
    )


def encode_explained(program: ExplainedProgram) -> bytes:
    """Returns the bytes of an answer."""
    distinct = {name: number for number, name in enumerate(dict.fromkeys(program.names))}
    numbers = [distinct[name] for name in program.names]
    fields = program._replace(records=(), names=())  # type: ignore[arg-type]
    raw: bytes = msgpack.packb([fields, [*distinct], numbers, encoded_records(program.records)])
    return raw


def decode_explained(raw: bytes) -> ExplainedProgram:
    """Returns the program that `encode_explained` encoded. Raises ValueError or TypeError for other bytes."""
    fields, distinct, numbers, records = msgpack.unpackb(raw, use_list=False)
    program = ExplainedProgram(*fields)
    return program._replace(
        names=tuple([distinct[number] for number in numbers]),
        launches=tuple([Launched(*each) for each in program.launches]),
        records=decoded_records(records),
    )
