"""A long training loop holds no more arrays than a short one, and is few programs. The collector of cycles is off."""

from __future__ import annotations

import gc
import json
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional

import fusewire.torch
from fusewire import Session
from fusewire.testing.server_process import ServerProcess
from tests.torch.nets import cases

SHORT, LONG = 20, 1000
HANGS_S = 30.0
OF_READS = 5  # values of reads may live a little longer
MOST_LOOPS, MOST_FRAGMENTS = 2, 8  # up to 4 fragments on a quiet machine; ops that wait on a busy one make others

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


def _live_handles(server: ServerProcess, session: Session) -> int:
    torch.fusewire.synchronize()
    with urllib.request.urlopen(f"http://{server.http}/v1/sessions/{session.id}", timeout=HANGS_S) as answer:
        return int(json.load(answer)["live_handles"])


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", ["mlp_adam", "attention"])
def test_a_thousand_steps_hold_as_many_arrays_as_twenty(
    name: str, is_recorded: bool, server: ServerProcess, session: Session
) -> None:
    train, x, y = _training(name)
    step = fusewire.torch.step(train) if is_recorded else train
    for _ in range(SHORT):
        step(x, y)
    most = _live_handles(server, session) + OF_READS
    for _ in range(LONG):
        step(x, y)
    deadline_s = time.monotonic() + HANGS_S
    while (left := _live_handles(server, session)) > most and time.monotonic() < deadline_s:
        step(x, y)  # a session tells of deaths a little later
    assert left <= most


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
