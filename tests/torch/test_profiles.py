"""A profile names the ops of the device as PyTorch does, and the lines of the program that called PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import fusewire as fw
import fusewire.torch
from fusewire._profile import collector
from fusewire_torch.connection import CONNECTION


def _here() -> int:
    return sys._getframe(1).f_lineno


def _names(p: fw.Profile) -> list[str]:
    return [name for segment in p.timeline.segments for name in segment.names if name]


def test_a_step_is_told_in_pytorchs_words() -> None:
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh()).to("fusewire")
    points = torch.ones(3, 5, device="fusewire")
    fusewire.torch.session()
    model(points).sum().item()  # what was recorded before is not told
    with fw.profile() as p:
        first = _here()
        loss = model(points).square().mean()
        loss.backward()
        last, value = _here(), loss.item()
    assert value > 0
    names = _names(p)
    assert names[:2] == ["linear", "tanh"]
    assert {"mean", "tanh_backward", "linear_backward"} <= {*names}
    lines = {each.line.removeprefix(f"{Path(__file__).name}:") for each in p.timeline.segments}
    # Several, if the thread paused. The ops of autograd's thread have the line that waits for them.
    assert {line for each in lines for line in each.split("-")} == {str(first + 1), str(last - 1)}
    (read,) = [each for each in p.timeline.blocks if each.kind == "read"]
    assert read.line == f"{Path(__file__).name}:{last}"
    assert p.timeline.counts["threads"] == 1


def test_ops_of_another_session_keep_their_own_names() -> None:
    x = torch.ones(3, device="fusewire")
    with fw.profile() as p:
        (x + 1).exp().sum().item()
        own = CONNECTION.session
        assert own is not None
        fw.log(own.array([1.0, 2.0])).numpy()
    assert {"add", "exp", "sum", "log"} <= {*_names(p)}


def test_afterwards_kernels_name_nothing() -> None:
    named: list[str] = []
    with fw.profile():
        torch.ones(3, device="fusewire").exp().sum().item()
    profiling = fusewire.torch.session().begin_profile()
    torch.ones(3, device="fusewire").exp().sum().item()  # by no profile of a user, which alone tells kernels
    events = profiling.end("a", None)
    named += [name for facts in events.programs.values() for name in facts.names]
    assert "" not in named


def test_of_many_steps_the_first_are_named_and_a_new_program_later_is_named_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "_NAMED_CALLS", 20)
    x = torch.ones(3, device="fusewire")
    with fw.profile() as p:
        for _ in range(30):
            x.exp().sum().item()
        for _ in range(3):
            x.square().mean().item()
    names = _names(p)
    assert {"exp", "sum"} <= {*names}
    assert names[-2:] == ["pow", "mean"]
