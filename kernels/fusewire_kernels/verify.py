"""Checks the rules that must hold after each pass of `build`, for every plan that is built during a test run.

Each function raises ServerFault with the first rule that is broken. Tests set `verify_pass` as `build.after_pass`, and
so do the planners of the servers that they start. The output of a pass is checked before the next pass begins, and the
error names the pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from math import prod
from typing import Any

from fusewire_kernels.build import Design
from fusewire_kernels.fusion.fusion import Fusion, inlined_as
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import SLOTS, Form, Graph, Operand
from fusewire_kernels.ir.kernel import ArgumentKind, LoopKernel, ProductKernel
from fusewire_kernels.memory.arena import Arena
from fusewire_kernels.memory.lifetimes import Lifetime, may_overwrite
from fusewire_kernels.plan.plan import ARENA_ALIGNMENT_BYTES, Donation
from fusewire_protos.errors import ServerFault

_MOST_COUNTED = 1 << 12  # the elements of a larger result are not counted one by one


def verify_pass(name: str, *made: Any) -> None:
    """Checks the output of the pass `name` of `build`. Raises ServerFault."""
    try:
        _RULES[name](*made)
    except ServerFault as fault:
        raise ServerFault(f"{fault} (pass: {name})") from None


def verify_graph(graph: Graph) -> None:
    """Every value comes after the values it needs, and no view leaves its buffer."""
    for number, value in enumerate(graph.values):
        needs = [operand.value for operand in value.operands] + list(value.after)
        needs += [value.target.value] if value.target is not None else []
        _require(all(need < number for need in needs), f"value {number} needs a value that comes later")
        for operand in (*value.operands, *([value.target] if value.target is not None else [])):
            _require(_is_inside(graph, operand), f"value {number} reads or writes outside of value {operand.value}")


def verify_fusion(fusion: Fusion) -> None:
    """Every value is computed once, after the values it needs that its group does not compute again.

    Groups wait for earlier groups only.
    """
    values = fusion.graph.values
    for index, group in enumerate(fusion.groups):
        _require(all(other < index for other in fusion.waits_for[index]), f"group {index} waits for a later one")
        done: set[int] = set()
        for number, _ in group.members:
            for operand in values[number].operands:
                own = fusion.group_of[operand.value]
                is_inlined = any(member.value == operand.value for member in group.inlined)
                is_ready = own != index or operand.value in done or is_inlined
                _require(is_ready, f"value {number} comes before its operand {operand.value}")
                is_awaited = own in (None, index) or own in fusion.waits_for[index]
                _require(is_awaited or is_inlined, f"group {index} does not wait for value {operand.value}")
            done.add(number)
        for number, placement in group.inlined:
            for operand in values[number].operands:
                is_inlined = inlined_as(values, group, operand, placement) is not None
                is_slot = values[operand.value].form in SLOTS
                _require(
                    is_slot or is_inlined,
                    f"group {index} computes value {number} again, but not its operand {operand.value}",
                )
    computed = Counter(number for group in fusion.groups for number, _ in group.members)
    _require(all(times == 1 for times in computed.values()), "a value is computed twice")
    for number in fusion.graph.outputs:
        writers = fusion.writers.get(number)
        _require(computed[number] == 1 or writers is not None, f"live value {number} is not computed")


def verify_launches(fusion: Fusion, launches: list[GroupedLaunch]) -> None:
    """Every group runs once, after all groups for which it waits."""
    launch_of = {group: number for number, launch in enumerate(launches) for group in launch.groups}
    runs = sum(len(launch.groups) for launch in launches)
    _require(runs == len(launch_of) == len(fusion.groups), "a group does not run exactly once")
    for group, waits_for in enumerate(fusion.waits_for):
        for other in waits_for:
            _require(launch_of[other] < launch_of[group], f"group {group} runs before group {other} has ended")


def verify_lowering(fusion: Fusion, instances: list[Instance]) -> None:
    """Instances keep the rules of `verify_instances`, and together they write all live results."""
    verify_instances(fusion, instances)
    verify_results(fusion, instances)


def verify_instances(fusion: Fusion, instances: list[Instance]) -> None:
    """Instances fit their kernels and buffers, and what one reads another writes.

    Every instance has as many operands as its kernel has arguments, all operands lie inside their buffers, and every
    instance writes something.
    """
    written = {operand.value for instance in instances for operand in instance.written()}
    for group, instance in enumerate(instances):
        _require(instance.outputs > 0, f"group {group} writes nothing")
        for operand in instance.read():
            is_given = fusion.graph.values[operand.value].form in (Form.INPUT, *SLOTS)
            _require(
                is_given or operand.value in written, f"group {group} reads value {operand.value}, which nothing writes"
            )
        _require(
            len(instance.operands) == len(instance.lowered.strides),
            f"group {group} has not one operand for each argument of its kernel",
        )
        for operand in instance.operands:
            _require(_is_inside(fusion.graph, operand), f"group {group} leaves the buffer of value {operand.value}")


def verify_arena(graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime], arena: Arena) -> None:
    """Buffers that are needed at the same time share no memory, except where `may_overwrite` allows it."""
    placed = sorted(arena.offset_of.items(), key=lambda item: lifetimes[item[0]].first_write)
    for position, (later, offset) in enumerate(placed):
        end = offset + _size_bytes(graph, later)
        _require(offset % ARENA_ALIGNMENT_BYTES == 0, f"value {later} is not aligned")
        _require(0 <= offset <= end <= arena.size_bytes, f"value {later} lies outside the arena")
        for earlier, other in placed[:position]:
            is_apart = end <= other or other + _size_bytes(graph, earlier) <= offset
            if is_apart or lifetimes[earlier].last_use < lifetimes[later].first_write:
                continue
            is_successor = lifetimes[earlier].last_use == lifetimes[later].first_write and other == offset
            is_legal = is_successor and may_overwrite(graph, instances, lifetimes, earlier, later)
            _require(is_legal, f"values {earlier} and {later} are needed at once and share memory")


def verify_results(fusion: Fusion, instances: list[Instance]) -> None:
    """Every element of a live result is written once. Stores that must come after other stores are not counted."""
    graph = fusion.graph
    written: dict[int, Counter[int]] = {}
    for number, value in enumerate(graph.values):
        if value.target is not None and graph.is_needed[number] and not value.after:
            written.setdefault(value.target.value, Counter()).update(_elements(value.target))
    for number in graph.outputs:
        elements = _count(graph, number)
        if graph.values[number].form is not Form.ASSEMBLY or elements > _MOST_COUNTED:
            continue
        counted = written.get(number, Counter())
        is_whole = len(counted) == elements and all(times == 1 for times in counted.values())
        _require(is_whole, f"live value {number} is not written exactly once in every element")
    stored = {operand.value for instance in instances for operand in instance.written()}
    for number in graph.outputs:
        _require(number in stored or _count(graph, number) == 0, f"live value {number} is stored by no instance")


def verify_donations(plan: Design, donated: Iterable[Donation]) -> None:
    """Once a result is written over an input, only the instance that writes the result reads the input.

    It reads each element of the input at the point where it writes that element of the result.
    """
    inputs = {value.number: number for number, value in enumerate(plan.graph.values) if value.form is Form.INPUT}
    launch_of = {group: number for number, launch in enumerate(plan.launches) for group in launch.groups}
    for given, position in donated:
        source, result = inputs[given], plan.graph.outputs[position]
        is_fitting = _size_bytes(plan.graph, source) == _size_bytes(plan.graph, result)
        _require(is_fitting, f"result {position} is written over input {given}, which has another size")
        first_write = min(launch_of[group] for group in _using(plan.instances, result, Instance.written))
        for group in _using(plan.instances, source, Instance.read):
            is_over = launch_of[group] < first_write
            is_at_once = launch_of[group] == first_write and _replaces(plan.instances[group], source, result)
            _require(
                is_over or is_at_once, f"group {group} reads input {given} after result {position} is written over it"
            )


_RULES: dict[str, Callable[..., None]] = {
    "graph": verify_graph,
    "fusion": verify_fusion,
    "instances": verify_lowering,
    "launches": verify_launches,
    "arena": verify_arena,
    "plan": verify_donations,
}


def _require(holds: bool, text: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise ServerFault(f"planning went wrong: {text}")


def _using(instances: list[Instance], number: int, operands_of: Callable[[Instance], tuple[Operand, ...]]) -> list[int]:
    return [
        group for group, instance in enumerate(instances) if any(base == number for base, _ in operands_of(instance))
    ]


def _replaces(instance: Instance, source: int, result: int) -> bool:
    """Whether an instance reads each element of `source` at the point where it writes the same element of `result`."""
    kernel = instance.lowered.kernel
    if isinstance(kernel, LoopKernel):
        inputs = () if kernel.has_inner else kernel.inputs
        is_elsewhere = [argument.kind is ArgumentKind.GATHERED for argument in inputs]
    else:
        epilogue = kernel.epilogue if isinstance(kernel, ProductKernel) else None
        inputs = () if epilogue is None else epilogue.inputs
        is_elsewhere = [True, True] + [False] * (len(inputs) - 1)
    if not inputs:
        return False
    is_elsewhere += [False] * instance.outputs
    walks = {
        (operand.layout.offset, operand.layout.moves, strides, elsewhere)
        for operand, strides, elsewhere in zip(instance.operands, instance.lowered.strides, is_elsewhere, strict=True)
        if operand.value in (source, result)
    }
    return (
        any(base == result for base, _ in instance.written())
        and len(walks) == 1
        and not any(walk[-1] for walk in walks)
    )


def _is_inside(graph: Graph, operand: Operand) -> bool:
    """Whether a view lies in its buffer. If slice starts move it, checks only its size: starts are checked later."""
    value, layout = graph.values[operand.value], operand.layout
    if 0 in layout.shape or value.form in SLOTS:
        return True
    spans = [(dim - 1) * stride for dim, stride in zip(layout.shape, layout.strides, strict=True)]
    low = layout.offset + sum(span for span in spans if span < 0)
    high = layout.offset + sum(span for span in spans if span > 0)
    if layout.moves:
        return high - low < _count(graph, operand.value)
    return low >= 0 and high < _count(graph, operand.value)


def _elements(target: Operand) -> list[int]:
    layout = target.layout
    steps = [
        range(0, dim * stride, stride) if stride else [0]
        for dim, stride in zip(layout.shape, layout.strides, strict=True)
    ]
    return [layout.offset + sum(position) for position in product(*steps)]


def _count(graph: Graph, number: int) -> int:
    return prod(graph.values[number].shape)


def _size_bytes(graph: Graph, number: int) -> int:
    return _count(graph, number) * graph.values[number].dtype.itemsize_bytes
