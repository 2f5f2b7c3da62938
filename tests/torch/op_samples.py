"""Runs the samples of PyTorch's own tables on the CPU and on the device, and compares the results.

The tables are `op_db`, `module_db` and `optim_db`. Modules and optimizers run in float32.

python -m tests.torch.op_samples                    # all; writes declared_ops.txt and the table of docs/torch.md
python -m tests.torch.op_samples --ops add,cumsum   # some; prints what fails
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any
from unittest import mock

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import fusewire.torch
from fusewire.testing import serve_subprocess
from fusewire_torch.dispatch.registration import decomposed
from tests.torch.module_entries import MODULES
from tests.torch.optimizer_entries import OPTIMIZERS

DEVICE = "fusewire"
PASSED, FAILED, REFUSED, NONE = "passed", "failed", "refused", "no samples"
DECLARED = Path(__file__).with_name("declared_ops.txt")
_DOCUMENT = Path(__file__).parents[2] / "docs" / "torch.md"
_FURTHER: dict[str, Sequence[Any]] = {"modules": MODULES, "optimizers": OPTIMIZERS}
_OPS_IN_FLOAT32 = "ops in float32"
_BEGIN, _END = "<!-- counts -->", "<!-- end of counts -->"
# How far results of float32 may differ, as in PyTorch's own comparison of devices, which allows ten times as much.
TOLERANCE = {torch.float32: 1e-4, torch.complex64: 1e-4, torch.float16: 1e-2, torch.bfloat16: 3e-2}
# Small elements of these are differences of great ones: the CPU's float32 is 3e-4 from float64, and the device 1e-4.
ROUGH = {"matrix_exp": 1e-3}
UNDEFINED = ("empty", "new_empty")  # the elements of what these ops return are undefined: shapes and dtypes count
# Their indices of equal elements are not determined.
TIES = ("argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk")
# Their further operands stay on the CPU on all devices.
ON_CPU = ("tensor_split",)


@dataclass
class Outcome:
    """What the samples of an op gave. `sample` is the first one that failed or was refused."""

    name: str
    state: str = NONE
    samples: int = 0
    message: str = ""
    sample: str = ""
    is_decomposed: bool = False


class NotComparable(Exception):
    """A sample fails on the CPU too, or has tensors of a layout that the device does not have."""


class _Decompositions(TorchDispatchMode):  # type: ignore[misc]  # PyTorch ships no types that are seen
    """Sees whether an op runs a decomposition of PyTorch. On the CPU it would break PyTorch's tensors of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.is_used = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.is_used = self.is_used or func.name().removeprefix("aten::") in decomposed
        return func(*args, **(kwargs or {}))


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def declared() -> list[str]:
    """Returns the names of the ops that pass all samples in float32, as the last run of this file has found them."""
    return DECLARED.read_text(encoding="utf-8").split()


def run_op(op: Any, dtype: torch.dtype, *, most: int, backward: bool = True) -> Outcome:
    """Runs the samples of an op, at most `most`, until one fails."""
    outcome = Outcome(full_name(op))
    _run_samples(op, dtype, most, backward, outcome)
    return outcome


def _run_samples(op: Any, dtype: torch.dtype, most: int, backward: bool, outcome: Outcome) -> None:
    with_grad = backward and (dtype.is_floating_point or dtype.is_complex) and op.supports_autograd
    torch.manual_seed(0)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=with_grad):
        if outcome.samples >= most:
            return
        mode = _Decompositions()
        try:
            check_sample(op, sample, dtype, with_grad, mode)
        except NotComparable:
            continue
        except Exception as error:  # noqa: BLE001  # whatever an op raises is what is reported
            is_refused = isinstance(error, NotImplementedError) or "has no dtype" in str(error)
            outcome.state = REFUSED if is_refused else FAILED
            outcome.message, outcome.sample = f"{type(error).__name__}: {error}", _described(sample)
            return
        outcome.samples += 1
        outcome.state = PASSED
        outcome.is_decomposed = outcome.is_decomposed or mode.is_used


def _described(sample: Any) -> str:
    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        strides = value.stride() if value.layout is torch.strided else value.layout
        return f"<{tuple(value.shape)} {value.dtype} {strides}>"

    return str(tree_map(one, ((sample.input, *sample.args), sample.kwargs)))[:600]


def check_sample(op: Any, sample: Any, dtype: torch.dtype, with_grad: bool, mode: Any) -> None:
    """Raises what the device raises, or AssertionError if its results are not those of the CPU.

    `mode` is active while the device runs.
    """
    expected, expected_inputs = _on_cpu(op, sample)
    moved = _moved_sample(op, sample)
    with mode:
        found, inputs = _run(op, moved)
    if op.name.startswith(UNDEFINED):
        _compare_shapes(found, expected)
        return
    rtol, atol = _tolerance(op, dtype)
    if op.name in TIES and (dtype is not torch.float32 or op.name in ("mode", "topk")):
        # The gradient goes to the element of the index, so it is not determined either.
        found, expected, with_grad = _values(found), _values(expected), with_grad and dtype is torch.float32
    try:
        _compare(found, expected, rtol, atol, "forward")
    except AssertionError:
        if not _is_random(op, sample, expected):
            raise
        _compare_shapes(found, expected)
        return
    if with_grad:
        wanted = _gradients_on_cpu(expected, expected_inputs)
        gradients = _gradients(found, inputs)
        for number, each in enumerate(expected_inputs):
            if each._base is not None and wanted[number] is None:  # a view that was made within `no_grad` gets none
                gradients[number] = None
        _compare(gradients, wanted, rtol, atol, "backward")
        with mode:  # later: an op that raises within a mode while gradients are computed would end the process
            _gradients(found, inputs)


def _on_cpu(op: Any, sample: Any) -> tuple[Any, list[torch.Tensor]]:
    """Returns results and inputs on the CPU. Raises NotComparable."""
    try:
        found = _run(op, sample)
    except Exception as error:
        raise NotComparable from error
    if not _is_strided((sample.input, sample.args, sample.kwargs, found[0])):
        raise NotComparable
    return found


def _gradients_on_cpu(result: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor | None]:
    try:
        return _gradients(result, inputs)
    except Exception as error:
        raise NotComparable from error


def _values(results: Any) -> Any:
    """Returns the first of several results, which has the values; the second has their indices."""
    return tree_flatten(results)[0][:1] if isinstance(results, tuple) else []


def _moved_sample(op: Any, sample: Any) -> SampleInput:
    further = (sample.args, sample.kwargs)
    args, kwargs = further if op.name in ON_CPU else tree_map(_moved, further)
    process = sample.output_process_fn_grad
    return SampleInput(tree_map(_moved, sample.input), args=args, kwargs=kwargs, output_process_fn_grad=process)


def _is_random(op: Any, sample: Any, expected: Any) -> bool:
    """Returns whether one of a few other seeds gives other results on the CPU. Few draws may give equal ones."""
    expected = tree_map(lambda value: value.clone() if isinstance(value, torch.Tensor) else value, expected)
    for seed in range(1, 5):
        other, _ = _run(op, sample, seed)
        pairs = zip(tree_flatten(expected)[0], tree_flatten(other)[0], strict=False)
        if any(isinstance(x, torch.Tensor) and (x.shape != y.shape or not torch.equal(x, y)) for x, y in pairs):
            return True
    return False


def _is_strided(values: Any) -> bool:
    return all(each.layout is torch.strided for each in tree_flatten(values)[0] if isinstance(each, torch.Tensor))


def _moved(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        moved = value.detach()
        if value.is_contiguous() and not value.storage_offset():
            moved = moved.to(DEVICE)
        else:  # as a view of all the storage
            whole = moved.as_strided((value.untyped_storage().nbytes() // value.element_size(),), (1,), 0)
            moved = whole.to(DEVICE).as_strided(value.shape, value.stride(), value.storage_offset())
        return moved.requires_grad_(value.requires_grad and value.is_leaf)
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device(DEVICE)
    return value


def _run(op: Any, sample: Any, seed: int = 0) -> tuple[Any, list[torch.Tensor]]:
    torch.manual_seed(seed)
    with mock.patch.object(common_methods_invocations, "wrapper_set_seed", _without_seed):
        result = op.op(sample.input, *sample.args, **sample.kwargs)
    leaves = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    inputs = [each for each in leaves if isinstance(each, torch.Tensor) and each.requires_grad and each.is_leaf]
    return sample.output_process_fn_grad(result), inputs


def _without_seed(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls an op without the seed that its entry sets, so that another seed tells whether it draws numbers."""
    return function(*arguments, **options)


def _gradients(result: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor | None]:
    outputs = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor) and each.requires_grad]
    if not outputs or not inputs:
        return []
    weights = [_weights_of(each) for each in outputs]
    return list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True, retain_graph=True))


def _weights_of(output: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    wide = torch.complex64 if output.is_complex() else torch.float32
    return torch.rand(output.shape, generator=generator, dtype=wide).to(output.dtype).to(output.device)


def _compare(found: Any, expected: Any, rtol: float | None, atol: float | None, what: str) -> None:
    mine, theirs = tree_flatten(found)[0], tree_flatten(expected)[0]
    assert len(mine) == len(theirs), f"{what}: {len(mine)} results, not {len(theirs)}"
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(
                one.detach().cpu(),
                other.detach(),
                rtol=rtol if other.dtype in TOLERANCE else None,
                atol=atol if other.dtype in TOLERANCE else None,
                equal_nan=True,
                msg=lambda text, number=number: f"{what} {number}: {text}",
            )
        elif isinstance(other, float):
            assert torch.isclose(torch.tensor(one), torch.tensor(other), equal_nan=True), f"{what}: {one}, not {other}"
        else:
            assert one == other, f"{what} {number}: {one}, not {other}"


def _compare_shapes(found: Any, expected: Any) -> None:
    for one, other in zip(tree_flatten(found)[0], tree_flatten(expected)[0], strict=True):
        if isinstance(other, torch.Tensor):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), f"{one.shape}, not {other.shape}"


def _tolerance(op: Any, dtype: torch.dtype) -> tuple[float | None, float | None]:
    """Returns the relative and the absolute tolerance: ours, or those of the OpInfo if they are larger."""
    if dtype not in TOLERANCE:
        return None, None
    rtol = atol = max(TOLERANCE[dtype], ROUGH.get(op.name, 0.0))
    for each in op.decorators or ():
        for decorator in getattr(each, "decorators", [each]):
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                rtol, atol = max(rtol, decorator.d[dtype].rtol), max(atol, decorator.d[dtype].atol)
    return rtol, atol


def run_all(table: Sequence[Any], dtype: torch.dtype, names: Sequence[str], *, most: int) -> list[Outcome]:
    """Runs all ops of a table that know a dtype on the CPU, or those with one of these names; prints what fails."""
    outcomes = []
    for op in table:
        is_wanted = not names or full_name(op) in names or op.name in names
        if not is_wanted or dtype not in op.supported_dtypes("cpu"):
            continue
        outcome = run_op(op, dtype, most=most)
        outcomes.append(outcome)
        if outcome.state == FAILED or (names and outcome.state != PASSED):
            print(
                f"{dtype} {outcome.name} {outcome.state}: {outcome.message[:500]}; {outcome.sample[:300]}", flush=True
            )
    return outcomes


def _write_document(found: dict[str, list[Outcome]]) -> None:
    rows = [
        "| table | entries | pass all samples | of these by decompositions | refused: no kernel | fail |",
        "|---|" + "---:|" * 5,
    ]
    for name, outcomes in found.items():
        counts = Counter(each.state for each in outcomes if each.state != NONE)
        by_parts = sum(each.is_decomposed for each in outcomes if each.state == PASSED)
        columns = [counts.total(), counts[PASSED], by_parts, counts[REFUSED], counts[FAILED]]
        rows.append(f"| {name} | " + " | ".join(map(str, columns)) + " |")
    lists = []
    for title, state in (("Refused", REFUSED), ("Failing", FAILED)):
        names = sorted(f"`{each.name}`" for each in found[_OPS_IN_FLOAT32] if each.state == state)
        if names:
            lists += ["", *wrap(f"{title} in float32: {', '.join(names)}.", 120, break_on_hyphens=False)]
    text = _DOCUMENT.read_text(encoding="utf-8")
    head, tail = text[: text.index(_BEGIN)], text[text.index(_END) :]
    _DOCUMENT.write_text("\n".join([head + _BEGIN, *rows, *lists, tail]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--ops", default="", help="names, separated by commas; without it all, and the files are written"
    )
    parser.add_argument("--dtypes", default="float32,complex64,bfloat16,float16,int64,bool")
    parser.add_argument("--most", type=int, default=12, help="samples of an op")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name in options.ops.split(",") if name]
    dtypes = [getattr(torch, name) for name in options.dtypes.split(",")]
    tables = [(_title(dtype), op_db, dtype) for dtype in dtypes]
    tables += [(f"{name} in float32", table, torch.float32) for name, table in _FURTHER.items()]
    found: dict[str, list[Outcome]] = {}
    with serve_subprocess("cpu") as server:
        fusewire.torch.connect(server.grpc)
        for title, table, dtype in tables:
            found[title] = run_all(table, dtype, names, most=options.most)
            decomposing = sum(each.is_decomposed for each in found[title])
            states = dict(Counter(each.state for each in found[title]))
            print(title, states, f"by decompositions: {decomposing}", flush=True)
            if not names and _OPS_IN_FLOAT32 in found:
                _write_files(found)


def _title(dtype: torch.dtype) -> str:
    return f"ops in {str(dtype).removeprefix('torch.')}"


def _write_files(found: dict[str, list[Outcome]]) -> None:
    passed = sorted(each.name for each in found[_OPS_IN_FLOAT32] if each.state == PASSED)
    DECLARED.write_text("\n".join(passed) + "\n", encoding="utf-8")
    _write_document(found)


if __name__ == "__main__":
    main()
