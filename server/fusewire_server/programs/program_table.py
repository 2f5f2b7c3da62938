"""Keeps the known programs, how each can run now, and when each is worth compiling. No I/O.

A program holds no data, so all sessions share one table. The table's keys are digests that the server computes from the
canonical bytes of the programs. A program runs at tier 0 (op by op) from its first use, and at tier 1 once its plan is
loaded. A fragment is compiled only after it has been used `promote_fragment_after` times.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, MutableSet, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from fusewire_kernels.ops.small_matrices import library_ops
from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.programs.codec import digest
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import Program
from fusewire_server.config.config import Config
from fusewire_server.programs.outline import Outline
from fusewire_server.programs.program_quota import ProgramQuota
from fusewire_server.programs.row_cost import RowCost
from fusewire_server.programs.structure import inputs_of, structure_of

if TYPE_CHECKING:
    from fusewire_kernels.devices.base import LoadedPlan
    from fusewire_kernels.plan.plan import Plan


# The approximate bytes that parts of a decoded program take; a test compares their sum with measurements.
OP_BYTES, OPERAND_BYTES, LEAF_BYTES = 176, 40, 16  # an op, each of its operands, an input or a scalar
SIGNATURE_BYTES, SPEC_BYTES = 512, 192  # for each distinct op with its operand specs, and for each distinct input
ENTRY_BYTES = 3072  # for the entry, and for showing it
ROW_BYTES, REFERENCE_BYTES = 336, 8  # for a row of it in flight, and for each input, result, scalar and start of that
# The same of a plan: in all, for each launch, each column of its slot table, each record of an op and each of two ops.
# The kernels' text comes on top.
PLAN_BYTES, LAUNCH_BYTES, COLUMN_BYTES, RECORD_BYTES, PAIR_BYTES = 2560, 704, 312, 64, 192


class PlanState(Enum):
    """The progress of compiling a program."""

    UNPLANNED = "unplanned"
    PLANNING = "planning"
    LOADING = "loading"
    LOADED = "loaded"
    REFUSED = "refused"  # by the planner or the device; the program stays at tier 0


class Needs(NamedTuple):
    """What a segment takes: the session's credit, and values that its results are written to."""

    amount: Amount
    lengths: Sequence[int]  # how many values each live result has
    size_bytes: int  # of all these values
    values: int


@dataclass(eq=False)
class ProgramEntry:
    """One program, its plans, and its counts. Owned by the engine thread unless said otherwise."""

    digest: bytes
    raw: bytes
    program: Program
    is_fragment: bool
    state: PlanState = PlanState.UNPLANNED
    loaded: LoadedPlan | None = None
    uses: int = 0
    plan_bytes: int = 0  # the approximate bytes that its plan takes in memory
    holders: int = 0  # how many times sessions have numbered it and not let go of it
    rows: int = 0
    submissions: int = 0
    rows_per_submission: Counter[int] = field(default_factory=Counter)
    cost: RowCost = field(default_factory=RowCost)  # of submissions at the current tier
    planning_ns: int = 0
    compiling_ns: int = 0
    refusal: str = ""  # why it has no plan
    refusals: int = 0  # how often the machine, and not the program, was to blame for that
    # The table's set of entries to show again.
    changed: MutableSet[ProgramEntry] = field(default_factory=set, repr=False)

    @cached_property
    def size_bytes(self) -> int:
        """The approximate bytes that the program takes in memory without plans."""
        program = self.program
        ops_bytes = OP_BYTES * program.op_count + OPERAND_BYTES * len(program.operand_numbers)
        leaves_bytes = LEAF_BYTES * program.first_result + SPEC_BYTES * len({*map(id, program.inputs)})
        return ENTRY_BYTES + len(self.raw) + SIGNATURE_BYTES * len(program.distinct) + ops_bytes + leaves_bytes

    @property
    def held_bytes(self) -> int:
        """The approximate bytes that the program takes in memory with its plan."""
        return self.size_bytes + self.plan_bytes

    @cached_property
    def structure(self) -> str:
        """What it has in common with programs for other sizes."""
        return structure_of(self.program)

    @cached_property
    def input_texts(self) -> tuple[str, ...]:
        """The dtypes and shapes of its first inputs."""
        return inputs_of(self.program)

    @cached_property
    def amount(self) -> Amount:
        """The session credit that a segment of the program takes."""
        return Amount(self.program.op_count, self.program.live_bytes, 1)

    @cached_property
    def needs(self) -> Needs:
        """What a segment of the program takes that does not repeat."""
        live = len(self.program.live)
        return Needs(self.amount, (1,) * live, self.program.live_bytes, live)

    @cached_property
    def outline(self) -> Outline:
        """What the failures of its results need of the program."""
        return Outline.of(self.program)

    @cached_property
    def row_bytes(self) -> int:
        """The approximate bytes that a row takes in memory without its values, if it is no loop."""
        program = self.program
        return ROW_BYTES + REFERENCE_BYTES * (program.first_result + len(program.live) + program.starts)

    @property
    def row_ns(self) -> int:
        """The estimated device time of a row, in ns; 0 before it has run at the current tier."""
        return self.cost.row_ns

    @property
    def tier(self) -> int:
        return 1 if self.loaded is not None else 0

    def enter(self, state: PlanState) -> None:
        """Notes how far compiling has come."""
        self.state = state
        self.changed.add(self)

    def ran(self, rows: int) -> None:
        """Counts a submission with this number of rows."""
        self.rows += rows
        self.submissions += 1
        self.rows_per_submission[bucket(rows)] += 1
        self.changed.add(self)


class TableBounds(NamedTuple):
    """The most programs that no session holds, the most bytes of all programs, and the most that one session holds."""

    programs: int
    table_bytes: int = sys.maxsize
    session_bytes: int = sys.maxsize

    @property
    def tenant_bytes(self) -> int:
        """The most bytes of the programs of one tenant: half of all bytes, so that there is room for other tenants."""
        return self.table_bytes // 2


@dataclass(eq=False)
class ProgramTable:
    """All known programs. Beyond the bounds it drops programs that no session holds, the least recently used first.

    The cost of adding a program does not depend on the number of programs.
    """

    limits: ProgramLimits
    promote_fragment_after: int
    bounds: TableBounds
    quota: ProgramQuota = field(default_factory=lambda: ProgramQuota(lambda session: session))
    entries: dict[bytes, ProgramEntry] = field(default_factory=dict)
    size_bytes: int = 0  # of all entries
    hits: int = 0  # programs that came and were known
    misses: int = 0
    evictions: int = 0
    # New or used entries of the table. The publisher of snapshots empties the set, but maybe nobody asks for snapshots.
    changed: set[ProgramEntry] = field(default_factory=set)
    _unheld: OrderedDict[bytes, ProgramEntry] = field(default_factory=OrderedDict)  # the entry used last stands last

    def find(self, raw: bytes, *, is_fragment: bool) -> ProgramEntry | None:
        """Returns the entry of canonical program bytes, if they are known."""
        entry = self.entries.get(digest(raw))
        if entry is None:
            return None
        self.hits += 1
        if entry.is_fragment and not is_fragment:
            entry.is_fragment = False
            self.changed.add(entry)
        if entry.holders == 0:
            self._unheld.move_to_end(entry.digest)
        return entry

    def add(self, raw: bytes, program: Program, *, is_fragment: bool) -> ProgramEntry:
        """Returns the entry of a program that was read from its canonical bytes."""
        known = self.find(raw, is_fragment=is_fragment)  # another session may have brought it meanwhile
        if known is not None:
            return known
        self.misses += 1
        entry = ProgramEntry(digest(raw), raw, program, is_fragment, changed=self.changed)
        if of_library := library_ops(program):
            entry.state = PlanState.REFUSED
            entry.refusal = f"{', '.join(of_library)}: the array library computes it, so the program runs op by op"
        self.entries[entry.digest] = self._unheld[entry.digest] = entry
        self.size_bytes += entry.held_bytes
        self.changed.add(entry)
        self._evict()
        return entry

    def hold(self, session: Hashable, entry: ProgramEntry) -> None:
        """Keeps a program that a session has numbered until the session lets go of it.

        Raises CaseError beyond the bounds.
        """
        self._check_room(session, entry)
        self.quota.add(session, entry, entry.size_bytes, entry.plan_bytes)
        entry.holders += 1
        self._unheld.pop(entry.digest, None)

    def let_go(self, session: Hashable, entry: ProgramEntry) -> int:
        """Releases a program that a session has held. Returns the bytes of the programs that its tenant still holds."""
        entry.holders -= 1
        tenant_bytes = self.quota.remove(session, entry, entry.size_bytes, entry.plan_bytes)
        if entry.holders == 0:
            self._unheld[entry.digest] = entry
            self._evict()
        return tenant_bytes

    def _check_room(self, session: Hashable, entry: ProgramEntry) -> None:
        bounds, size_bytes = self.bounds, entry.size_bytes
        own_bytes = self.quota.session_bytes(session) + size_bytes
        if own_bytes > bounds.session_bytes:
            text = f"its programs take {own_bytes} bytes; limits.held_program_bytes = {bounds.session_bytes}"
            raise CaseError("quota_program", text)
        tenant_bytes = self.quota.tenant_bytes_with(session, entry, entry.held_bytes)
        if tenant_bytes > bounds.tenant_bytes:
            text = f"its tenant's programs take {tenant_bytes} bytes, more than half of planner.cached_bytes"
            raise CaseError("quota_program", f"{text} = {bounds.table_bytes}")
        if self.size_bytes > bounds.table_bytes:
            text = f"all programs take {self.size_bytes} bytes; planner.cached_bytes = {bounds.table_bytes}"
            raise CaseError("quota_program", text)

    def add_plan(self, entry: ProgramEntry, plan: Plan) -> None:
        """Counts the memory of a program's plan, which came after the program was admitted."""
        if self.entries.get(entry.digest) is not entry:
            return
        more_bytes = bytes_of_plan(plan) - entry.plan_bytes
        entry.plan_bytes += more_bytes
        self.size_bytes += more_bytes
        self.quota.grow(entry, more_bytes)
        self._evict()

    def use(self, entry: ProgramEntry) -> bool:
        """Counts a use. Returns True if the program should be planned now."""
        entry.uses += 1
        self.changed.add(entry)
        if entry.state is not PlanState.UNPLANNED:
            return False
        return not entry.is_fragment or entry.uses >= self.promote_fragment_after

    def _evict(self) -> None:
        """Drops programs beyond the bounds.

        Keeps the program used last, because a session may be about to hold it.
        """
        bounds = self.bounds
        while len(self._unheld) > 1 and (len(self._unheld) > bounds.programs or self.size_bytes > bounds.table_bytes):
            name, entry = self._unheld.popitem(last=False)
            del self.entries[name]
            self.size_bytes -= entry.held_bytes
            self.evictions += 1
            self.changed.discard(entry)
            entry.changed = WeakSet()  # so that rows which still run do not keep it


def bytes_of_plan(plan: Plan) -> int:
    """Returns the approximate bytes that a plan takes in memory, shown over HTTP too."""
    text_bytes = sum([len(kernel.text) for kernel in plan.kernels])
    pairs = len(plan.records.unfused) + len(plan.records.separate)
    records_bytes = RECORD_BYTES * len(plan.records.ops) + PAIR_BYTES * pairs
    launches_bytes = LAUNCH_BYTES * len(plan.launches) + COLUMN_BYTES * len(plan.columns)
    return PLAN_BYTES + text_bytes + launches_bytes + records_bytes


def bucket(count: int) -> int:
    """Returns the histogram bucket of a count: the smallest power of two that is not below it."""
    return 1 << max(count - 1, 0).bit_length()


def program_table(config: Config, tenant_of: Callable[[bytes], Hashable]) -> ProgramTable:
    """Returns an empty table with the bounds of the settings. `tenant_of` returns the tenant of a session."""
    limits, planner = config.limits, config.planner
    bounds = TableBounds(planner.cached_plans, planner.cached_bytes, limits.held_program_bytes)
    return ProgramTable(limits.program_limits(), planner.promote_fragment_after, bounds, ProgramQuota(tenant_of))
