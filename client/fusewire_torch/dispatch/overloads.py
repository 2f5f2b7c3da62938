"""Finds the overloads of an op that do the same thing: the functional one, the one in place, the one with `out`."""

from __future__ import annotations

from typing import Any

import torch

Op = Any  # an overload of an op: torch._ops.OpOverload, which ships no types


def functional_of(name: str) -> Op:
    """Returns the overload of ATen with this name, such as "add.Tensor" or "relu"."""
    packet, _, overload = name.partition(".")
    op: Op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return op


def in_place_of(op: Op) -> str | None:
    """Returns the name of the overload that writes the result of `op` to its first operand, if there is one."""
    packet = op.name().removeprefix("aten::").partition(".")[0] + "_"
    return _like(op, packet, _inputs(op))


def out_of(op: Op) -> str | None:
    """Returns the name of the overload that writes the results of `op` to given tensors, if there is one."""
    return _like(op, op.name().removeprefix("aten::").partition(".")[0], _inputs(op), writes=len(op._schema.returns))


def _like(op: Op, packet_name: str, inputs: list[tuple[str, str]], writes: int = 0) -> str | None:
    packet = getattr(torch.ops.aten, packet_name, None)
    if packet is None:
        return None
    for overload in packet.overloads():
        found = getattr(packet, overload)
        given = [argument for argument in found._schema.arguments if argument.is_out]
        if found is not op and len(given) == writes and _inputs(found) == inputs:
            return f"{packet_name}.{overload}" if overload != "default" else packet_name
    return None


def _inputs(op: Op) -> list[tuple[str, str]]:
    """Returns names and types of the parameters that are no results."""
    return [(each.name, str(each.type)) for each in op._schema.arguments if not each.is_out]
