"""Fills the slots of a loop whose inputs and results have these addresses in each iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusewire_kernels.plan.slots import Integers, LoopAddresses, SlotLayout, Taken


def fill_iterations(
    layout: SlotLayout,
    table: Integers,
    arena_address: int,
    inputs: Sequence[int | Integers],
    outputs: Sequence[int | Integers],
    scalars: Sequence[Any],
    starts: Sequence[int | Integers],
) -> None:
    """Writes a row, int64[iterations][columns]. An address is one for all iterations, or one for each."""
    count = len(table)
    addresses = np.array([np.broadcast_to(each, count) for each in (*inputs, *outputs)], np.int64)
    places = np.arange(addresses.size).reshape(len(addresses), count).T
    taken = Taken(places[:, : len(inputs)], places[:, len(inputs) :])
    numbers = np.arange(count)
    loop = LoopAddresses(addresses.ravel().tolist(), layout.loop_places(None, lambda: taken))
    layout.fill_iterations(table, arena_address, loop, numbers, numbers, scalars, starts)
