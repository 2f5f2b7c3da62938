"""Whose turn it is to record, and in which session."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import fusewire.torch
from fusewire import Session
from fusewire.testing.server_process import ServerProcess
from fusewire_torch.connection import CONNECTION

WAIT_S = 20.0
SHORT_S = 0.2


def test_a_kernel_waits_while_another_thread_records() -> None:
    x = torch.ones(3, device="fusewire")
    recorder = CONNECTION.recorder
    assert recorder.take()
    with ThreadPoolExecutor(1) as pool:
        try:
            total = pool.submit(lambda: x + 1)
            with pytest.raises(TimeoutError):
                total.result(SHORT_S)
        finally:
            recorder.release()
            CONNECTION.wake()
        assert total.result(WAIT_S).tolist() == [2, 2, 2]


def test_a_kernel_that_fails_ends_its_turn() -> None:
    with pytest.raises(RuntimeError):
        torch.ones(3, device="fusewire") + torch.ones(4, device="fusewire")
    assert CONNECTION.recorder.thread == 0


def test_a_kernel_may_call_others() -> None:
    x = torch.arange(6.0).to("fusewire")
    assert x.resize_(2, 4).flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert CONNECTION.recorder.thread == 0


def test_tensors_of_two_sessions_keep_theirs_and_cannot_meet(server: ServerProcess, session: Session) -> None:
    old = torch.ones(3, device="fusewire")
    with fusewire.torch.connect(server.grpc) as other:
        try:
            new = torch.full((3,), 2.0, device="fusewire")
            assert other is not session
            meetings: tuple[Callable[[], Any], ...] = (
                lambda: old + new,
                lambda: torch.cat([old, new]),
                lambda: old @ new,
                lambda: old[:2].copy_(new[:2]),
            )
            for call in meetings:
                with pytest.raises(RuntimeError, match="different sessions"):
                    call()
            assert (old * 3).tolist() == [3.0] * 3
            assert (new * 3).tolist() == [6.0] * 3
            assert (old.cpu().to("fusewire") + new).tolist() == [3.0] * 3
        finally:
            CONNECTION.use(session)
    assert (old + torch.ones_like(old)).tolist() == [2.0] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.to("fusewire:1"),
        lambda _: torch.ones(3, device="fusewire:1"),
        lambda _: torch.tensor([1.0], device="fusewire:2"),
        lambda x: torch.empty_like(x, device="fusewire:1"),
    ],
)
def test_another_device_is_refused(call: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(RuntimeError, match="has one device, fusewire:0"):
        call(torch.ones(3, device="fusewire"))
    with pytest.raises(ValueError, match="has one device, fusewire:0"):
        torch.fusewire.set_device(1)
    assert torch.fusewire.device_count() == 1
    assert torch.ones(1, device="fusewire:0").device == torch.device("fusewire", 0)
