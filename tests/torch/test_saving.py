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


@pytest.mark.parametrize("dtype", [torch.uint32, torch.float8_e5m2])
@pytest.mark.parametrize("weights_only", [True, False])
def test_dtypes_that_the_device_lacks_are_not_loaded_to_it(dtype: torch.dtype, weights_only: bool) -> None:
    with pytest.raises(TypeError, match=str(dtype)):
        torch.load(_saved(torch.ones(3).to(dtype)), map_location="fusewire", weights_only=weights_only)


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


class _Scaled(nn.Module):  # type: ignore[misc]  # PyTorch's types are not seen
    """Has a tensor that is neither a parameter nor a buffer."""

    def __init__(self, factors: torch.Tensor) -> None:
        super().__init__()
        self.factors = factors

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors


class _Listed(nn.Module):  # type: ignore[misc]  # PyTorch's types are not seen
    """Holds tensors in a list, a dict and a tuple."""

    def __init__(self, factors: torch.Tensor, *, kind: str) -> None:
        super().__init__()
        given = {each: factors if each == kind else torch.ones(1) for each in ("list", "dict", "tuple")}
        self.listed = torch.jit.Attribute([given["list"]], list[torch.Tensor])
        self.named = torch.jit.Attribute({"factors": given["dict"]}, dict[str, torch.Tensor])
        self.beside = torch.jit.Attribute((given["tuple"], 1), tuple[torch.Tensor, int])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.listed[0].numel() + self.named["factors"].numel() + self.beside[0].numel()


class _Pair:
    """An object that TorchScript compiles: its fields are part of a module that holds it."""

    def __init__(self, left: torch.Tensor, rights: list[torch.Tensor]) -> None:
        self.left = left
        self.rights = rights


class _Paired(nn.Module):  # type: ignore[misc]  # PyTorch's types are not seen
    """Holds tensors in an object."""

    def __init__(self, factors: torch.Tensor) -> None:
        super().__init__()
        torch.jit.script(_Pair)
        self.pair = torch.jit.Attribute(_Pair(torch.ones(2), [factors]), _Pair)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.pair.left + self.pair.rights[0].numel() / 2


def _scripted(layer: nn.Module, x: torch.Tensor) -> list[Any]:
    traced = torch.jit.trace(layer, x)
    frozen = torch.jit.freeze(torch.jit.trace(layer.eval(), x))
    factors = torch.full_like(x, 2.0)
    of_tensor, closure = torch.jit.trace(_Scaled(factors), x), torch.jit.trace(lambda y: y * factors, x)
    return [traced, torch.jit.script(layer), frozen, of_tensor, closure]


@pytest.mark.filterwarnings("ignore")  # of TorchScript and its successor, about themselves
def test_programs_without_python_are_saved_from_the_cpu_alone(tmp_path: Path) -> None:
    layer, x = nn.Linear(3, 2), torch.ones(1, 3)
    for module in _scripted(layer, x):
        torch.jit.save(module, io.BytesIO())
    torch.export.save(f=io.BytesIO(), ep=torch.export.export(layer, (x,)))
    layer, x = layer.to("fusewire"), x.to("fusewire")
    for module in _scripted(layer, x):
        for place in (io.BytesIO(), str(tmp_path / "module")):
            with pytest.raises(RuntimeError, match="on the CPU"):
                torch.jit.save(module, place)
    for program in (torch.export.export(layer, (x,)), torch.export.export(_Scaled(x + 1), (x,))):
        with pytest.raises(RuntimeError, match="on the CPU"):
            torch.export.save(program, io.BytesIO())
        with pytest.raises(RuntimeError, match="on the CPU"):
            torch.export.save(f=io.BytesIO(), ep=program)
    with pytest.raises(TypeError, match="'ep' parameter"):
        torch.export.save(layer, io.BytesIO())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["list", "dict", "tuple"])
def test_a_program_that_holds_tensors_in_a_container_is_saved_from_the_cpu_alone(kind: str) -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(_Listed(torch.ones(2), kind=kind)), file)
    file.seek(0)
    assert torch.jit.load(file)(torch.ones(1)).tolist() == [5.0]
    outer = torch.jit.script(nn.Sequential(_Listed(torch.ones(2, device="fusewire"), kind=kind)))
    for save in (torch.jit.save, lambda module, to: module._save_to_buffer_for_lite_interpreter()):
        with pytest.raises(RuntimeError, match="on the CPU"):
            save(outer, io.BytesIO())


@pytest.mark.filterwarnings("ignore")
def test_a_program_that_holds_tensors_in_an_object_is_saved_from_the_cpu_alone() -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(_Paired(torch.ones(2))), file)
    file.seek(0)
    assert torch.jit.load(file)(torch.ones(2)).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="on the CPU"):
        torch.jit.save(torch.jit.script(_Paired(torch.ones(2, device="fusewire"))), io.BytesIO())


@pytest.mark.filterwarnings("ignore")
def test_a_traced_function_with_a_number_is_saved() -> None:
    torch.jit.save(torch.jit.trace(lambda x: x * 2, torch.ones(2)), io.BytesIO())
