"""The device time of cells: measured on the CPU beside a peer that takes 10 µs, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from loadtests.measuring.errors import WrongResult
from loadtests.microbenchmarks.device.device_cells import Timed, time_cell, worst_figure
from loadtests.system.context import Context
from loadtests.workloads.cells import Blocks, Cell, Conv2d, Mlp, Norm, Product, Split
from loadtests.workloads.loops import NUMPY


class _Peer:
    """Computes each cell in NumPy after so many steps, and takes 10 µs."""

    def __init__(self, steps: int = 1) -> None:
        self._steps = steps

    def ask(self, command: str, cell: Cell, *_: object) -> Any:
        loop = cell.loop()
        return loop.read(loop.run(loop.operands, range(self._steps), NUMPY)) if command == "result" else 10.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [Mlp(2, 16, 3), Split(4, 8), Blocks(3, 4, 8), Norm(8, 16), Product(3, 5, 9), Conv2d(2, 3, 5)],
    ids=lambda cell: cell.name,
)
def test_a_cell_is_checked_and_its_device_time_is_measured(cell: Cell) -> None:
    peer: Any = _Peer()
    with Context("cpu").session() as (service, session):
        timed = time_cell(service, session, peer, cell)
    assert timed.ours_us > 0
    assert timed.theirs_us == 10.0


def test_a_wrong_result_of_the_peer_is_not_compared() -> None:
    peer: Any = _Peer(steps=2)
    nothing: Any = None
    with pytest.raises(WrongResult, match="L2 H16 B3 in the peer"):
        time_cell(nothing, nothing, peer, Mlp(2, 16, 3))


def test_the_worst_ratio_is_the_figure_and_every_cell_is_told() -> None:
    figure = worst_figure("device_mlp", "layers", "torch", iter([Timed("a", 9.0, 10.0), Timed("b", 12.0, 10.0)]))
    assert figure.value == pytest.approx(1.2)
    assert figure.notes == ("a: 9.0 / 10.0 µs = 0.90", "b: 12.0 / 10.0 µs = 1.20")
    assert figure.raw == {"a": (9.0, 10.0), "b": (12.0, 10.0)}
