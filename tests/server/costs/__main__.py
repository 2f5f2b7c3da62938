"""Prints what each kind of frames costs, the kind with the longest step first.

`python -m tests.server.costs` measures all kinds, and with an argument those that have it in their names.
"""

from __future__ import annotations

import sys

from tests.server.costs.kinds import KINDS
from tests.server.costs.measuring import Cost, Memory, cost_of, functions_of, memory_of

_ROW = "{:<52} {:>8} {:>9} {:>9} {:>10} {:>9} {:>8} {:>8}  {}"


def _row(name: str, size: int, cost: Cost, memory: Memory, where: str) -> str:
    return _ROW.format(
        name,
        size,
        cost.frame_bytes,
        f"{cost.ns_a_byte:.0f}",
        f"{cost.longest.time_ns / 1e6:.2f}",
        f"{cost.is_charged:.0%}",
        f"{memory.peak_bytes / memory.frame_bytes:.0f}",
        f"{memory.left_bytes / memory.frame_bytes:.0f}",
        f"{cost.longest.began} -> {cost.longest.ended}; {where}",
    )


def main(wanted: str) -> None:
    rows = {}
    for kind in KINDS:
        if wanted in kind.name:
            cost, where = cost_of(kind, kind.most), "; ".join(functions_of(kind, kind.most))
            rows[_row(kind.name, kind.most, cost, memory_of(kind, kind.most), where)] = cost.longest.time_ns
            print(".", end="", flush=True)
    print()
    print(_ROW.format("kind", "size", "bytes", "ns/B", "step ms", "charged", "peak B/B", "left B/B", "step; functions"))
    print(*sorted(rows, key=rows.__getitem__, reverse=True), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
