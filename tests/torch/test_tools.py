"""PyTorch's own tools work: its profiler, checkpoints of activations, loaders of data, processes and asyncio."""

from __future__ import annotations

import asyncio

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.benchmark import Timer
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import fusewire.torch
from fusewire.testing.server_process import ServerProcess
from fusewire_torch.connection import CONNECTION


def test_the_profiler_sees_the_ops_of_both_directions() -> None:
    layer = nn.Linear(4, 2).to("fusewire")
    x = torch.ones(3, 4, device="fusewire")
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        layer(x).tanh().sum().backward()
    counts = {each.key: each.count for each in seen.key_averages()}
    assert counts["aten::tanh"] == 1
    assert {"aten::linear", "aten::sum", "aten::tanh_backward", "aten::linear_backward"} <= {*counts}
    shapes = [each.input_shapes for each in seen.events() if each.name == "aten::tanh"]
    assert shapes == [[[3, 2]]]


def test_programs_of_any_accelerator_find_this_one() -> None:
    device = torch.accelerator.current_accelerator()
    assert device is not None
    assert device.type == "fusewire"
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    module = torch.get_device_module(device)
    module.synchronize()
    module.empty_cache()
    assert module.is_bf16_supported()


def test_without_a_session_there_is_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONNECTION, "session", None)
    torch.accelerator.synchronize()
    assert CONNECTION.session is None


@pytest.mark.parametrize("device", ["cpu", "fusewire"])
def test_the_timer_of_benchmarks_times_what_the_device_does(device: str) -> None:
    x = torch.ones(3, device=device)
    assert Timer("x + x", globals={"x": x}).timeit(3).mean > 0


def test_checkpointed_activations_give_the_gradients_of_kept_ones() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 8)).to("fusewire")
    x = torch.randn(4, 8, device="fusewire")
    found = []
    for is_checkpointed in (False, True):
        torch.manual_seed(1)
        block.zero_grad()
        result = checkpoint(block, x, use_reentrant=False) if is_checkpointed else block(x)
        result.square().sum().backward()
        found.append([each.grad.cpu() for each in block.parameters() if each.grad is not None])
    assert len(found[0]) == 4
    torch.testing.assert_close(*found, rtol=0, atol=0)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_pins_memory_gives_batches_to_move(workers: int) -> None:
    loader = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=4, pin_memory=True, num_workers=workers)
    assert [batch.to("fusewire", non_blocking=True).tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5]]


def test_memory_that_is_pinned_is_a_copy() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.pin_memory()
    (y * 2).sum().backward()
    assert x.is_leaf
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * 3
    with torch.no_grad():
        y += 1
    assert x.tolist() == [1.0] * 3


def _learn_in_a_process(rank: int, target: str) -> None:
    fusewire.torch.connect(target)
    weight = torch.full((2,), float(rank), device="fusewire", requires_grad=True)
    (weight * weight).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0 * rank] * 2


def test_spawned_processes_have_sessions_of_their_own(server: ServerProcess) -> None:
    torch.multiprocessing.spawn(_learn_in_a_process, (server.grpc,), nprocs=2)


def test_tasks_of_asyncio_take_turns_within_a_step() -> None:
    async def learn(start: float) -> float:
        weight = torch.tensor(start, device="fusewire", requires_grad=True)
        for _ in range(20):
            loss = (weight - 1).square()
            await asyncio.sleep(0)
            (gradient,) = torch.autograd.grad(loss, weight)
            await asyncio.sleep(0)
            with torch.no_grad():
                weight -= 0.25 * gradient
        return await asyncio.to_thread(weight.item)

    async def all_learn() -> list[float]:
        return await asyncio.gather(*[learn(float(start)) for start in range(4)])

    assert all(abs(found - 1) < 1e-4 for found in asyncio.run(all_learn()))
