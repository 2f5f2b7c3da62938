"""Whose turn it is to record."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

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
            recorder.leave()
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
