"""The examples of PyTorch learn on the device as on the CPU, and the same by captured steps."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from examples.torch import gpt, lstm, mlp, ppo, resnet, sac, vae

FOLDER = Path(__file__).parents[2] / "examples" / "torch"
TOLERANCE = 1e-5  # relative

# For each example its function, and how many steps stay that near. Roundings grow fastest in the residual network, in
# which a convolution of PyTorch's CPU by another algorithm is 100 times as far off after 15 steps.
EXAMPLES: dict[str, tuple[Callable[..., Any], int]] = {
    "mlp": (mlp.train, 200),
    "gpt": (gpt.train, 40),
    "lstm": (lstm.train, 40),
    "resnet": (resnet.train, 15),
    "vae": (vae.train, 200),
    "ppo": (ppo.train, 4),  # rounds of 32 moves and 4 updates
    "sac": (sac.train, 40),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Lets PyTorch's CPU have one thread, because its threads wait for each other where processors are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_learns_as_on_the_cpu_and_the_same_by_captured_steps(name: str) -> None:
    train, steps = EXAMPLES[name]
    _, *expected = train("cpu", steps)
    _, *found = train("fusewire", steps)
    _, *captured = train("fusewire", steps, captured=True)
    assert found == [pytest.approx(each, rel=TOLERANCE) for each in expected]
    assert captured == found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_an_example_runs_by_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the CPU, because it takes all its steps."""
    monkeypatch.setattr(sys, "argv", [str(path), "cpu"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_poles_of_gymnasium_learn_to_stand() -> None:
    pytest.importorskip("gymnasium")
    _, _, moves = ppo.train("fusewire", 3, captured=True, carts=ppo.GymnasiumCarts("fusewire"))
    assert len(moves) == 3
