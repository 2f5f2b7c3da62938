"""What the training figures time: each way trains a net as PyTorch does on the CPU."""

from __future__ import annotations

import re

import pytest

from fusewire.testing.server_process import ServerProcess
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.loops.training import NETS, check_losses
from loadtests.peers.pytorch.training import EAGER, RECORDED, REMOTE, serve

_STEPS = 10


def test_each_way_trains_each_net_as_the_cpu_does(server: ServerProcess) -> None:
    with Worker(serve, REMOTE, server.grpc) as ours, Worker(serve, "cpu") as theirs:
        for net in NETS:
            expected = theirs.ask("losses", net, EAGER, _STEPS)
            for way in (EAGER, RECORDED):
                check_losses(net, way, ours.ask("losses", net, way, _STEPS), expected)
                assert ours.ask("step_us", net, way, 2) > 0


def test_a_wrong_loss_is_told() -> None:
    with pytest.raises(WrongResult, match=re.escape("mlp eager is 1.01 at step 1, and should be 1.0")):
        check_losses("mlp", EAGER, [2.0, 1.01], [2.0, 1.0])
