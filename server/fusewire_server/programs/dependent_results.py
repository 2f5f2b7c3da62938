"""Finds the results of a program that depend on failed operands: only these fail. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from fusewire_protos.programs.program import Program


def dependent_ops(program: Program, ops: Iterable[int]) -> dict[int, int]:
    """Returns the ops that depend on some failed ops, these included, each with the failed op.

    In a loop, an op depends on another if it does so in any iteration.
    """
    first = program.first_result
    failed = first_failed(program, dict.fromkeys([first + op for op in ops], 0), is_loop=bool(program.carried))
    return {op: cause - first for op, (_, cause) in failed.items()}


def first_failed(
    program: Program, failed_operands: Mapping[int, int], *, is_loop: bool = False
) -> dict[int, tuple[int, int]]:
    """Returns a table of the ops that depend on failed operands, by index.

    `failed_operands` has for each of these operands the first iteration that takes a failed value: 0 without a loop.
    The table has for each op the first iteration that depends on such a value, and the operand. Operand numbers count a
    program's inputs, then its scalars, then the results of its ops. A value is carried into the next iteration.

    A client decides how often this runs, so it visits each op once, however many operands have failed.
    """
    users, results = program.users, program.first_result
    carried_to: defaultdict[int, list[int]] = defaultdict(list)
    for carried in program.carried if is_loop else ():
        carried_to[carried.source].append(carried.input)
    cause: dict[int, tuple[int, int]] = {}
    # The earliest iteration comes first, and of one iteration the operand that comes first in `failed_operands`.
    reached = [(first, rank, failed, failed) for rank, (failed, first) in enumerate(failed_operands.items())]
    heapify(reached)
    while reached:
        iteration, rank, failed, operand = heappop(reached)
        if operand in cause:
            continue
        cause[operand] = of_all = iteration, failed
        dependent = [operand]
        for number in dependent:  # grows meanwhile
            for user in users[number]:
                if user not in cause:
                    cause[user] = of_all
                    dependent.append(user)
            for following in carried_to.get(number, ()):
                heappush(reached, (iteration + 1, rank, failed, following))
    return {number - results: first for number, first in cause.items() if number >= results}
