"""The limits of a kernel, and the reasons why values are not computed in one kernel, or groups not in one launch."""

from __future__ import annotations

from enum import Enum

from fusewire_protos.programs.records import Records

MOST_NODES = 200  # nodes of a kernel; longer kernels gain little and compile slowly
MOST_ARGUMENTS = 30  # arrays that a kernel reads or stores
MOST_BESIDE_PRODUCT = 24  # nodes of an epilogue, whose text is compiled for each size of tile
MOST_REDUCTIONS = 8  # reductions of a kernel, which holds the partial results of all of them at the same time


class Reason(Enum):
    """A reason. Its value is a sentence for people, and its code, which plans hold, is its name in lower case."""

    # Two values.
    OTHER_POINTS = "the two are computed at different points"
    READS_A_PART = "the consumer reads a part of the operand, or reads it in an order without common loops"
    READS_TWO = "the consumer needs two elements of the operand at one point"
    GATHERS = "the consumer gathers elements from anywhere in the operand"
    SEVERAL_STORES = "the operand is assembled by several stores"
    OVERWRITES_STORED = "the consumer overwrites a part of what the producer stores"
    OVERWRITES_READ = "the consumer overwrites a part of what the producer reads"
    OF_PRODUCT = "the kernel of a product reads its operands from memory"
    OF_BUFFERS = "the kernel of lines or matrices reads its operands from memory"
    BESIDE_BUFFERS = "the kernel of lines or matrices computes nothing else"
    BESIDE_PRODUCT = "the kernel of a product computes only pointwise values beside it"
    TWO_PRODUCTS = "a kernel computes at most one product"
    PRODUCT_LOOPS = "the kernel of a product has no loops for these axes"
    LARGE_EPILOGUE = f"the kernel of a product computes at most {MOST_BESIDE_PRODUCT} values beside it"
    NODES = f"a kernel has at most {MOST_NODES} nodes"
    ARRAYS = f"a kernel has at most {MOST_ARGUMENTS} arrays"
    REDUCTIONS = f"a kernel has at most {MOST_REDUCTIONS} reductions"
    AXES = "the axes of the two have no common loops"
    INSIDE_REDUCED = "it needs a position inside the reduced axes"
    UNEVEN_ARRAY = "the elements of an array are not evenly apart along the reduced axes"
    UNEVEN = "the elements to reduce are not evenly apart"
    OTHER_AXES = "the two reduce along different axes"
    REPEATED = "their kernel would repeat too much work for each reduction"
    CIRCLE = "the consumer needs a third kernel, which waits for the producer"
    # Two launches.
    OTHER_KERNEL = "only groups of one kernel become one launch"
    OTHER_SIZES = "only groups of the same sizes become one launch"
    WAITS_BETWEEN = "it waits for launches in between"

    def __init__(self, _: str) -> None:
        self.code = self.name.lower()


def sentences_of(records: Records) -> dict[str, str]:
    """Returns the sentences of the reasons in the records of a plan, by code."""
    codes = {each.reason for each in records.unfused} | {each.reason for each in records.separate}
    return {code: Reason[code.upper()].value for code in sorted(codes)}
