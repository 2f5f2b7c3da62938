"""Decides whether one persistent kernel can run all iterations of a loop. Pure.

It can if each value that an iteration takes from the one before is known where it is needed:

- The body of the loop is one pointwise group, and each carried value is needed at the point at which it is computed.
  Then it stays in a register.
- The groups of the body compute matrices of the same rows, or one element for each row. They are products of float32
  with a matrix that stays the same, pointwise ops, and reductions along the columns. What a product multiplies by that
  matrix, and what is reduced, is sent to all blocks of a cluster. All else that is carried, or that one group takes
  from another, must be needed at the point at which it is computed.

Of an array that is carried only so that each iteration writes a part of it, as in `y[i] = h`, only this part is one of
these values.

A product `w @ h` with a carried h is the product of the transposed matrices: each of its elements is the same chain of
fused multiply-adds. Then rows are the columns of h.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.fusion.persistent.cluster import Cluster
from fusewire_kernels.fusion.persistent.loop_body import (
    LoopBody,
    NotPersistent,
    Obstacle,
    Persistent,
    require,
    require_few,
    require_known_places,
)
from fusewire_kernels.fusion.updated_arrays import parts_of_updates, without_copies
from fusewire_kernels.graph.graph import Graph
from fusewire_kernels.ir.kernel import LoopKernel
from fusewire_kernels.ir.persistent import CarriedInput, PersistentPoints
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.programs.program import Program


def persistent_of(
    program: Program,
    graph: Graph,
    instances: list[Instance],
    launches: list[GroupedLaunch],
    updates: Sequence[Donation],
) -> Persistent | NotPersistent:
    """Returns the persistent kernel of a loop's body, or why there is none.

    `updates` are the results that are what was carried, of which some elements are changed.
    """
    if not program.carried:
        return NotPersistent()
    all_groups = [instances[group] for launch in launches for group in launch.groups]
    parts = parts_of_updates(program, graph, all_groups, updates)
    groups = without_copies(all_groups, parts)
    try:
        require("an iteration computes no elements", is_met=bool(groups))
        body = LoopBody(program, graph, groups, parts)
        kernel = groups[0].lowered.kernel
        if len(groups) == 1 and isinstance(kernel, LoopKernel) and not kernel.has_inner:
            found = _points(body, groups[0], kernel)
        else:
            found = Cluster(body, groups).found()
        follows = [(found.operands.index(read), found.operands.index(written)) for read, written in body.follows]
        return found._replace(updates=tuple([part.update for part in parts]), follows=tuple(follows))
    except Obstacle as obstacle:
        return NotPersistent(str(obstacle))


def _points(body: LoopBody, instance: Instance, kernel: LoopKernel) -> Persistent:
    require_few(len(instance.operands))
    require_known_places(kernel)
    strides, inputs = instance.lowered.strides, len(instance.read())
    carried = []
    for number, operand in enumerate(instance.read()):
        source = body.before(operand)
        if source is not None:
            body.require_in_place(operand, strides[number], strides[inputs + source.store])
            carried.append(CarriedInput(number, source.store))
    require("no value is carried", is_met=bool(carried or body.updated))
    found = PersistentPoints(kernel, tuple(carried))
    numbers = tuple([each.input for each in carried])
    return Persistent(found, instance.lowered.sizes, instance.operands, instance.outputs, numbers, ())
