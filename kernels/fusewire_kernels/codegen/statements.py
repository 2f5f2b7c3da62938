"""Writes the statements of a loop kernel's body: the same lines in every dialect and every schedule. Pure.

The generated text uses these names:

- `n0`, `n1`, …: the extents of the dimensions. The inner dimension has the last number.
- `i0`, `i1`, …: the positions along the dimensions.
- `a0`, `a1`, …: the inputs. `o0`, `o1`, …: the outputs.
- `a0s1`: the stride of the input `a0` along dimension 1.
- `a0n` and `a0g`: the extent and the stride of the gathered axis, if `a0` is a gathered input.
- `v0`, `v1`, …: the values.

Each value has a level and a stage. A schedule uses the two numbers to place the statement that computes the value:

- The level is the number of outermost loops in which the statement must lie. If the value depends on dimension d and on
  no deeper dimension, its level is d + 1. If the value depends on no dimension, its level is 0.
- The stage is the number of phases of reductions that must end before the statement. Phase s computes the reductions
  over values of stage s.

A computed NaN may have any bits until the bits are visible in an output. So the text makes a computed NaN canonical
where it is stored. The text also makes the operands of an op such as `where` canonical, because the op copies the bits
of an operand to its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from fusewire_kernels.codegen.expressions import TYPES, canonical, conversion, expression, loaded, storable
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, LoopKernel, Node, Stride
from fusewire_kernels.ops.bodies import weight
from fusewire_protos.ops import catalogue
from fusewire_protos.ops.dtypes import DType

UNLESS_IN_PLACE = "if (a0 == o0) return; /* an array that is copied to itself */"

_SELECTING = frozenset(op.name for op in catalogue.OPS if op.selects)


@dataclass(frozen=True)
class AnalysedKernel:
    """A loop kernel, with the properties of its values that schedules need."""

    kernel: LoopKernel
    levels: tuple[int, ...]
    stages: tuple[int, ...]

    @cached_property
    def dims(self) -> int:
        """The number of dimensions of the whole space, the inner one included."""
        return self.kernel.rank + self.kernel.has_inner

    @property
    def phases(self) -> int:
        return max((self.stages[value] for value in self.all_needed), default=0)

    @cached_property
    def stored(self) -> tuple[int, ...]:
        return tuple([store.value for store in self.kernel.stores])

    @cached_property
    def all_needed(self) -> list[int]:
        """The values that the stored values depend on, in order."""
        return self.needed(self.stored)

    def node(self, value: int) -> Node | None:
        """Returns the node that computes a value, None for an input."""
        return self._nodes[value]

    @cached_property
    def _nodes(self) -> tuple[Node | None, ...]:
        return (*[None for _ in self.kernel.inputs], *self.kernel.nodes)

    def is_reduction(self, value: int) -> bool:
        node = self.node(value)
        return node is not None and node.op == "reduce"

    def is_inner(self, value: int) -> bool:
        return self.kernel.has_inner and self.levels[value] == self.dims

    def dtype(self, value: int) -> DType:
        node = self.node(value)
        return self.kernel.inputs[value].dtype if node is None else node.dtype

    def weight(self, value: int) -> int:
        """Returns the approximate length of the longest chain of operations that computes a value from its operands."""
        node = self.node(value)
        if node is None:
            return 0
        return 1 if node.op in ("cast", "gather", "index") else weight(node.op, node.dtype)

    def needed(self, targets: Iterable[int], is_at_hand: Callable[[int], bool] = lambda value: False) -> list[int]:
        """Returns `targets` and the values that `targets` depend on, in order.

        Leaves out each value for which `is_at_hand` is true, and the values that are needed only for such a value.
        """
        found: set[int] = set()
        pending = list(targets)
        while pending:
            value = pending.pop()
            if value in found or is_at_hand(value):
                continue
            found.add(value)
            node = self.node(value)
            pending.extend(node.operands if node else ())
        return sorted(found)

    def reductions(self, phase: int) -> list[int]:
        """Returns the reductions that are done in a phase."""
        return [value for value in self.all_needed if self.is_reduction(value) and self.stages[value] == phase + 1]

    @property
    def inner_stores(self) -> list[int]:
        """The outputs that are written at each point of the inner dimension."""
        return [output for output in range(len(self.stored)) if self._is_inner_store(output)]

    @property
    def outer_stores(self) -> list[int]:
        """The outputs that are written once for each point of the outer dimensions."""
        return [output for output in range(len(self.stored)) if not self._is_inner_store(output)]

    def _is_inner_store(self, output: int) -> bool:
        store = self.kernel.stores[output]
        moves = bool(store.argument.strides) and store.argument.strides[-1] is not Stride.ZERO
        return self.kernel.has_inner and (moves or self.is_inner(store.value))

    def declaration(self, value: int, read: str = "{}") -> str:
        """Returns the statement that computes a value that is not a reduction.

        `read` is the expression that reads an input, with `{}` for the input's place in memory if it uses the place.
        """
        return f"const {TYPES[self.dtype(value)].value} v{value} = {self._right_side(value, read)};"

    def inner_declarations(self, targets: Iterable[int]) -> list[str]:
        """Returns the statements that compute `targets` at a point of the inner dimension from values that do not move.

        No target is a reduction.
        """
        values = self.needed(targets, is_at_hand=lambda value: not self.is_inner(value))
        return [self.declaration(value) for value in values]

    def storing(self, output: int, place: str | None = None) -> str:
        """Returns the statement that writes an output, at its place or at another expression of it."""
        store = self.kernel.stores[output]
        value = storable(self._settled(store.value), store.argument.dtype)
        return f"{place or self.output_place(output)} = {value};"

    def input_place(self, value: int) -> str:
        """Returns the element of an array input at the current position."""
        return _place(f"a{value}", self.kernel.inputs[value])

    def output_place(self, output: int) -> str:
        """Returns the element of an output at the current position."""
        return _place(f"o{output}", self.kernel.stores[output].argument)

    def _right_side(self, value: int, read: str) -> str:
        node = self.node(value)
        if node is None:
            argument = self.kernel.inputs[value]
            is_scalar = argument.kind is ArgumentKind.SCALAR
            location = f"*a{value}" if is_scalar else self.input_place(value)
            return loaded(read.format(location), argument.dtype)
        operands = tuple(f"v{operand}" for operand in node.operands)
        if node.op == "index":
            return f"i{node.detail}"
        if node.op == "gather":
            return self._gathered(node, operands[0])
        if node.op == "cast":
            return conversion(operands[0], node.operand_dtype, node.dtype)
        if node.op in _SELECTING:
            operands = tuple(map(self._settled, node.operands))
        return expression(node.op, node.operand_dtype, node.dtype, operands)

    def _settled(self, value: int) -> str:
        """Returns the expression of a value in which any NaN is canonical."""
        name = f"v{value}"
        return canonical(name, self.dtype(value)) if self._may_be_any_nan(value) else name

    def _may_be_any_nan(self, value: int) -> bool:
        """Returns whether a NaN of the value may have any bits, as after arithmetic. A NaN of an input may not."""
        node = self.node(value)
        if node is None:
            return False
        if node.op == "cast" and node.operand_dtype is node.dtype:
            return self._may_be_any_nan(node.operands[0])
        is_between_floats = node.operand_dtype.is_floating and node.dtype.is_floating
        return is_between_floats and node.op != "gather" and node.op not in _SELECTING

    def _gathered(self, node: Node, position: str) -> str:
        assert isinstance(node.detail, int)
        name = f"a{node.detail}"
        argument = self.kernel.inputs[node.detail]
        along_axis = f"fw_clip_i64({position}, 0, {name}n - 1) * {name}g"
        return loaded(_place(name, argument, along_axis), argument.dtype)


def analyse(kernel: LoopKernel) -> AnalysedKernel:
    """Finds the level and stage of every value."""
    levels = [_level_of_argument(argument) for argument in kernel.inputs]
    stages = [0] * len(kernel.inputs)
    for node in kernel.nodes:
        levels.append(_level_of_node(kernel, node, levels))
        stage = max((stages[operand] for operand in node.operands), default=0)
        stages.append(stage + (node.op == "reduce"))
    return AnalysedKernel(kernel, tuple(levels), tuple(stages))


def argument_lines(body: AnalysedKernel) -> list[str]:
    """Returns the statements that read extents, strides and operands from the three parameters of a kernel."""
    kernel = body.kernel
    lines = [f"const int64_t n{dim} = sizes[{dim}];" for dim in range(body.dims)]
    position = body.dims
    for number, (name, argument) in enumerate(_named_arguments(kernel)):
        lines.append(_operand_line(name, argument, number))
        names = _size_names(name, argument)
        lines += [f"const int64_t {stride} = sizes[{position + offset}];" for offset, stride in enumerate(names)]
        position += len(names)
    return lines


def count_sizes(body: AnalysedKernel) -> int:
    """Returns how many entries of `sizes` the statements of `argument_lines` read."""
    return body.dims + sum(len(_size_names(name, argument)) for name, argument in _named_arguments(body.kernel))


def _size_names(name: str, argument: Argument) -> list[str]:
    """Returns the names of an argument's entries in `sizes`, in order."""
    names = [f"{name}s{dim}" for dim, stride in enumerate(argument.strides) if stride is Stride.ANY]
    return [*names, f"{name}n", f"{name}g"] if argument.kind is ArgumentKind.GATHERED else names


def _named_arguments(kernel: LoopKernel) -> list[tuple[str, Argument]]:
    inputs = [(f"a{number}", argument) for number, argument in enumerate(kernel.inputs)]
    return inputs + [(f"o{number}", store.argument) for number, store in enumerate(kernel.stores)]


def _operand_line(name: str, argument: Argument, number: int) -> str:
    constant = "" if name.startswith("o") else "const "
    stored = TYPES[argument.dtype].stored
    if argument.kind is ArgumentKind.SCALAR:
        return f"const {stored} *{name} = (const {stored} *)(slots + operands[{number}].column);"
    address = f"slots[operands[{number}].column] + operands[{number}].byte_offset"
    return f"{constant}{stored} *{name} = ({constant}{stored} *)({address});"


def _level_of_argument(argument: Argument) -> int:
    if argument.kind is ArgumentKind.SCALAR:
        return 0
    return max((dim + 1 for dim, stride in enumerate(argument.strides) if stride is not Stride.ZERO), default=0)


def _level_of_node(kernel: LoopKernel, node: Node, levels: list[int]) -> int:
    if node.op == "reduce":
        return kernel.rank
    if node.op == "index":
        assert isinstance(node.detail, int)
        return node.detail + 1
    level = max((levels[operand] for operand in node.operands), default=0)
    if node.op == "gather":
        assert isinstance(node.detail, int)
        level = max(level, _level_of_argument(kernel.inputs[node.detail]))
    return level


def _place(name: str, argument: Argument, along_axis: str | None = None) -> str:
    """Returns the element of an array argument at the current position."""
    terms = [] if along_axis is None else [along_axis]
    for dim, stride in enumerate(argument.strides):
        if stride is Stride.UNIT:
            terms.append(f"i{dim}")
        elif stride is Stride.ANY:
            terms.append(f"i{dim} * {name}s{dim}")
    return f"{name}[{' + '.join(terms) or '0'}]"
