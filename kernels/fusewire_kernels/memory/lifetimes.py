"""Finds the first write and the last use of each buffer, in launches, and decides which buffers may share memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import SLOTS, Graph
from fusewire_kernels.ir.kernel import ArgumentKind, Kernel, LoopKernel, ProductKernel

_ARRAY = ArgumentKind.ARRAY  # Python 3.11 is slow to look up a member of an enum


class Use(NamedTuple):
    """One use of a buffer: the launch, and the group whose instance uses it."""

    launch: int
    group: int


@dataclass(slots=True)
class Lifetime:
    """The uses of one buffer, in launch order."""

    reads: list[Use] = field(default_factory=list)
    writes: list[Use] = field(default_factory=list)
    last_use: int = 0

    @property
    def first_write(self) -> int:
        return self.writes[0].launch


def lifetimes(graph: Graph, instances: list[Instance], launches: list[GroupedLaunch]) -> dict[int, Lifetime]:
    """The lifetime of every value that has a buffer and is used, in order of first use."""
    found: dict[int, Lifetime] = {}
    values = graph.values
    for number, launch in enumerate(launches):
        for group in launch.groups:
            use = Use(number, group)
            _, operands, outputs, _ = instances[group]
            first_output = len(operands) - outputs
            for position, (value, _) in enumerate(operands):
                lifetime = found.get(value)
                if lifetime is None:
                    if values[value].form in SLOTS:
                        continue
                    lifetime = found[value] = Lifetime()
                (lifetime.writes if position >= first_output else lifetime.reads).append(use)
                lifetime.last_use = number
    return found


def may_overwrite(
    graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime], source: int, target: int
) -> bool:
    """Whether `target` may be written over `source`, whose last use is the launch that first writes `target`.

    In that launch only the instance that writes the target may read the source, and it must write each element at the
    point that reads it. So both are whole buffers with equal strides, the source is read through one argument, and the
    kernel visits no point twice, as a kernel with reductions does.
    """
    write_launch, writer = lifetimes[target].writes[0]
    instance = instances[writer]
    kinds = _kinds_of_pointwise(instance.lowered.kernel)
    if kinds is None or not have_equal_items(graph, source, target):
        return False
    # Reads are in launch order, so those of this launch are the last.
    for launch, reader in reversed(lifetimes[source].reads):
        if launch != write_launch:
            break
        if reader != writer:
            return False
    buffers = [value for value, _ in instance.operands]
    first_output = len(buffers) - instance.outputs
    inputs, outputs = buffers[:first_output], buffers[first_output:]
    if inputs.count(source) != 1 or outputs.count(target) != 1:
        return False
    read, write = inputs.index(source), first_output + outputs.index(target)
    if kinds[read] is not _ARRAY or instance.lowered.strides[read] != instance.lowered.strides[write]:
        return False
    return is_whole(graph, instance, read) and is_whole(graph, instance, write)


def _kinds_of_pointwise(kernel: Kernel) -> list[ArgumentKind | None] | None:
    """Returns the kinds of the inputs of a kernel that may write over an input; None if the kernel never may.

    The kind of an input that is read at other points than those that are written is None: the operands of a product.
    """
    if isinstance(kernel, LoopKernel):
        return None if kernel.has_inner else [argument.kind for argument in kernel.inputs]
    if not isinstance(kernel, ProductKernel) or kernel.epilogue is None:
        return None
    return [None, None, *[argument.kind for argument in kernel.epilogue.inputs[1:]]]


def have_equal_items(graph: Graph, a: int, b: int) -> bool:
    """Whether two buffers have the same number of elements, each of the same size."""
    one, other = graph.values[a], graph.values[b]
    if one.shape == other.shape and one.dtype is other.dtype:
        return True
    return one.dtype.itemsize_bytes == other.dtype.itemsize_bytes and prod(one.shape) == prod(other.shape)


def is_whole(graph: Graph, instance: Instance, position: int) -> bool:
    """Returns whether an operand of an instance is all of a buffer, in order."""
    value, layout = instance.operands[position]
    is_unmoved = layout.offset == 0 and not layout.moves
    return is_unmoved and instance.lowered.moved_elements[position] == prod(graph.values[value].shape)
