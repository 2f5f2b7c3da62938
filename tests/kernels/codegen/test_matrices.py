"""The algorithms for small matrices give the same bits with any number of lanes, and lanes wait where they must.

A thread of the host is a lane. The compiler's thread sanitizer reports what one lane reads or writes without waiting
for the lane that writes it. That several lanes note the same is the only such thing, and allowed: here it is atomic.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fusewire_kernels.codegen.matrices import algorithms
from fusewire_kernels.codegen.preludes import _read
from fusewire_kernels.ir.kernel import MatrixKernel
from fusewire_protos.ops import dtypes

_HARNESS = Path(__file__).with_name("matrices_on_threads.h")
_WITHIN_S = 300
_NOTED, _NOTED_AT_ONCE = "*w.note = 1;", "__atomic_store_n(w.note, 1, __ATOMIC_RELAXED);"
_SIDES = (1, 4, 7)
# The elements of the result of a matrix of `n` rows; of right sides there are 3 columns.
_ELEMENTS = {
    "solve": "3 * n",
    "inv": "n * n",
    "det": "1",
    "slogdet": "2",
    "cholesky": "n * n",
    "eigh": "n * n + n",
    "eigvalsh": "n",
}


def _program() -> str:
    text = algorithms(MatrixKernel("solve", dtypes.float32), "meeting->arrive_and_wait()")
    assert text.count(_NOTED) == 2
    calls = [
        f'found |= differs("{name}", fw_{name}_f32, fw_shape{{n, n, 3, {upper}}}, {elements});'
        for name, elements in _ELEMENTS.items()
        for upper in (0, 1)
    ]
    calls += [
        f'found |= differs("qr", fw_qr_f32, fw_shape{{n, {columns}, {inner}, 0}}, (n + {columns}) * {inner});'
        for columns, inner in (("n", "n"), ("2", "n"), ("9", "n"), ("1", "1"))
    ]
    sides = ", ".join(map(str, _SIDES))
    return "\n".join(
        [
            "#include <barrier>",
            "static std::barrier<> *meeting;",
            _read("c.h"),
            _read("math.h"),
            text.replace(_NOTED, _NOTED_AT_ONCE),
            f'#include "{_HARNESS}"',
            f"int main() {{ int found = 0; for (int n : {{{sides}}}) {{ {' '.join(calls)} }} return found; }}",
        ]
    )


def _built(folder: Path, *options: str) -> Path | None:
    source, program = folder / "lanes.cpp", folder / "lanes"
    source.write_text(_program(), encoding="utf-8")
    flags = ("-std=c++20", "-O1", "-ffp-contract=off", "-w", "-pthread", *options)
    command = ["g++", *flags, str(source), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    if built.returncode != 0 and "-fsanitize=thread" in options and "tsan" in built.stderr:
        return None
    assert built.returncode == 0, built.stderr
    return program


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.parametrize("options", [(), ("-fsanitize=thread",)], ids=["plain", "with the thread sanitizer"])
def test_any_number_of_lanes_gives_the_same_bits(options: tuple[str, ...], tmp_path: Path) -> None:
    program = _built(tmp_path, *options)
    if program is None:
        pytest.skip("this compiler has no thread sanitizer")
    ran = subprocess.run([program], capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[:4000]
