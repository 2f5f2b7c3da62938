"""Runs one iteration of a row step by step, over blocks of the pool. Device thread.

A step computes one op's result, in a block that is given back after its last use. So an iteration can be stopped
between two steps and begun again later: its inputs are as they were.
"""

from __future__ import annotations

import time

from fusewire_kernels.devices.base import Block
from fusewire_kernels.unfused.steps import Step
from fusewire_server.device.memory.device_memory import Temporaries
from fusewire_server.device.unfused.one_ops import OneOp
from fusewire_server.device.unfused.program import NUMBER_BYTES, OpKind, UnfusedProgram
from fusewire_server.sessions.session import Row, Value

_NO_ADDRESS = 0


class Iteration:
    """The progress of one iteration. `row` is the iteration as a row that is no loop; its results have their blocks.

    Ops with an index in `skipped` do not run.
    """

    def __init__(self, temporaries: Temporaries, unfused: UnfusedProgram, row: Row, skipped: frozenset[int]) -> None:
        self._temporaries = temporaries
        self._unfused = unfused
        self._row = row
        self._skipped = skipped
        program = unfused.program
        self._first_result = program.first_result
        # An input that failed for want of memory has no block; only skipped ops read it.
        read = [_NO_ADDRESS if value.block is None else value.block.address for value in row.inputs]
        self._addresses = [*read, *[_NO_ADDRESS] * (len(program.specs) - len(read))]  # by operand number
        outputs = zip(program.live, row.outputs, strict=True)
        self._output_of = {index: value for index, value in outputs if index not in skipped}
        # Results of an array that a loop changes in place would be written over an input: they replace it at the end.
        self._replacing = {index for index, value in self._output_of.items() if _block(value).address in read}
        self._blocks: dict[int, Block] = {}  # of results that are not live, or that replace an input
        self._has_numbers = not (program.scalars or unfused.constants)  # once some op needs them
        self._constants_address = _NO_ADDRESS
        self._index = 0  # of the op that is next, or under way
        self._starts = 0  # slice starts of the ops before it
        self._steps_done = 0  # of that op
        self._pieces_done = 0  # of that step
        self._result = _NO_ADDRESS  # of that step
        self._arena: Block | None = None  # of that step
        self._locals: list[int] = []  # addresses of that op's values
        self._inner: dict[int, Block] = {}  # blocks of them, by number

    @property
    def op_index(self) -> int:
        """The op that is next, or under way."""
        return self._index

    def go_on(self, until_ns: int) -> bool:
        """Runs steps until the time is over. Returns whether the iteration has ended. Raises OutOfMemory."""
        ops = self._unfused.program.op_count
        while self._index < ops:
            kind = self._unfused.kinds[self._index]
            if self._index not in self._skipped:
                self._begin_op(kind)
                while self._steps_done < len(kind.steps):
                    self._run_piece(*kind.steps[self._steps_done], is_last=self._steps_done + 1 == len(kind.steps))
                    if time.perf_counter_ns() >= until_ns and self._steps_done < len(kind.steps):
                        return False
            self._end_op(kind)
            if time.perf_counter_ns() >= until_ns and self._index < ops:
                return False
        self._replace_inputs()
        return True

    def _begin_op(self, kind: OpKind) -> None:
        if self._steps_done == self._pieces_done == 0:
            operands = self._unfused.program.operands[self._index]
            if not self._has_numbers and (kind.constants or any(map(self._is_scalar, operands))):
                self._put_numbers()
            first = self._constants_address + kind.first_constant * NUMBER_BYTES
            constants = [first + number * NUMBER_BYTES for number in range(kind.constants)]
            self._locals = [*[self._addresses[operand] for operand in operands], *constants]

    def _run_piece(self, step: Step, one_op: OneOp, *, is_last: bool) -> None:
        """Runs a piece of a step, mostly the only one."""
        if self._pieces_done == 0:
            self._result = self._address_of_result(step, is_last=is_last)
            self._arena = self._temporaries.allocate(one_op.arena_bytes) if one_op.arena_bytes else None
        operands = [self._locals[number] for number in step.operands]
        arena = _NO_ADDRESS if self._arena is None else self._arena.address
        starts = self._starts_of_op() if step.call.op.takes_starts else ()
        one_op.run(self._pieces_done, operands, self._result, arena, starts)
        self._pieces_done += 1
        if self._pieces_done == one_op.pieces:
            self._end_step(step)

    def _end_step(self, step: Step) -> None:
        self._locals.append(self._result)
        for block in [self._arena, *[self._inner.pop(number) for number in step.dying]]:
            if block is not None:
                self._temporaries.give_back(block)
        self._steps_done += 1
        self._pieces_done = 0

    def _starts_of_op(self) -> tuple[int, ...]:
        end = self._starts + self._unfused.kinds[self._index].starts
        return self._row.starts[self._starts : end]

    def _address_of_result(self, step: Step, *, is_last: bool) -> int:
        if is_last and self._index in self._output_of and self._index not in self._replacing:
            return _block(self._output_of[self._index]).address
        block = self._temporaries.allocate(step.result_bytes)
        if is_last:
            self._blocks[self._first_result + self._index] = block
        else:
            self._inner[len(self._locals)] = block
        return block.address

    def _end_op(self, kind: OpKind) -> None:
        if self._index not in self._skipped:
            self._addresses[self._first_result + self._index] = self._locals[-1]
        for number in self._unfused.dying[self._index]:
            block = self._blocks.pop(number, None)
            if block is not None:
                self._temporaries.give_back(block)
        self._starts += kind.starts
        self._index += 1
        self._steps_done = 0

    def _replace_inputs(self) -> None:
        for index in self._replacing:
            self._temporaries.become(self._output_of[index], self._blocks[self._first_result + index])

    def _is_scalar(self, operand: int) -> bool:
        return len(self._unfused.program.inputs) <= operand < self._first_result

    def _put_numbers(self) -> None:
        """Writes the scalars and the constants to the device."""
        address = self._temporaries.allocate_filled(self._unfused.numbers(self._row.scalars)).address
        for number in range(len(self._unfused.program.inputs), self._first_result):
            self._addresses[number] = address
            address += NUMBER_BYTES
        self._constants_address = address
        self._has_numbers = True


def _block(value: Value) -> Block:
    assert value.block is not None, "a submission has all its memory before it runs"
    return value.block
