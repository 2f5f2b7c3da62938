"""Finds the results of a program that depend on failed operands: only these fail. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from fusewire_protos.in_steps import InSteps, finished
from fusewire_protos.programs.program import Program, Users

MOST_A_STEP = 512  # ops and failed operands


def dependent_ops(program: Program, ops: Iterable[int]) -> dict[int, int]:
    """Returns the ops that depend on some failed ops, these included, each with the failed op.

    In a loop, an op depends on another if it does so in any iteration.
    """
    first = program.first_result
    failed_results = dict.fromkeys([first + op for op in ops], 0)
    failed = finished(first_failed(program, failed_results, is_loop=bool(program.carried)))
    return {op: cause - first for op, (_, cause) in failed.items()}


def first_failed(
    program: Program, failed_operands: Mapping[int, int], *, is_loop: bool = False
) -> InSteps[dict[int, tuple[int, int]]]:
    """Returns a table of the ops that depend on failed operands, by index.

    `failed_operands` has for each of these operands the first iteration that takes a failed value: 0 without a loop.
    The table has for each op the first iteration that depends on such a value, and the operand. Operand numbers count a
    program's inputs, then its scalars, then the results of its ops. A value is carried into the next iteration.

    A client decides how often this runs, so it visits each op once, however many operands have failed, and stops after
    every `MOST_A_STEP` ops or failed operands.
    """
    results = program.first_result
    carried_to: defaultdict[int, list[int]] = defaultdict(list)
    for carried in program.carried if is_loop else ():
        carried_to[carried.source].append(carried.input)
    cause: dict[int, tuple[int, int]] = {}
    # The earliest iteration comes first, and of one iteration the operand that comes first in `failed_operands`.
    reached = [(first, rank, failed, failed) for rank, (failed, first) in enumerate(failed_operands.items())]
    heapify(reached)
    visited = 0
    while reached:
        visited += 1
        if visited % MOST_A_STEP == 0:
            yield
        iteration, rank, failed, operand = heappop(reached)
        if operand in cause:
            continue
        dependent = yield from _spread(program.users, operand, (iteration, failed), cause)
        for number in dependent if carried_to else ():
            for following in carried_to.get(number, ()):
                heappush(reached, (iteration + 1, rank, failed, following))
    return {number - results: first for number, first in cause.items() if number >= results}


def _spread(
    users: Users, operand: int, of_all: tuple[int, int], cause: dict[int, tuple[int, int]]
) -> InSteps[list[int]]:
    """Notes the cause of an operand and of all that depend on it and have no cause yet. Returns their numbers."""
    cause[operand] = of_all
    dependent = [operand]
    for number in dependent:  # grows meanwhile
        for user in users.of(number):
            if user not in cause:
                cause[user] = of_all
                dependent.append(user)
                if len(cause) % MOST_A_STEP == 0:
                    yield
    return dependent
