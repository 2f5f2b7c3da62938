"""Describes the dialects, the languages of kernels: how each writes what differs, and what its kernels can do. Pure.

What is not here is written alike in all dialects, by names that the preludes define: literals, functions and types.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """A language of kernels.

    `ending` is that of a file of its text, and `prelude` lists the files of the text before each kernel. `head` begins
    a kernel; `bounds` says in it how many threads a block has, and `cluster` how many blocks a cluster has.
    `parameters` are those of a kernel that a plan launches. `barrier` makes the threads of a block wait for one
    another. `index` is the expression of a thread's number among all that run an instance of a row, and `count` that of
    how many they are. In a dialect without threads these are empty.

    `for_gpu`: a GPU runs the kernels, in memory of its own. `has_sources_by_size`: a kernel has a source for each class
    of sizes. `runs_loops`: one kernel can run all iterations of a loop. A pack has `kernels_a_file` kernels in a file,
    which are loaded together.
    """

    name: str
    ending: str
    prelude: tuple[str, ...]
    head: str
    parameters: str
    bounds: str
    cluster: str
    barrier: str
    index: str
    count: str
    for_gpu: bool
    has_sources_by_size: bool
    runs_loops: bool
    kernels_a_file: int

    def head_of(self, name: str, *bounds: int, parameters: str = "", cluster_blocks: int = 0) -> str:
        """Returns the text before the body of the kernel with this name.

        `bounds` are the most threads of a block, and how many blocks are to share a multiprocessor. `parameters` are
        others than those of a kernel that a plan launches. With `cluster_blocks`, so many blocks are a cluster.
        """
        cluster = self.cluster.format(cluster_blocks) if cluster_blocks else ""
        bounded = cluster + self.bounds.format(", ".join(map(str, bounds)))
        return self.head.format(bounds=bounded, name=name, parameters=parameters or self.parameters)


C = Dialect(
    name="c",
    ending="c",
    prelude=("c.h", "math.h", "random.h", "order.h", "order_c.h"),
    head="void {name}({parameters})",
    parameters="const int64_t *sizes, const fw_operand *operands, const int64_t *slots",
    bounds="",
    cluster="",
    barrier="",
    index="",
    count="",
    for_gpu=False,
    has_sources_by_size=False,
    runs_loops=False,
    kernels_a_file=64,
)
CUDA = Dialect(
    name="cuda",
    ending="cu",
    prelude=("cuda.h", "math.h", "random.h", "order.h", "order_cuda.h"),
    head='extern "C" __global__ void {bounds} {name}({parameters})',
    parameters="const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, "
    "const int64_t *slots, int64_t columns",
    bounds="__launch_bounds__({})",
    cluster="__cluster_dims__({}, 1, 1) ",
    barrier="__syncthreads();",
    index="blockIdx.x * (int64_t)blockDim.x + threadIdx.x",
    count="gridDim.x * (int64_t)blockDim.x",
    for_gpu=True,
    has_sources_by_size=True,
    runs_loops=True,
    kernels_a_file=256,  # eight files are compiled side by side
)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (C, CUDA)}


def dialect_of(name: str) -> Dialect:
    """Returns the dialect of this name. Raises ValueError if there is none."""
    found = DIALECTS.get(name)
    if found is None:
        raise ValueError(f"no dialect {name!r}; there are {' and '.join(DIALECTS)}")
    return found
