"""The numerics contract as tests: bits belong to the op, not to the schedule.

What a value's bits may depend on is its op, dtype, shape, operands and the machine; never how the work was cut, fused,
batched, donated, aligned or shared. So one program is run here in every manner and its results compared byte for byte,
and each op alone is compared with its NumPy twin, within stated tolerances.

    harness         runs a program on a device, through the real compiler, in one named manner
    pieces          cuts a program into programs that give the same results one after another
    rows            more rows of bindings for a program
    chains          programs as users write them: softmax, layers, loops, moving windows
    service         a server process, its clients and its inspection
    test_every_op   each op, its dtypes and sizes: kernel against twin
    test_bytes      random programs and chains: every manner against every other
    test_sizes      a known program with other sizes: which kernels are new
    test_company    a client alone, and among others, through a real server
    test_inspection what a real server tells of a program

What runs on a device is parametrised by it: the CPU here, a CUDA device under the mark `gpu`. Compiled kernels are kept
in the usual cache on disk, so that a second run of these tests compiles little.
"""
