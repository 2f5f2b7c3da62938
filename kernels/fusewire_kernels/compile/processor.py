"""Tells for which level of processors a machine may run code that was compiled elsewhere. Pure.

A level is a set of features that a compiler may count on, by the name of the compiler's option `-march`.
"""

from __future__ import annotations

# What x86-64-v3 adds to the processors of 2003, by the names of Linux: "abm" is lzcnt, and "pni" is SSE3.
_X86_64_V3 = frozenset(
    ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave")
    + ("cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2")
)
LEVELS = {"x86_64": "x86-64-v3", "aarch64": "armv8-a"}  # by machine: the level that kernels are shipped for


def level_of(machine: str, cpuinfo: str) -> str | None:
    """Returns the level of kernels that a processor runs, or None if there are none for it.

    `machine` is the machine's type as `platform.machine` names it, and `cpuinfo` the text of /proc/cpuinfo.
    """
    if machine == "x86_64" and not _flags(cpuinfo) >= _X86_64_V3:
        return None
    return LEVELS.get(machine)


def _flags(cpuinfo: str) -> frozenset[str]:
    """Returns the features of the first processor."""
    lines = (line.partition(":")[2] for line in cpuinfo.splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").split())
