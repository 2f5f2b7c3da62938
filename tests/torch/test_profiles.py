"""A profile names the ops of the device as PyTorch does, and the lines of the program that called PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

import fusewire as fw
import fusewire.torch
from fusewire_torch.connection import CONNECTION


def _here() -> int:
    return sys._getframe(1).f_lineno


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
    (segment,) = p.timeline.segments
    names = [name for name in segment.names if name]
    assert names[:2] == ["linear", "tanh"]
    assert {"mean", "tanh_backward", "linear_backward"} <= {*names}
    assert segment.line == f"{Path(__file__).name}:{first + 1}-{last - 1}"
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
    names = {name for segment in p.timeline.segments for name in segment.names}
    assert {"add", "exp", "sum", "log"} <= names


def test_afterwards_kernels_name_nothing() -> None:
    named: list[str] = []
    with fw.profile():
        torch.ones(3, device="fusewire").exp().sum().item()
    profiling = fusewire.torch.session().begin_profile()
    torch.ones(3, device="fusewire").exp().sum().item()  # by no profile of a user, which alone tells kernels
    events = profiling.end("a")
    named += [name for facts in events.programs.values() for name in facts.names]
    assert "" not in named
