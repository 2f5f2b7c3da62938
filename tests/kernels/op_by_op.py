"""Runs one row of a program op by op, as tier 0 does, without stopping between ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusewire_kernels.ops.interpreter import Kernel, OpCache, execute, run_to_end
from fusewire_protos.ops.catalogue import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program

# (op, operand specs, attributes, operand arrays in C order) → the result in C order.
RunInexact = Callable[[Op, Sequence[Spec], Attributes, Sequence[Any]], Any]


def run_op_by_op(
    program: Program,
    library: Any,
    inputs: Sequence[Any],
    scalars: Sequence[int | float],
    starts: Sequence[int],
    run_inexact: RunInexact | None,
    *,
    is_library_exact: bool = True,
) -> list[Any]:
    """The live results in order, each in C order; one may share memory with an input or with another.

    `library` is NumPy or has its interface, `inputs` are its arrays in C order. `run_inexact` None stands for a device
    without a compiler; `is_library_exact` is the device's.
    """
    kernel_of = None if run_inexact is None else partial(_of_dense, library, run_inexact)
    op_cache = OpCache(library, is_library_exact=is_library_exact)
    prepared = run_to_end(op_cache.prepare(program, kernel_of))
    with np.errstate(all="ignore"):
        return run_to_end(execute(prepared, inputs, scalars, starts))


def _of_dense(library: Any, run_inexact: RunInexact, op: Op, specs: tuple[Spec, ...], attributes: Attributes) -> Kernel:
    dense = partial(library.asarray, order="C")
    return lambda *operands: run_inexact(op, specs, attributes, [*map(dense, operands)])
