"""A long training loop holds no more arrays and memory than a short one, and is few programs.

The collector of cycles is off. `FUSEWIRE_TORCH_STEPS=10000` makes the loops ten times as long.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import fusewire.torch
from fusewire import Session
from fusewire.testing.server_process import ServerProcess
from tests.torch.live_handles import assert_long_loops_leave_no_more
from tests.torch.nets import cases

SHORT, LONG = 20, int(os.environ.get("FUSEWIRE_TORCH_STEPS", "1000"))
MOST_LOOPS, MOST_FRAGMENTS = 2, 5
MOST_GROWTH_BYTES = 24 << 20  # of a process in the second half of a loop; a kilobyte a step would be ten in 10,000

Train = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _training(name: str) -> tuple[Train, torch.Tensor, torch.Tensor]:
    """Returns a step of one of the nets, and its data on the device."""
    case = cases()[name]
    net = case.net.to("fusewire")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=True)

    def train(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return train, case.x.to("fusewire"), case.y.to("fusewire")


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", ["mlp_adam", "attention"])
def test_a_thousand_steps_hold_as_many_arrays_as_twenty(
    name: str, is_recorded: bool, server: ServerProcess, session: Session
) -> None:
    train, x, y = _training(name)
    step = fusewire.torch.step(train) if is_recorded else train

    def run(steps: int) -> None:
        for _ in range(steps):
            step(x, y)

    assert_long_loops_leave_no_more(run, SHORT, LONG, server, session)


def _resident_bytes(pid: int) -> int:
    """Returns how much memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", ["mlp_adam", "attention"])
def test_a_long_loop_takes_no_more_memory_on_either_side(name: str, is_recorded: bool, server: ServerProcess) -> None:
    train, x, y = _training(name)
    step = fusewire.torch.step(train) if is_recorded else train
    processes = (os.getpid(), server.pid)
    for _ in range(LONG // 2):
        step(x, y)
    torch.fusewire.synchronize()
    before = [_resident_bytes(each) for each in processes]
    for _ in range(LONG // 2):
        step(x, y)
    torch.fusewire.synchronize()
    grown = [_resident_bytes(each) - early for each, early in zip(processes, before, strict=True)]
    assert max(grown) <= MOST_GROWTH_BYTES, grown


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("name", ["mlp_adam", "attention"])
def test_a_loop_of_any_length_is_few_programs(name: str, session: Session) -> None:
    train, x, y = _training(name)
    loops, fragments = set(session.stats.programs), set(session.stats.fragment_programs)
    for count in (SHORT, LONG):
        for _ in range(count):
            train(x, y)
        torch.fusewire.synchronize()
    assert len(set(session.stats.programs) - loops) <= MOST_LOOPS
    assert len(set(session.stats.fragment_programs) - fragments) <= MOST_FRAGMENTS
