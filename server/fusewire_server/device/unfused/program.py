"""A program as tier 0 runs it: the steps of its ops, and what computes each of them. Device thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fusewire_kernels.plan.slots import bits_of, packer
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.steps import Step, dying_results, steps_of
from fusewire_protos.ops.signatures import Signature
from fusewire_protos.programs.program import Program
from fusewire_server.device.unfused.one_ops import NeverComputed, OneOp, OneOps

NUMBER_BYTES = 64  # of device memory for each scalar and constant, because kernels expect aligned operands


class OpKind(NamedTuple):
    """The steps of all ops of one signature. `first_constant` is the number of their first constant in the program."""

    steps: Sequence[tuple[Step, OneOp]]
    constants: int
    first_constant: int
    starts: int


class UnfusedProgram:
    """The steps of a program, prepared once for all its rows. The fields have their values once it is ready."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.is_ready = False
        self.refused: dict[str, list[int]] = {}  # why ops can never run -> their indices
        self.kinds: list[OpKind] = []  # of each op
        self.dying: list[tuple[int, ...]] = []  # of each op, the operand numbers that no later op reads
        self.constants = b""  # as device memory holds them
        self._packers = [packer(dtype) for dtype in program.scalars]
        self._found: dict[Signature, OpKind | NeverComputed] = {}

    def prepare(self, one_ops: OneOps, lacking: set[OneOpCall]) -> Iterator[None]:
        """Finds what computes each step: of one signature each time the iterator goes on.

        Adds the calls whose kernels are missing to `lacking`. If there are none, the program is ready at the end.
        """
        for signature in self.program.distinct:
            if signature not in self._found:
                kind = self._kind(signature, one_ops, lacking)
                if kind is not None:
                    self._found[signature] = kind
            yield
        if not lacking and not self.is_ready:
            self._finish()

    def _kind(self, signature: Signature, one_ops: OneOps, lacking: set[OneOpCall]) -> OpKind | NeverComputed | None:
        """Returns the kind of a signature; that there is none; or None while kernels are missing."""
        constants, steps = steps_of(signature)
        found = [one_ops.find(step.call) for step in steps]
        missing = [step.call for step, one_op in zip(steps, found, strict=True) if one_op is None]
        computing: list[tuple[Step, OneOp]] = []
        for step, one_op in zip(steps, found, strict=True):
            if isinstance(one_op, NeverComputed):
                return NeverComputed(f"no kernel for {step.call.op.name}: {one_op.reason}")
            if one_op is not None:
                computing.append((step, one_op))
        if missing:
            lacking.update(missing)
            return None
        first_constant = len(self.constants) // NUMBER_BYTES
        self.constants += b"".join([_as_bytes(bits_of(*constant)) for constant in constants])
        return OpKind(computing, len(constants), first_constant, signature.starts)

    def numbers(self, scalars: Sequence[int | float]) -> bytes:
        """Returns the scalars of a row, and behind them the constants, each at a multiple of `NUMBER_BYTES`."""
        packed = [_as_bytes(pack(value)) for pack, value in zip(self._packers, scalars, strict=True)]
        return b"".join([*packed, self.constants])

    def _finish(self) -> None:
        program, refused = self.program, defaultdict(list)
        for index, signature in enumerate(program.signatures):
            kind = self._found[signature]
            if isinstance(kind, NeverComputed):
                refused[kind.reason].append(index)
                kind = OpKind((), 0, 0, signature.starts)
            self.kinds.append(kind)
        self.refused = dict(refused)
        self.dying = dying_results(program)
        self.is_ready = True


def _as_bytes(bits: int) -> bytes:
    return bits.to_bytes(8, "little", signed=True).ljust(NUMBER_BYTES, b"\0")
