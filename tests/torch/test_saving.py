"""What `torch.save` has written is loaded to the device, also if it was written from other devices."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn


def _saved(what: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(what, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("made_on", ["cpu", "fusewire"])
@pytest.mark.parametrize("place", ["fusewire", "fusewire:0", torch.device("fusewire"), {"cpu": "fusewire"}])
def test_a_saved_state_is_loaded_to_the_device(made_on: str, place: Any) -> None:
    state = {
        "weight": torch.arange(6.0, device=made_on).reshape(2, 3),
        "turned": torch.arange(6, device=made_on).reshape(2, 3).t(),
        "complex": torch.full((2,), 1 - 2j, device=made_on),
        "half": torch.ones(3, dtype=torch.bfloat16, device=made_on),
    }
    loaded = torch.load(_saved(state), map_location=place)
    assert {each.device.type for each in loaded.values()} == {"fusewire"}
    for name, tensor in state.items():
        torch.testing.assert_close(loaded[name].cpu(), tensor.cpu(), rtol=0, atol=0)


def test_a_saved_state_is_loaded_to_the_cpu() -> None:
    loaded = torch.load(_saved(torch.ones(3, device="fusewire")), map_location="cpu")
    assert loaded.device.type == "cpu"


def test_a_whole_module_is_loaded_to_the_device() -> None:
    layer = nn.Linear(3, 2)
    loaded = torch.load(_saved(layer), map_location="fusewire", weights_only=False)
    assert isinstance(loaded.weight, nn.Parameter)
    x = torch.ones(4, 3)
    torch.testing.assert_close(loaded(x.to("fusewire")).cpu(), layer(x))


def test_another_index_is_refused() -> None:
    with pytest.raises(ValueError, match="one device, fusewire:0"):
        torch.load(_saved(torch.ones(3)), map_location="fusewire:1")


def test_the_format_before_pytorch_1_6_is_loaded_by_way_of_the_cpu() -> None:
    file = _saved(torch.ones(3), _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match='map_location="cpu"'):
        torch.load(file, map_location="fusewire")


@pytest.mark.filterwarnings("ignore")  # of TorchScript and its successor, about themselves
def test_programs_without_python_are_saved_from_the_cpu_alone(tmp_path: Path) -> None:
    layer, x = nn.Linear(3, 2), torch.ones(1, 3)
    torch.jit.save(torch.jit.trace(layer, x), io.BytesIO())
    torch.export.save(torch.export.export(layer, (x,)), io.BytesIO())
    layer, x = layer.to("fusewire"), x.to("fusewire")
    for module in (torch.jit.trace(layer, x), torch.jit.script(layer)):
        for place in (io.BytesIO(), str(tmp_path / "module")):
            with pytest.raises(RuntimeError, match="on the CPU"):
                torch.jit.save(module, place)
    with pytest.raises(RuntimeError, match="on the CPU"):
        torch.export.save(torch.export.export(layer, (x,)), io.BytesIO())
