"""Measures the device time of network cells, against the fastest way to write them in torch on the same GPU.

A cell is the body of a `fori_loop`, on its own result. Its device time is the time in which the device ran submissions,
as the server counts it, divided by the iterations; recording and sending are not part of it. The peer's time is that of
a CUDA graph of the same cell, by CUDA events (`peers/pytorch/cells`). The first step of each is compared with NumPy's.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.errors import NotWarm
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.pytorch import cells as torch_cells
from loadtests.system.context import Context, upload
from loadtests.system.remote_loop import as_fori_loop
from loadtests.system.service import Service
from loadtests.workloads.cells import PRODUCTS, Blocks, Cell, Conv2d, Mlp, Norm, Operands, Product, Split
from loadtests.workloads.loops import NUMPY, Loop, check_close

_TOLERANCE = 2e-3
_WARMING_STEPS = 64
_SAMPLE_US = 30_000
_LEAST_STEPS, _MOST_STEPS = 10, 2_000
_SAMPLES = 3
_PEER_STEPS = 20
_BATCHES = (1, 64, 1024)
_LAYERS = (8, 1)
_MLPS = tuple(Mlp(layers, hidden, batch) for hidden in (64, 256, 1024) for layers in _LAYERS for batch in _BATCHES)
_WIDE_MLPS = tuple(Mlp(layers, 4096, batch) for layers in _LAYERS for batch in _BATCHES)
_SPLITS = (Split(256, 64), Split(4096, 64), Split(4096, 256))
_PRODUCTS = tuple(Product(rows, side, side) for side in (256, 1024) for rows in (1, 8, 64))
_PRODUCTS += (Product(256, 1024, 1024), Product(1024, 1024, 1024))
_OTHER_PRODUCTS = (
    Product(4096, 4096, 4096),
    Product(33, 77, 129),
    Product(1000, 1000, 1000),
    Product(64, 1024, 1024, is_transposed=True),
    Product(1024, 1024, 1024, is_transposed=True),
)
_BLOCKS = Blocks(8, 64, 256)
_NORM = Norm(4096, 4096)
_CONV = Conv2d(32, 64, 56)


class Timed(NamedTuple):
    """The device time of a step of a cell in µs, on Fusewire and in the peer."""

    cell: str
    ours_us: float
    theirs_us: float

    @property
    def ratio(self) -> float:
        return self.ours_us / self.theirs_us


def _measure(context: Context) -> Iterator[Figure]:
    with context.session() as (service, session), Worker(torch_cells.serve) as peer:
        timed = partial(time_cell, service, session, peer)
        yield worst_figure("device_product", f"{PRODUCTS} products", "torch graph (cuBLAS)", map(timed, _PRODUCTS))
        other = f"{PRODUCTS} large, ragged or transposed products"
        yield worst_figure("device_product_other", other, "torch graph (cuBLAS)", map(timed, _OTHER_PRODUCTS))
        fused = "torch graph, fused bias and ReLU (_addmm_activation)"
        yield worst_figure("device_mlp", "Linear+ReLU, H64 to H1024", fused, map(timed, _MLPS))
        yield worst_figure("device_mlp_h4096", "Linear+ReLU, H4096", fused, map(timed, _WIDE_MLPS))
        combined = "torch.compile of the combined form"
        yield worst_figure("device_split", "layer norm, tanh, Linear+ReLU of 16 parts", combined, map(timed, _SPLITS))
        yield _blocks_figure(timed(_BLOCKS))
        yield _norm_figure(timed(_NORM))
        yield worst_figure("device_conv2d", "conv, bias and ReLU", "torch graph (cuDNN)", [timed(_CONV)])


def time_cell(service: Service, session: fw.Session, peer: Worker, cell: Cell) -> Timed:
    """Returns the device times of a cell. Raises WrongResult if either result differs from NumPy's."""
    loop = cell.loop()
    expected = loop.read(loop.run(loop.operands, range(1), NUMPY))
    if not isinstance(cell, Norm):  # whose peer is a copy
        check_close(peer.ask("result", cell), expected, f"{cell.name} in the peer", _TOLERANCE)
    theirs_us: float = peer.ask("device_us", cell, _PEER_STEPS)
    operands = _uploaded(session, loop.operands)
    known = service.programs().keys()
    check_close(_read(loop, operands, 1).numpy(), expected, cell.name, _TOLERANCE)
    return Timed(cell.name, _device_us(service, partial(_run, loop, operands), known), theirs_us)


def _uploaded(session: fw.Session, operands: Operands) -> Operands:
    state, *others = operands
    is_tuple = isinstance(state, tuple)
    first = tuple(session.array(each) for each in state) if is_tuple else session.array(state)
    return Operands(first, *upload(session, Operands(*others)))


def _read(loop: Loop, operands: Operands, steps: int) -> fw.Array:
    read: fw.Array = loop.read(as_fori_loop(loop, operands, steps))
    return read


def _run(loop: Loop, operands: Operands, steps: int) -> None:
    """Runs so many steps, and waits until they are done."""
    _read(loop, operands, steps).numpy()


def _device_us(service: Service, run: Callable[[int], None], known: Iterable[str]) -> float:
    """Returns the device time of a step in µs, once the programs that are not `known` run by their plans."""
    run(_WARMING_STEPS)
    if not service.wait_for_plans_beside(frozenset(known)):
        raise NotWarm("the cell got no plan")
    warm_us = _step_us(service, run, _WARMING_STEPS)
    steps = min(max(round(_SAMPLE_US / warm_us), _LEAST_STEPS), _MOST_STEPS)
    run(steps)  # captures a graph of the launches that have run before
    return statistics.median(_step_us(service, run, steps) for _ in range(_SAMPLES))


def _step_us(service: Service, run: Callable[[int], None], steps: int) -> float:
    before = service.count()
    run(steps)
    return service.count().since(before).device_ns / 1e3 / steps


def worst_figure(name: str, what: str, peer: str, timed: Iterable[Timed]) -> Figure:
    """Returns the figure of the worst ratio of some cells; the notes tell the times of each."""
    cells = list(timed)
    worst = max(cells, key=lambda cell: cell.ratio)
    return Figure(
        name=name,
        what=f"device time: {what}; worst of {len(cells)}, {worst.cell}: ÷ {peer}",
        value=worst.ratio,
        unit="×",
        notes=tuple(f"{cell.cell}: {cell.ours_us:.1f} / {cell.theirs_us:.1f} µs = {cell.ratio:.2f}" for cell in cells),
        raw={cell.cell: _raw(cell) for cell in cells},
    )


def _raw(timed: Timed) -> Sequence[float]:
    return timed.ours_us, timed.theirs_us


def _blocks_figure(timed: Timed) -> Figure:
    return Figure(
        name="device_blocks",
        what=f"device time: {timed.cell}, four layers each",
        value=timed.ours_us,
        unit="µs",
        peer=Peer("torch graph", timed.theirs_us, timed.ratio),
        raw={timed.cell: _raw(timed)},
    )


def _norm_figure(timed: Timed) -> Figure:
    return Figure(
        name="device_norm",
        what=f"layer norm and tanh of {timed.cell}: bandwidth ÷ that of a copy in torch",
        value=1 / timed.ratio,
        unit="",
        notes=(f"{timed.ours_us:.1f} µs, the copy {timed.theirs_us:.1f} µs",),
        raw={timed.cell: _raw(timed)},
    )


DEVICE_CELLS = Microbenchmark(
    (
        "device_product",
        "device_product_other",
        "device_mlp",
        "device_mlp_h4096",
        "device_split",
        "device_blocks",
        "device_norm",
        "device_conv2d",
    ),
    _measure,
)
