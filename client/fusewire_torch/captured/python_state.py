"""What the Python of a step depends on, beside its arguments: the settings of its optimizers and its modules.

A replay runs no Python, so it is right only while these are what they were when the step was recorded. PyTorch's own
hooks tell which optimizers and modules a step uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import register_optimizer_step_pre_hook

from fusewire import ArgumentError
from fusewire_torch.storage import DEVICE, is_ours

_SIMPLE = (bool, int, float, str, tuple, type(None))


class Setting(NamedTuple):
    """A value that Python code of the step may look up: `holder[name]`."""

    holder: Any
    name: Any
    value: Any
    owner: str  # whose it is, as text


class Gradient(NamedTuple):
    """A parameter, with its gradient and whether it wants one."""

    parameter: Any
    gradient: Any
    wants_one: bool


class Used:
    """The optimizers and modules that a step has used, in the order of their first use."""

    def __init__(self) -> None:
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.modules: dict[int, torch.nn.Module] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes what the `with` body uses."""
        hooks = (
            register_optimizer_step_pre_hook(lambda each, *_: self.optimizers.setdefault(id(each), each) and None),
            register_module_forward_pre_hook(lambda each, *_: self.modules.setdefault(id(each), each) and None),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def is_equal_to(self, other: Used) -> bool:
        return {*self.optimizers} == {*other.optimizers} and {*self.modules} == {*other.modules}

    def parameters(self) -> list[Any]:
        """Returns the parameters on the device, each once."""
        found = [each for module in self.modules.values() for each in module._parameters.values()]
        groups = [group for optimizer in self.optimizers.values() for group in optimizer.param_groups]
        found += [each for group in groups for each in group["params"]]
        return [*{id(each): each for each in found if each is not None and is_ours(each)}.values()]


class PythonState:
    """The settings of what a step uses, at one time."""

    def __init__(self, used: Used) -> None:
        self.used = used
        self._values: list[Setting] = []  # compared by value
        self._objects: list[Setting] = []  # compared by identity
        self._numbers: list[Setting] = []  # tensors of the CPU of one element, compared by value
        for optimizer in used.optimizers.values():
            self._add_optimizer(optimizer)
        for module in used.modules.values():
            self._add_module(module)

    def change(self) -> str | None:
        """Returns what has changed since, as text, or None."""
        for holder, name, value, owner in self._objects:
            if holder.get(name) is not value:
                return f"{owner} is another object"
        for holder, name, value, owner in self._values:
            if holder.get(name) != value:
                return f"{owner} changes from {value!r} to {holder.get(name)!r}"
        for holder, name, value, owner in self._numbers:
            if holder[name].item() != value:
                return f"{owner} changes from {value!r} to {holder[name].item()!r}"
        return None

    def _add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        kind = type(optimizer).__name__
        attributes = vars(optimizer)
        for name in ("param_groups", "state"):
            self._objects.append(Setting(attributes, name, attributes[name], f"{kind}.{name}"))
        for number, group in enumerate(optimizer.param_groups):
            self._add_all(group, f"{kind}.param_groups[{number}]")
            listed = {"count": len(group["params"])}
            self._values.append(Setting(_Lengths(group), "params", listed["count"], f"the number of {kind}'s params"))
        for state in optimizer.state.values():
            self._add_all(state, f"the state of {kind}")

    def _add_module(self, module: torch.nn.Module) -> None:
        kind = type(module).__name__
        self._add_all(vars(module), kind)
        for holder in (module._parameters, module._buffers, module._modules):
            self._objects += [Setting(holder, name, each, f"{kind}.{name}") for name, each in holder.items()]

    def _add_all(self, holder: Any, owner: str) -> None:
        for name, value in holder.items():
            setting = Setting(holder, name, value, f"{owner}.{name}")
            if isinstance(value, torch.Tensor):
                self._add_tensor(setting)
            elif isinstance(value, _SIMPLE):
                self._values.append(setting)

    def _add_tensor(self, setting: Setting) -> None:
        self._objects.append(setting)
        if setting.value.is_cpu and setting.value.numel() == 1:
            self._numbers.append(setting._replace(value=setting.value.item()))


class _Lengths:
    """Looks up the length of a list by its name."""

    def __init__(self, holder: Any) -> None:
        self._holder = holder

    def get(self, name: str) -> int:
        return len(self._holder[name])


def check_replayable(used: Used) -> None:
    """Raises ArgumentError for an optimizer with state on the CPU, from which it computes other numbers each step."""
    for optimizer in used.optimizers.values():
        for parameter, state in optimizer.state.items():
            kept = [name for name, each in state.items() if isinstance(each, torch.Tensor) and not is_ours(each)]
            if kept and is_ours(parameter):
                kind = type(optimizer).__name__
                raise ArgumentError(
                    f"{kind} keeps {kept[0]!r} on the CPU, and computes other numbers from it at each step, which a "
                    f"replay would not: write {kind}(…, capturable=True), with which it lies on {DEVICE!r}"
                )


@contextmanager
def without_schedulers() -> Iterator[None]:
    """Makes the steps of learning-rate schedulers raise ArgumentError within the `with` body.

    A replay would not run them.
    """

    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise ArgumentError(
            f"{type(self).__name__}.step() within a step that is recorded once: a replay would not run it; call it "
            "after the step"
        )

    kept = [(each, each.step) for each in (LRScheduler, ReduceLROnPlateau)]
    for kind, _ in kept:
        kind.step = refuse
    try:
        yield
    finally:
        for kind, step in kept:
            kind.step = step


def gradients_of(used: Used) -> list[Gradient]:
    return [Gradient(each, each.grad, each.requires_grad) for each in used.parameters()]


def restore(kept: Sequence[Gradient]) -> None:
    """Gives parameters the gradients that they had."""
    for parameter, gradient, _ in kept:
        if parameter.grad is not gradient:
            parameter.grad = gradient
