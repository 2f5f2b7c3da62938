"""`torch.compile` runs nets on the device as they run without it."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch

import fusewire.torch
from tests.torch.nets import Case, cases, losses

_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def compiled(module: Any) -> Any:
    return torch.compile(module, backend=fusewire.torch.compile_backend)


class _Compiled(torch.nn.Module):  # type: ignore[misc]  # PyTorch's types are not seen
    """Compiles a net where it runs, which a deep copy of a compiled one would not do."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net = net
        self._runs: list[Any] = []

    def forward(self, x: torch.Tensor) -> Any:
        if not self._runs:
            self._runs.append(compiled(self.net))
        return self._runs[0](x)


@pytest.mark.parametrize("name", ["mlp_adam", "attention", "encoder"])
def test_a_compiled_net_learns_with_the_losses_of_a_plain_one(name: str) -> None:
    torch._dynamo.reset()
    case = cases()[name]
    other = Case(_Compiled(case.net), case.x, case.y, case.optimizer, case.options)
    assert losses(other, "fusewire", 8) == pytest.approx(losses(case, "fusewire", 8), rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # of modules that PyTorch's compiler imports
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_without_a_backend_graphs_of_the_device_run_on_it(mode: str) -> None:
    torch._dynamo.reset()
    run = torch.compile(lambda x: (x * 2).sin(), mode=mode)
    x = torch.arange(3.0)
    torch.testing.assert_close(run(x.to("fusewire")).cpu(), (x * 2).sin())


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize("make", [lambda x: torch.zeros(2, device="fusewire") + 1, lambda x: x.to("fusewire") + 1])
def test_without_a_backend_graphs_that_make_tensors_of_the_device_run_on_it(make: Any) -> None:
    torch._dynamo.reset()
    run = torch.compile(make)
    for _ in range(4):
        made = run(torch.zeros(2))
        assert (made.device.type, made.tolist()) == ("fusewire", [1.0, 1.0])


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_without_a_backend_graphs_of_other_devices_are_compiled_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    seen = []

    def compile_fx(graph: Any, examples: Any, **options: Any) -> Any:
        seen.append(graph)
        return graph.forward

    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", compile_fx)
    assert torch.compile(lambda x: x * 2)(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(seen) == 1


def test_a_function_of_two_graphs_is_right_at_other_shapes_too() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * 2
        torch._dynamo.graph_break()
        return y + x.cos()

    torch._dynamo.reset()
    run = compiled(function)
    for length in (3, 3, 3, 3, 5, 5, 7):
        x = torch.arange(float(length))
        torch.testing.assert_close(run(x.to("fusewire")).cpu(), function(x))


def test_what_is_written_in_place_is_written() -> None:
    torch._dynamo.reset()
    run = compiled(lambda x: x.add_(1).mul_(2))
    x = torch.zeros(3, device="fusewire")
    for _ in range(5):
        run(x)
    assert x.tolist() == [62.0] * 3


def test_random_numbers_differ_from_call_to_call() -> None:
    torch._dynamo.reset()
    run = compiled(lambda x: torch.nn.functional.dropout(x, 0.5))
    x = torch.ones(64, device="fusewire")
    drawn = {tuple(run(x).tolist()) for _ in range(6)}
    assert len(drawn) == 6


@pytest.mark.parametrize("function", [lambda x: x.view(-1), lambda x: x.t(), lambda x: x.clone()])
def test_what_makes_views_alone_runs_again_and_again(function: Any) -> None:
    torch._dynamo.reset()
    run, x = compiled(function), torch.arange(6.0).reshape(2, 3)
    for _ in range(4):
        torch.testing.assert_close(run(x.to("fusewire")).cpu(), function(x))


def test_tensors_of_the_cpu_are_computed_there() -> None:
    torch._dynamo.reset()
    run = compiled(lambda x: x * 3)
    assert [run(torch.ones(2)).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3


def test_the_installation_gives_the_backend_its_name() -> None:
    points = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]["torch_dynamo_backends"]
    (named,) = points.items()
    point = EntryPoint(named[0], named[1], "torch_dynamo_backends")
    assert (point.name, point.load()) == ("fusewire", fusewire.torch.compile_backend)
