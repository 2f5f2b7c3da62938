"""`torch.compile`: each graph that PyTorch finds in a program of the device becomes a step that is recorded once.

PyTorch's own compiler follows the Python, guards what it depends on, and hands over graphs of ops, forward and
backward. So a graph needs no code of ours but `step`: its first call runs plainly, the next two are recorded, and later
ones are replayed. The modules of the compiler are imported at the first use, because that takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import chain
from typing import Any, cast

import torch

from fusewire import ArgumentError, RequestError
from fusewire_torch.captured.step import step
from fusewire_torch.storage import is_ours


def compile_backend(graph: Any, examples: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Returns what runs a graph of ops, with its gradients. `torch.compile(backend=…)` takes this function."""
    from torch._dynamo.backends.common import aot_autograd  # noqa: PLC0415  # see above

    compiled: Callable[..., Any] = aot_autograd(fw_compiler=_recorded_once)(graph, examples, **options)
    return compiled


def teach_compiling() -> None:
    """Gives PyTorch's default compiler, which makes code for this machine, the branch for graphs of the device."""
    inductor = torch._TorchCompileInductorWrapper
    inductor.__call__ = _or_recorded_once(inductor.__call__)


def _or_recorded_once(compile_graph: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compile_graph)
    def compiled(self: Any, graph: Any, examples: Sequence[Any], **options: Any) -> Callable[..., Any]:
        made = (node.meta.get("example_value") for node in graph.graph.nodes)
        if any(isinstance(each, torch.Tensor) and is_ours(each) for each in chain(examples, made)):
            return compile_backend(graph, examples)
        return cast("Callable[..., Any]", compile_graph(self, graph, examples, **options))

    return compiled


def _recorded_once(graph: Any, _examples: Sequence[Any]) -> Callable[..., Any]:
    """Returns the function that runs a graph, and takes a list that it may clear."""
    recorded, is_step = step(graph.forward), True

    def run(given: list[Any]) -> Any:
        nonlocal is_step
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        if is_step and tensors and all(is_ours(each) for each in tensors):
            try:
                return recorded(*[each.detach() if isinstance(each, torch.Tensor) else each for each in given])
            except (ArgumentError, RequestError):  # it returns views alone, for instance; nothing has been written yet
                is_step = False
        return graph.forward(*given)

    run._boxed_call = True  # type: ignore[attr-defined]  # by which PyTorch knows that it takes a list
    return run
