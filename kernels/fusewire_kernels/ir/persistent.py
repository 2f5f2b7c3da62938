"""Defines a persistent kernel, which runs all iterations of a loop, before its text is generated. Pure.

There are two kinds. `PersistentPoints` runs a loop whose body is a pointwise kernel. `PersistentCluster` runs one whose
body is a few stages with products and reductions, in clusters of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from fusewire_kernels.ir.cluster_shape import ClusterShape
from fusewire_kernels.ir.kernel import LoopKernel, key_of


class CarriedInput(NamedTuple):
    """An input that has, from the second iteration of a loop on, the value that the store `store` wrote before."""

    input: int
    store: int


@dataclass(frozen=True)
class PersistentPoints:
    """Runs all iterations of a loop whose body is a pointwise kernel. `carried` are inputs of the body.

    A carried input moves like its store, so each point of an iteration needs only its own value of the one before.
    """

    body: LoopKernel
    carried: tuple[CarriedInput, ...]

    @cached_property
    def key(self) -> str:
        return key_of(self)


class Place(Enum):
    """Where a thread of a cluster is along a dimension of a stage."""

    ROW = "row"  # one of its rows
    COLUMN = "column"
    POINT = "point"  # row · columns + column
    ONE = "one"  # the dimension has one element


@dataclass(frozen=True)
class Source:
    """The value that the store number `store` of the stage number `stage` writes in an iteration."""

    stage: int
    store: int


@dataclass(frozen=True)
class ReducedValue:
    """The inner value number `value` of the body of the stage number `stage`, which a reduction reduces."""

    stage: int
    value: int


class ExchangedPart(NamedTuple):
    """Elements that stages compute and blocks send: so many `columns`, which begin at column `first` of all."""

    source: Source | ReducedValue
    first: int
    columns: int


class Exchanged(NamedTuple):
    """Elements of float32, for each row and the first `columns` columns, that blocks send to one another.

    They are a left operand, or what is reduced. They are computed in `parts`, of which a concatenation has several.
    Without a part they are read from memory. If an iteration takes what the one before has sent, operand number
    `initial` has it for the first iteration, with `strides` along rows and columns.
    """

    parts: tuple[ExchangedPart, ...]
    columns: int
    initial: int | None
    strides: tuple[int, int]


class StageInput(NamedTuple):
    """An input of a stage's body.

    Without a `source` it is read from memory, as operand number `operand` of the kernel. With a `source` alone it is
    what the source has written in this iteration, at the same point. With both it is what the source wrote in the
    iteration before, and the operand in the first iteration.
    """

    operand: int | None
    source: Source | None


class StageProduct(NamedTuple):
    """The product of a stage, which is the first input of the stage's body.

    Its element at a row and column is one chain of fused multiply-adds over k. The left operand is exchanged value
    number `left`, of this iteration if `is_new`, else of the one before; k is its column. Operand number `right` of the
    kernel is the right operand, with `right_strides` along k and columns.
    """

    left: int
    is_new: bool
    right: int
    right_strides: tuple[int, int]


class Stage(NamedTuple):
    """A part of an iteration: a product and its epilogue, or pointwise values and reductions along columns.

    It computes `columns` columns; if this is 0, one element for each row. `places` are those of the dimensions of
    `body`. `inputs` are the inputs of the body but the product, and `outputs` the numbers of the outputs of the kernel
    that the stores write; None for a value that only the kernel needs. `strides` are those of each argument but the
    product, along the dimensions of the body; a scalar has none. `reduced` are the values of the body that are reduced,
    each with the number of the exchanged value that has its elements.
    """

    product: StageProduct | None
    reduced: tuple[tuple[int, int], ...]
    columns: int
    body: LoopKernel
    places: tuple[Place, ...]
    strides: tuple[tuple[int, ...], ...]
    inputs: tuple[StageInput, ...]
    outputs: tuple[int | None, ...]


@dataclass(frozen=True)
class PersistentCluster:
    """Runs all iterations of a loop whose body is a few stages, in clusters of blocks.

    All stages have the same rows. A stage takes nothing from a later one but what that one wrote in the iteration
    before. The operands of the kernel are `reads` that are read, and then the outputs. `shape` follows from the others.
    """

    rows: int
    stages: tuple[Stage, ...]
    exchanged: tuple[Exchanged, ...]
    reads: int
    shape: ClusterShape = field(repr=False)

    @cached_property
    def key(self) -> str:
        return key_of(self)


PersistentKernel = PersistentPoints | PersistentCluster
