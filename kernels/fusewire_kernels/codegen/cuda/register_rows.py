"""Decides which values of a row a CUDA kernel keeps in registers. Pure.

A kernel that reduces rows passes through each row once for each phase of reductions, and once more to store results.
If each thread keeps its elements of the row in registers, only one pass reads memory, and functions of an element are
computed once. A thread has up to `ELEMENTS` elements, and a value of an element needs a register of its own. So the
compiler writes the loops over the elements out, and the body must not be long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from fusewire_kernels.codegen.arrays import Arrays
from fusewire_kernels.codegen.cuda.geometry import LONGEST_SHORT_ROW
from fusewire_kernels.codegen.statements import AnalysedKernel
from fusewire_kernels.ops.bodies import HEAVY_WEIGHT
from fusewire_kernels.ops.order import CHUNK, LANES

ELEMENTS = CHUNK // LANES  # elements of a row that a thread may have
MOST_THREADS = LONGEST_SHORT_ROW // ELEMENTS  # threads that share a row; each may have 128 registers
_MOST_WORDS = 2  # registers for each element; with more, a device has too few threads at a time to hide its latency
_MOST_WEIGHT = 60  # of all values of an element; this much becomes about 60 KiB of machine code
_WIDE = ("double", "int64_t")


class Pass(NamedTuple):
    """One pass through a row, for the values `targets`.

    The pass first loads the inputs `loaded` into registers, all of them before it computes, so that the loads are under
    way together. Then, for each element, it takes the values `held` from registers, reads or computes the values
    `made`, and keeps the values `kept` in registers.
    """

    targets: tuple[int, ...]
    loaded: tuple[int, ...]
    held: tuple[int, ...]
    made: tuple[int, ...]
    kept: tuple[int, ...]


class RegisterRows(NamedTuple):
    """The passes of a kernel: one for each phase of reductions, then that of the stores.

    `array_of[value]` is the array of registers that keeps a value, and `arrays` are the types of the arrays. An array
    keeps another value once no pass uses the one before. `are_whole` says that rows consist of whole chunks, and
    `are_narrow` that a few threads share a row.
    """

    passes: tuple[Pass, ...]
    array_of: dict[int, int]
    arrays: tuple[str, ...]
    are_whole: bool = False
    are_narrow: bool = False

    @property
    def words(self) -> int:
        """The registers that an element takes."""
        return sum(2 if array in _WIDE else 1 for array in self.arrays)

    @property
    def blocks(self) -> int:
        """The blocks of `MOST_THREADS` threads that a multiprocessor is to run at a time.

        The compiler gives a thread as many registers as this leaves: 64 or 128.
        """
        return 2 if self.words == 1 else 1


def register_rows(body: AnalysedKernel) -> RegisterRows | None:
    """Returns how a kernel keeps its rows in registers.

    Returns None if the kernel does not reduce rows, or if it should read its rows again: if elements are gathered, or
    if there is too much to keep or to write out.
    """
    kernel = body.kernel
    if not kernel.has_inner or kernel.runs_along_columns or any(node.op == "gather" for node in kernel.nodes):
        return None
    passes = _passes(body)
    rows = _with_arrays(body, passes)
    total_weight = sum(body.weight(value) for each in passes for value in each.made)
    return rows if rows.words <= _MOST_WORDS and total_weight <= _MOST_WEIGHT else None


def _passes(body: AnalysedKernel) -> list[Pass]:
    targets = [_operands_of_reductions(body, phase) for phase in range(body.phases)]
    targets.append(tuple([body.stored[output] for output in body.inner_stores]))
    worth_keeping = _worth_keeping(body, targets)
    passes: list[Pass] = []
    held: set[int] = set()
    for each in targets:
        values = _inner_values(body, each, held)
        loaded = [value for value in values if value in worth_keeping and body.node(value) is None]
        made = [value for value in values if value not in loaded]
        held.update(loaded)
        used = held.intersection((*each, *_operands(body, made)))
        kept = [value for value in made if value in worth_keeping]
        passes.append(Pass(each, tuple(loaded), tuple(sorted(used)), tuple(made), tuple(kept)))
        held.update(kept)
    return passes


def _operands_of_reductions(body: AnalysedKernel, phase: int) -> tuple[int, ...]:
    return tuple(_operands(body, body.reductions(phase)))


def _operands(body: AnalysedKernel, values: Iterable[int]) -> list[int]:
    nodes = [body.node(value) for value in values]
    return [operand for node in nodes if node is not None for operand in node.operands]


def _worth_keeping(body: AnalysedKernel, targets: list[tuple[int, ...]]) -> frozenset[int]:
    """Returns the inputs of the first pass, and the inputs and long computations that several passes use."""
    needed = [_inner_values(body, each, set()) for each in targets]
    uses = Counter(value for values in needed for value in values)
    again = [value for value, count in uses.items() if count > 1]
    heavy = [value for value in again if body.weight(value) >= HEAVY_WEIGHT]
    return frozenset([*heavy, *[value for value in (*needed[0], *again) if body.node(value) is None]])


def _inner_values(body: AnalysedKernel, targets: tuple[int, ...], held: set[int]) -> list[int]:
    return body.needed(targets, is_at_hand=lambda value: not body.is_inner(value) or value in held)


def _with_arrays(body: AnalysedKernel, passes: list[Pass]) -> RegisterRows:
    last_use = {value: number for number, each in enumerate(passes) for value in (*each.held, *each.kept)}
    arrays = Arrays()
    for number, each in enumerate(passes):
        for value in each.loaded:
            arrays.take(value, body.dtype(value))
        arrays.give_back([value for value in each.held if last_use[value] == number])
        for value in each.kept:
            arrays.take(value, body.dtype(value))
    return RegisterRows(tuple(passes), arrays.array_of, tuple(arrays.types))
