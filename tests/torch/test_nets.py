"""Nets train on the device as on the CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from fusewire import Session
from tests.torch.nets import cases, losses

STEPS = 20
THREADS = 4
TOLERANCE = 1e-5


@pytest.mark.parametrize("name", cases())
def test_a_net_learns_with_the_losses_of_the_cpu(name: str) -> None:
    expected, found = (losses(cases()[name], device, STEPS) for device in ("cpu", "fusewire"))
    assert found == pytest.approx(expected, abs=TOLERANCE)


def test_threads_that_train_at_once_learn_as_one_that_trains_alone() -> None:
    expected = losses(cases()["mlp_adam"], "cpu", STEPS)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda case: losses(case, "fusewire", STEPS), [cases()["mlp_adam"]] * THREADS))
    assert found == [pytest.approx(expected, abs=TOLERANCE)] * THREADS


@pytest.mark.usefixtures("without_pauses")
def test_a_training_loop_is_few_programs(session: Session) -> None:
    before = session.stats
    losses(cases()["mlp_adam"], "fusewire", 200)
    assert len(session.stats.programs) - len(before.programs) <= 2
    assert torch.fusewire.device_count() == 1
