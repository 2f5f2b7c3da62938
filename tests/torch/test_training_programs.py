"""Programs that train in many ways see on the device what they see on the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.torch.training_programs import PROGRAMS, Program

TOLERANCE = 1e-4


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by PyTorch itself
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_sees_the_figures_of_the_cpu(program: Program) -> None:
    figures = []
    for device in ("cpu", "fusewire"):
        torch.manual_seed(0)
        figures.append(program(device))
    assert figures[1] == pytest.approx(figures[0], rel=TOLERANCE, abs=TOLERANCE)
