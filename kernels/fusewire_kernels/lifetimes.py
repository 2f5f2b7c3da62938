"""When each buffer of a plan is first written and last used, in launches: what memory may be shared by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from fusewire_kernels.graph import SLOTS, Graph
from fusewire_kernels.kernel import ArgumentKind, LoopKernel
from fusewire_kernels.lower import Task
from fusewire_kernels.schedule import Batch


class Use(NamedTuple):
    """That a task (a group's index) uses a buffer in a launch."""

    launch: int
    group: int


@dataclass(slots=True)
class Lifetime:
    """Of one buffer, the uses in launch order."""

    reads: list[Use] = field(default_factory=list)
    writes: list[Use] = field(default_factory=list)

    @property
    def first_write(self) -> int:
        return self.writes[0].launch

    @property
    def last_read(self) -> int | None:
        return self.reads[-1].launch if self.reads else None

    @property
    def last_use(self) -> int:
        return max((self.reads or self.writes)[-1].launch, (self.writes or self.reads)[-1].launch)


def lifetimes(graph: Graph, tasks: list[Task], batches: list[Batch]) -> dict[int, Lifetime]:
    """The lifetime of every value that has a buffer and is used."""
    found: dict[int, Lifetime] = {}
    for launch, batch in enumerate(batches):
        for group in batch.groups:
            task, use = tasks[group], Use(launch, group)
            first_output = len(task.operands) - task.outputs
            for position, operand in enumerate(task.operands):
                if graph.values[operand.value].form in SLOTS:
                    continue
                lifetime = found.get(operand.value)
                if lifetime is None:
                    lifetime = found[operand.value] = Lifetime()
                (lifetime.writes if position >= first_output else lifetime.reads).append(use)
    return found


def may_overwrite(graph: Graph, tasks: list[Task], lifetimes: dict[int, Lifetime], source: int, target: int) -> bool:
    """Whether `target` may lie on `source`, which ends in the launch that begins to write `target`.

    The one task that reads the source then must write each element at the point that reads it: both are whole buffers
    that move alike, read through one argument, and no point is visited twice, as reductions do.
    """
    written = lifetimes[target].writes[0]
    task = tasks[written.group]
    kernel = task.lowered.kernel
    if not isinstance(kernel, LoopKernel) or kernel.has_inner:
        return False
    readers = {use.group for use in lifetimes[source].reads if use.launch == written.launch}
    if readers != {written.group} or not have_equal_items(graph, source, target):
        return False
    first_output = len(task.operands) - task.outputs
    reads = [position for position in range(first_output) if task.operands[position].value == source]
    writes = [
        position for position in range(first_output, len(task.operands)) if task.operands[position].value == target
    ]
    if len(reads) != 1 or len(writes) != 1 or kernel.inputs[reads[0]].kind is not ArgumentKind.ARRAY:
        return False
    is_alike = task.lowered.strides[reads[0]] == task.lowered.strides[writes[0]]
    return is_alike and all(_is_whole(graph, task, position) for position in (reads[0], writes[0]))


def have_equal_items(graph: Graph, a: int, b: int) -> bool:
    """Whether two buffers are equal in number and size of elements."""
    one, other = graph.values[a], graph.values[b]
    return one.dtype.itemsize_bytes == other.dtype.itemsize_bytes and prod(one.shape) == prod(other.shape)


def _is_whole(graph: Graph, task: Task, position: int) -> bool:
    value, layout = task.operands[position]
    is_unmoved = layout.offset == 0 and not layout.moves
    return is_unmoved and task.lowered.moved_elements[position] == prod(graph.values[value].shape)
