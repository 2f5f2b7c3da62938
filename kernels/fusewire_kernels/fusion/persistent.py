"""Decides whether one persistent kernel can run all iterations of a loop. Pure.

It can if the body of the loop, or its rotated body (see `rotation`), is a single launch of a single group, and each
value that an iteration takes from the one before is known where it is needed:

- The body is pointwise, and each carried value is needed at the point at which it is computed. Then it stays in a
  register.
- The body is a product with an epilogue, and the left operand is a carried value. Then its elements are sent to the
  blocks that multiply by them. All other carried values must be needed at the point at which they are computed.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.codegen.cluster_shape import cluster_shape
from fusewire_kernels.codegen.kernel import (
    ArgumentKind,
    CarriedInput,
    LoopKernel,
    PersistentKernel,
    PersistentPoints,
    PersistentProduct,
    ProductKernel,
)
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import Graph
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program

_LEFT, _RIGHT = 0, 1  # the operands of a product
_FIRST_OF_EPILOGUE = 2
_MOST_OPERANDS = 64  # each has a bit that tells whether it moves from iteration to iteration


class Persistent(NamedTuple):
    """A persistent kernel, and the group that it computes. `carried` are indices of the group's operands."""

    kernel: PersistentKernel
    group: int
    carried: tuple[int, ...]


ROTATED_LAUNCHES = 2  # of a body that may be rotated (see `rotation`): the left operand, then the product


def left_operand_of(instances: list[Instance], launches: list[GroupedLaunch]) -> int | None:
    """Returns the value that the first of two launches computes as the left operand of the second, a product.

    Returns None if the launches are others.
    """
    first, second = launches
    if len(first.groups) != 1 or len(second.groups) != 1 or not isinstance(second.lowered.kernel, ProductKernel):
        return None
    value, layout = instances[second.groups[0]].operands[_LEFT]
    written = [operand.value for operand in instances[first.groups[0]].written()]
    return value if value in written and layout.is_dense else None


class _Obstacle(Exception):
    """Says why there is no persistent kernel."""


def persistent_of(
    program: Program, graph: Graph, instances: list[Instance], launches: list[GroupedLaunch]
) -> Persistent | str:
    """Returns the persistent kernel of a loop's body, or the reason why there is none. Empty if it is no loop."""
    if not program.carried:
        return ""
    try:
        return _persistent(program, graph, instances, launches)
    except _Obstacle as obstacle:
        return str(obstacle)


def _persistent(program: Program, graph: Graph, instances: list[Instance], launches: list[GroupedLaunch]) -> Persistent:
    _require("an iteration takes several groups", is_met=len(launches) == 1 and len(launches[0].groups) == 1)
    group = launches[0].groups[0]
    instance = instances[group]
    _require(f"it has more than {_MOST_OPERANDS} operands", is_met=len(instance.operands) <= _MOST_OPERANDS)
    store_of = _carried(program, graph, instance)
    _require("no value is carried", is_met=bool(store_of))
    kernel = instance.lowered.kernel
    if isinstance(kernel, ProductKernel):
        return Persistent(_product(kernel, instance, store_of), group, tuple(store_of))
    return Persistent(_points(kernel, instance, store_of), group, tuple(store_of))


def _require(reason: str, *, is_met: bool) -> None:
    if not is_met:
        raise _Obstacle(reason)


def _carried(program: Program, graph: Graph, instance: Instance) -> dict[int, int]:
    """Returns for each carried operand of an instance the store that writes its next value."""
    written = {operand.value: store for store, operand in enumerate(instance.written())}
    store_of = {}
    for index, (value, layout) in enumerate(instance.read()):
        origin = program.origins.get(value)  # the inputs of a program are the first values of its graph
        if origin is None:
            continue
        _require("a value is carried over more than one iteration", is_met=len(origin.initial) == 1)
        is_computed = origin.source >= program.first_result
        _require("an input takes what another input had in the iteration before", is_met=is_computed)
        result = graph.outputs[program.live_positions[origin.source - program.first_result]]
        _require("a carried value is not computed by the group", is_met=result in written)
        _require("it reads a part of a carried value", is_met=not layout.offset and not layout.moves)
        store_of[index] = written[result]
    return store_of


def _points(kernel: LoopKernel, instance: Instance, store_of: dict[int, int]) -> PersistentPoints:
    _require("an iteration reduces", is_met=not kernel.has_inner)
    _require_known_places(kernel)
    return PersistentPoints(kernel, _in_place(instance, store_of, first=0))


def _require_known_places(kernel: LoopKernel) -> None:
    gathers = any(argument.kind is ArgumentKind.GATHERED for argument in kernel.inputs)
    _require("it reads at places that it computes", is_met=not gathers)


def _in_place(instance: Instance, store_of: dict[int, int], first: int) -> tuple[CarriedInput, ...]:
    """Returns the carried inputs of a kernel of points, whose inputs are the operands from number `first` on.

    Each must be read at the point at which the iteration before has written it.
    """
    strides, inputs = instance.lowered.strides, len(instance.operands) - instance.outputs
    for operand, store in store_of.items():
        is_in_place = strides[operand] == strides[inputs + store]
        _require("it reads a carried value at other points than it writes it", is_met=is_in_place)
    return tuple([CarriedInput(operand - first, store) for operand, store in store_of.items()])


def _product(kernel: ProductKernel, instance: Instance, store_of: dict[int, int]) -> PersistentProduct:
    _require("the product has no epilogue", is_met=kernel.epilogue is not None)
    assert kernel.epilogue is not None
    _require("the product is not of float32", is_met=kernel.dtype is dtypes.float32)
    _require("it is a product of several matrices", is_met=kernel.batch_rank == 0)
    _require("the left operand of the product is not carried", is_met=_LEFT in store_of)
    _require("the right operand of the product is carried", is_met=_RIGHT not in store_of)
    _require_known_places(kernel.epilogue)
    rows, columns, inner, a_row, a_inner, along, across = instance.lowered.sizes[:7]
    is_dense = (a_inner == 1 or inner == 1) and (a_row == inner or rows == 1)
    _require("the left operand is not the whole carried value", is_met=is_dense and columns == inner)
    state = store_of[_LEFT]
    strides = instance.lowered.strides
    inputs = len(instance.operands) - instance.outputs
    written = strides[inputs + state]
    is_written_dense = (written[1] == 1 or columns == 1) and (written[0] == columns or rows == 1)
    _require("the left operand is written in another order", is_met=is_written_dense)
    _require(
        "a graph is faster for a product of this size, or it does not fit clusters",
        is_met=cluster_shape(rows, inner) is not None,
    )
    others = {operand: store for operand, store in store_of.items() if operand >= _FIRST_OF_EPILOGUE}
    # The inputs of the epilogue begin with the product.
    carried = _in_place(instance, others, first=_FIRST_OF_EPILOGUE - 1)
    return PersistentProduct(
        rows, inner, (along, across), kernel.epilogue, strides[_FIRST_OF_EPILOGUE:], state, carried
    )
