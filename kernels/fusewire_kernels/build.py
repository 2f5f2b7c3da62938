"""Builds the plan of a program. These passes run in this order; the last column names where each pass is implemented.

graph      makes casts explicit, expands composite ops, turns views into addressing   (graph)
fusion     decides which values share a kernel                                         (fusion.vertical)
instances  turns each group into a kernel with its sizes                               (fusion.lowering)
launches   joins equal independent instances to one launch                             (fusion.horizontal)
arena      decides where intermediate buffers lie in the arena                         (memory)
persistent decides whether one kernel can run all iterations of a loop                 (fusion.persistent.choice)
narrowing  computes only the slices that are read, if they hinder that                 (graph.narrowing)
plan       writes kernels as text, and operands as columns of the slot table           (here, codegen)

`after_pass` lets tests check the output of each pass before the next begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import NamedTuple

from fusewire_kernels.codegen.cuda.geometry import entries, layout_of
from fusewire_kernels.codegen.dialect import dialect_of
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.codegen.persistent.source import persistent_grid, persistent_source
from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.horizontal import GroupedLaunch, schedule
from fusewire_kernels.fusion.lowering import Instance, lower
from fusewire_kernels.fusion.persistent.choice import persistent_of
from fusewire_kernels.fusion.persistent.loop_body import NotPersistent, Persistent
from fusewire_kernels.fusion.records import records_of, records_of_one_kernel
from fusewire_kernels.fusion.vertical import fuse
from fusewire_kernels.graph.construction import build_graph
from fusewire_kernels.graph.graph import CONSTANT, Graph, Operand, with_stores_beside_reads
from fusewire_kernels.graph.narrowing import narrowed
from fusewire_kernels.ir.kernel import Kernel
from fusewire_kernels.memory.arena import Arena, arrange
from fusewire_kernels.memory.donation import donations
from fusewire_kernels.memory.lifetimes import Lifetime, lifetimes
from fusewire_kernels.memory.updates import updates
from fusewire_kernels.plan.plan import (
    ARENA_COLUMN,
    ROWS_THAT_CHOOSE,
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
    UpdatedArray,
    ViewColumn,
)
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.records import Records

# Called after each pass with the name of the pass and its output, in the form that `verify` expects. Only tests and
# planner processes that are told to verify set this, once for their process.
after_pass: Callable[..., None] | None = None


class Design(NamedTuple):
    """All that is decided about a plan before the text of its kernels is generated."""

    program: Program
    fusion: Fusion
    instances: list[Instance]
    launches: list[GroupedLaunch]
    lifetimes: dict[int, Lifetime]
    arena: Arena

    @property
    def graph(self) -> Graph:
        return self.fusion.graph

    @property
    def updates(self) -> tuple[Donation, ...]:
        """The carried results of a loop that are what was carried, of which some elements are changed."""
        return updates(self.program, self.graph, self.instances, self.lifetimes)

    @property
    def records(self) -> Records:
        """What became of each op, and why ops are not computed together, without what is said of loops."""
        return records_of(self.program, self.fusion, self.instances, self.launches)

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The distinct kernels by key, in order of first launch."""
        return {launch.lowered.kernel.key: launch.lowered.kernel for launch in self.launches}


def build_plan(program: Program, dialect: str, most_rows: int = ROWS_THAT_CHOOSE) -> Plan:
    """Returns the fused plan of a program, with kernels in the dialect of this name.

    It is for launches of one to `most_rows` rows. With `ROWS_THAT_CHOOSE` it is for launches of any number of rows.
    """
    return plan_from(dialect, design(program, for_gpu=dialect_of(dialect).for_gpu), most_rows)


def plan_from(dialect: str, plan: Design, most_rows: int) -> Plan:
    """Returns the plan of a design, as `build_plan` does."""
    known = dialect_of(dialect)
    sources = {key: generate(kernel, dialect) for key, kernel in plan.kernels.items()}
    launched = _launched(plan, sources, most_rows) if known.has_sources_by_size else tuple(sources.values())
    written = write(plan, launched)
    return _with_persistent(plan, written) if known.runs_loops else written


def design(program: Program, *, for_gpu: bool) -> Design:
    """Returns the design of a program by all passes up to the arena. `for_gpu` is as in `OpBuilder`."""
    return design_of(program, build_graph(program, for_gpu=for_gpu))


def design_of(program: Program, graph: Graph) -> Design:
    """Returns the design of a program whose graph is made, by all passes from there up to the arena."""
    _show("graph", graph)
    fusion = fuse(graph)
    _show("fusion", fusion)
    instances = lower(fusion)
    _show("instances", fusion, instances)
    launches = schedule(fusion, instances)
    _show("launches", fusion, launches)
    lives = lifetimes(graph, instances, launches)
    arena = arrange(graph, instances, lives)
    _show("arena", graph, instances, lives, arena)
    return Design(program, fusion, instances, launches, lives, arena)


def write(plan: Design, sources: tuple[tuple[KernelSource, ...], ...]) -> Plan:
    """Returns the plan of a design. `sources` are the sources of each kernel, in the order of `Design.kernels`."""
    columns = _Columns(plan)
    firsts = accumulate(map(len, sources), initial=0)
    index_of = dict(zip(plan.kernels, firsts, strict=False))
    instances = plan.instances
    launches = [
        Launch(
            index_of[lowered.kernel.key],
            lowered.sizes,
            tuple([columns.refs(instances[group].operands) for group in groups]),
        )
        for lowered, groups in plan.launches
    ]
    donated, updated = donations(plan.graph, plan.instances, plan.lifetimes), plan.updates
    _show("plan", plan, donated)
    return Plan(
        tuple(chain.from_iterable(sources)),
        tuple(launches),
        tuple(columns.columns),
        plan.arena.size_bytes,
        donated,
        _cost(plan),
        plan.records._replace(updated=tuple([each.input for each in updated])),
        updates=updated,
    )


def _launched(
    plan: Design, sources: dict[str, tuple[KernelSource, ...]], most_rows: int
) -> tuple[tuple[KernelSource, ...], ...]:
    """Returns of the sources of each CUDA kernel those that some launch may run, so that no others are compiled."""
    needed: dict[str, set[str]] = {key: set() for key in sources}
    for lowered, groups in plan.launches:
        key = lowered.kernel.key
        needed[key].update(entries(layout_of(sources[key][0].text), lowered.sizes, len(groups), most_rows))
    return tuple(
        tuple([source for source in several if source.key.removeprefix(key) in needed[key]])
        for key, several in sources.items()
    )


def _with_persistent(plan: Design, written: Plan) -> Plan:
    """Adds the persistent kernel of a loop to its plan, or the reason why there is none."""
    beside = plan if not written.updates else design_of(plan.program, with_stores_beside_reads(plan.graph))
    found = _persistent_of(beside, written.updates)
    if isinstance(found, NotPersistent) and found.reason and (narrow := narrowed(beside.graph)) is not None:
        beside = design_of(plan.program, narrow)
        found = _persistent_of(beside, written.updates)
    if isinstance(found, Persistent):
        return _with_launch(written, beside, found)
    return replace(written, records=written.records._replace(why_launched=found.reason))


def _persistent_of(plan: Design, updates: Sequence[Donation]) -> Persistent | NotPersistent:
    return persistent_of(plan.program, plan.graph, plan.instances, plan.launches, updates)


def _with_launch(written: Plan, plan: Design, found: Persistent) -> Plan:
    """Adds a persistent kernel, and the launch of it, to a plan. `plan` is the design of the kernel."""
    columns = _Columns(plan)
    refs, known = columns.refs(found.operands), list(written.columns)
    places = {_typed(column): index for index, column in enumerate(known)}
    for column in [columns.columns[ref.column] for ref in refs]:
        if _typed(column) not in places:
            places[_typed(column)] = len(known)
            known.append(column)
    operands = tuple([ref._replace(column=places[_typed(columns.columns[ref.column])]) for ref in refs])
    launch = PersistentLaunch(
        len(written.kernels),
        found.sizes,
        operands,
        found.outputs,
        found.carried,
        found.fixed,
        *persistent_grid(found.kernel, found.sizes),
        tuple([columns.updated(update) for update in found.updates]),
        found.follows,
    )
    return replace(
        written,
        kernels=(*written.kernels, persistent_source(found.kernel)),
        columns=tuple(known),
        records=written.records._replace(persistent=records_of_one_kernel(plan.program, plan.fusion)),
        persistent=launch,
    )


def _typed(column: Column) -> tuple[type[Column], Column]:
    """Returns what tells a column from others. Columns of different types may be equal as tuples."""
    return type(column), column


def _show(name: str, *made: object) -> None:
    if after_pass is not None:
        after_pass(name, *made)


class _Columns:
    """Gives every buffer and every scalar a column of the slot table.

    The order of the columns is: arena, inputs, scalars, live results, constants, views.
    """

    def __init__(self, plan: Design) -> None:
        program, values = plan.program, plan.graph.values
        self.columns: list[Column] = [ArenaColumn()]
        self.columns += [InputColumn(number) for number in range(len(program.inputs))]
        self.columns += [ScalarColumn(number, dtype) for number, dtype in enumerate(program.scalars)]
        self.columns += [OutputColumn(position) for position in range(len(plan.graph.outputs))]
        first_output = len(self.columns) - len(plan.graph.outputs)
        # Inputs and scalars are the first values of a graph, in order.
        self._base = {number: 1 + number for number in range(len(program.inputs) + len(program.scalars))}
        self._outputs = range(first_output, len(self.columns))
        self._base.update(zip(plan.graph.outputs, self._outputs, strict=True))
        self._live_sizes = program.live_sizes
        for number, value in enumerate(values):
            if value.form is CONSTANT:
                self._base[number] = self._new(ConstantColumn(value.constant, value.dtype))
        self._offset_of = plan.arena.offset_of
        self._values = values
        self._views: dict[Column, int] = {}

    def refs(self, operands: Iterable[Operand]) -> tuple[OperandRef, ...]:
        """Returns the column and the byte offset of each operand."""
        refs = []
        for value, (_, _, offset, moves) in operands:
            column = self._base.get(value, ARENA_COLUMN)
            offset_bytes = self._offset_of[value] if column == ARENA_COLUMN else 0
            if offset:
                offset_bytes += offset * self._values[value].dtype.itemsize_bytes
            if moves:
                terms = tuple([move.in_bytes(self._values[value].dtype.itemsize_bytes) for move in moves])
                column, offset_bytes = self._view(ViewColumn(column, offset_bytes, terms)), 0
            refs.append(OperandRef(column, offset_bytes))
        return tuple(refs)

    def updated(self, update: Donation) -> UpdatedArray:
        """Returns the columns of an array that iterations change, as carried to an iteration and as left by it."""
        number, position = update
        return UpdatedArray(self._base[number], self._outputs[position], self._live_sizes[position])

    def _view(self, view: ViewColumn) -> int:
        known = self._views.get(view)
        if known is None:
            known = self._views[view] = self._new(view)
        return known

    def _new(self, column: Column) -> int:
        self.columns.append(column)
        return len(self.columns) - 1


def _cost(plan: Design) -> Cost:
    operations = sum([launch.lowered.operations * len(launch.groups) for launch in plan.launches])
    moved_bytes = sum([launch.lowered.moved_bytes * len(launch.groups) for launch in plan.launches])
    return Cost(operations, moved_bytes)
