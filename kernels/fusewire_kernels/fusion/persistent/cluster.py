"""Builds the persistent kernel of a loop's body whose groups become the stages of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.fusion.persistent.cluster_groups import MatrixGroup, Multiplied, Placed, group_of, rows_of
from fusewire_kernels.fusion.persistent.cluster_shape import cluster_shape
from fusewire_kernels.fusion.persistent.loop_body import (
    LoopBody,
    Obstacle,
    Persistent,
    WrittenPart,
    require,
    require_few,
)
from fusewire_kernels.graph.graph import Operand
from fusewire_kernels.graph.views import dense
from fusewire_kernels.ir.cluster_shape import ClusterShape
from fusewire_kernels.ir.kernel import Argument, Node
from fusewire_kernels.ir.persistent import (
    Exchanged,
    ExchangedPart,
    PersistentCluster,
    ReducedValue,
    Source,
    Stage,
    StageInput,
    StageProduct,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import REDUCTIONS

_MOST_PRODUCTS = 8  # a thread has few registers for the columns of more products
_MOST_STAGES = 32


class Cluster:
    """Builds the persistent kernel of a body whose groups become the stages of a cluster."""

    def __init__(self, body: LoopBody, instances: list[Instance]) -> None:
        require(f"an iteration takes more than {_MOST_STAGES} groups", is_met=len(instances) <= _MOST_STAGES)
        self._body = body
        self._rows = rows_of(body, instances)
        self._groups = [group_of(body, self._rows, instance) for instance in instances]
        self._operands: list[Operand] = []
        self._numbers: dict[object, int] = {}  # of operands that are read, by all that the kernel knows of them
        self._carried = set[int]()
        self._outputs: list[Operand] = []
        self._exchanged: dict[tuple[ExchangedPart, ...] | Operand, Exchanged] = {}

    def found(self) -> Persistent:
        products = sum(group.product is not None for group in self._groups)
        require(f"an iteration takes more than {_MOST_PRODUCTS} products", is_met=products <= _MOST_PRODUCTS)
        stages = tuple([self._stage(number, group) for number, group in enumerate(self._groups)])
        require("no value is carried", is_met=bool(self._carried))
        require("an iteration takes several pointwise groups", is_met=bool(self._exchanged))
        reads = len(self._operands)
        require_few(reads + len(self._outputs))
        shape = self._shape(stages)
        kernel = PersistentCluster(self._rows, stages, tuple(self._exchanged.values()), reads, shape)
        return Persistent(
            kernel,
            (self._rows, max(shape.widths)),
            (*self._operands, *self._outputs),
            len(self._outputs),
            tuple(sorted(self._carried)),
            tuple(sorted({stage.product.right for stage in stages if stage.product is not None})),
        )

    def _shape(self, stages: Sequence[Stage]) -> ClusterShape:
        """Returns how clusters divide what the stages compute. Raises Obstacle if a graph is faster."""
        exchanged = [*self._exchanged.values()]
        products = [
            (exchanged[stage.product.left].columns, stage.columns) for stage in stages if stage.product is not None
        ]
        widths = {stage.columns for stage in stages} | {each.columns for each in exchanged if not each.parts}
        shape = cluster_shape(self._rows, sorted(widths - {0}), products, [each.columns for each in exchanged])
        if shape is None:
            raise Obstacle("a graph is faster for matrices of this size, or they do not fit clusters")
        return shape

    def _stage(self, number: int, group: MatrixGroup) -> Stage:
        product = None if group.product is None else self._product(group.instance, group.product)
        arguments = group.body.inputs[0 if product is None else 1 :]
        strides = group.input_strides
        inputs = [self._input(group.placed, *each) for each in zip(group.inputs, strides, arguments, strict=True)]
        reduced = {
            node.operands[0]: self._exchange_reduced(number, group, node, inputs)
            for node in group.body.nodes
            if node.op == "reduce"
        }
        outputs = tuple(map(self._output, group.instance.written()))
        return Stage(
            product,
            tuple(reduced.items()),
            group.placed.columns,
            group.body,
            group.placed.places,
            (*strides, *group.store_strides),
            tuple(inputs),
            outputs,
        )

    def _exchange_reduced(self, number: int, group: MatrixGroup, node: Node, inputs: list[StageInput]) -> int:
        """Exchanges what a reduction reduces. Returns the number among what is exchanged."""
        is_known = node.operand_dtype is dtypes.float32 and REDUCTIONS[str(node.detail)].position_of is None
        require("an iteration reduces other values than float32, or to positions", is_met=is_known)
        (value,) = node.operands
        source: Source | ReducedValue = ReducedValue(number, value)
        if value < len(inputs) and inputs[value].operand is None:
            taken = inputs[value].source
            assert taken is not None, "an input is in memory or computed"
            source = taken
        columns = group.placed.columns
        parts = (ExchangedPart(source, 0, columns),)
        self._exchanged.setdefault(parts, Exchanged(parts, columns, None, (0, 0)))
        return [*self._exchanged].index(parts)

    def _product(self, instance: Instance, product: Multiplied) -> StageProduct:
        left, right = instance.operands[product.left], instance.operands[product.right]
        require("both operands of a product are computed by the loop", is_met=not self._body.computes(right.value))
        strides = self._without_ones(product.left_strides, product.inner)
        number = (
            self._exchange_computed(left, product.inner, strides)
            if self._body.computes(left.value)
            else self._exchange_input(left, product.inner, strides)
        )
        is_new = left.value in self._body.written
        return StageProduct(number, is_new, self._number(right), product.right_strides)

    def _exchange_computed(self, operand: Operand, inner: int, strides: tuple[int, int]) -> int:
        """Exchanges what the loop computes and a product multiplies. Returns the number among what is exchanged."""
        is_new, source = operand.value in self._body.written, self._body.before(operand)
        require("a product multiplies a part of a computed value", is_met=self._body.is_whole(operand))
        whole = dense(operand.layout.shape)
        written = self._body.parts(operand.value) if source is None else [WrittenPart(whole, source)]
        parts = tuple(sorted([self._part(each, strides) for each in written], key=lambda part: part.first))
        ends = accumulate([part.columns for part in parts])
        is_filled = [part.first for part in parts] + [inner] == [0, *ends]
        require("a product multiplies a computed value in another order", is_met=is_filled)
        known = self._exchanged.setdefault(parts, Exchanged(parts, inner, None, strides))
        if is_new:
            return [*self._exchanged].index(parts)
        # Another read of an array that iterations change may be of another place in the first iteration.
        first = known.initial
        is_apart = first is not None and operand.value in self._body.updated and self._operands[first] != operand
        key = operand if is_apart else parts
        if is_apart or first is None:
            self._exchanged[key] = known._replace(initial=self._number(operand), strides=strides)
            self._carried.add(self._number(operand))
        return [*self._exchanged].index(key)

    def _part(self, written: WrittenPart, strides: tuple[int, int]) -> ExchangedPart:
        """Returns a part of a left operand that moves by `strides` along rows and columns."""
        layout, source = written
        first, rest = divmod(layout.offset, max(strides[1], 1))
        is_same = strides == self._written_strides(source) and not rest and not layout.moves
        require("a product multiplies a computed value in another order", is_met=is_same)
        return ExchangedPart(source, first, self._groups[source.stage].placed.columns)

    def _exchange_input(self, operand: Operand, inner: int, strides: tuple[int, int]) -> int:
        """Exchanges an operand in memory that a product multiplies. Returns the number among what is exchanged."""
        self._exchanged[operand] = Exchanged((), inner, self._number(operand), strides)
        return [*self._exchanged].index(operand)

    def _input(self, placed: Placed, operand: Operand, strides: tuple[int, ...], argument: Argument) -> StageInput:
        source, number = self._body.now(operand.value), None
        if source is None:
            number = self._number(operand, strides, argument, placed)
            source = self._body.before(operand)
            if source is not None:
                self._carried.add(number)
        if source is not None:
            self._require_in_place(operand, self._without_ones(placed.strides(strides), placed.columns), placed, source)
        return StageInput(number, source)

    def _require_in_place(self, operand: Operand, strides: tuple[int, int], placed: Placed, source: Source) -> None:
        """Raises Obstacle unless each thread reads of a computed value what it has computed itself."""
        self._body.require_in_place(operand, strides, self._written_strides(source))
        written = self._groups[source.stage]
        is_at_hand = placed.columns == written.placed.columns or written.is_one_a_row(source.store)
        require("it reads a computed value at other columns than it writes it", is_met=is_at_hand)

    def _written_strides(self, source: Source) -> tuple[int, int]:
        """Returns by how many elements a written value moves along rows and columns."""
        group = self._groups[source.stage]
        return self._without_ones(group.placed.strides(group.store_strides[source.store]), group.placed.columns)

    def _without_ones(self, strides: tuple[int, int], columns: int) -> tuple[int, int]:
        """Returns strides along rows and columns, 0 along dimensions of length 1."""
        return strides[0] if self._rows > 1 else 0, strides[1] if columns > 1 else 0

    def _output(self, operand: Operand) -> int | None:
        if operand.value not in self._body.stored:
            return None
        self._outputs.append(operand)
        return len(self._outputs) - 1

    def _number(self, operand: Operand, *known: object) -> int:
        """Returns the number of an operand that is read. Equal ones of which the same is `known` have one number."""
        number = self._numbers.setdefault((operand, *known), len(self._operands))
        if number == len(self._operands):
            self._operands.append(operand)
        return number
