"""A new op is an entry of the catalogue, a body and a twin: three edits to a copy of the sources, and users have it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_SOURCE_ROOTS = ("protos", "kernels", "server", "client")

# Each: the file, a line of it, and the line to go before that one.
_EDITS = {
    "protos/fusewire_protos/catalogue.py": (
        '    _pointwise("erf", ',
        '    _pointwise("mix", 199, 3, _floating, "`x1` + `x3` · (`x2` − `x1`).", exact=False),',
    ),
    "kernels/fusewire_kernels/codegen/bodies.py": (
        '    "erf": ',
        '    "mix": Body("{0} + {2} * ({1} - {0})"),',
    ),
    "kernels/fusewire_kernels/reference.py": (
        '    "erf": ',
        '    "mix": _accurate(lambda library, a, b, share: a + share * (b - a)),',
    ),
}

# Run by a Python that finds the copy: uses the op by its name, alone and between others, in a loop and op by op.
_USER = """
import numpy as np
import fusewire as fw
from fusewire._api import stub as _stub
from fusewire._api.op_functions import functions_of
from fusewire.testing import serve_subprocess
from fusewire_kernels.reference import twin
from fusewire_protos.catalogue import BY_NAME, OPS

assert "mix" in fw.__all__
assert fw.mix.__doc__ == "`x1` + `x3` · (`x2` − `x1`)."
assert "def mix(x1: Any, x2: Any, x3: Any, /) -> Array:" in _stub.stub_of(functions_of(OPS))
a, b = np.linspace(-2, 2, 100, dtype=np.float32), np.linspace(3, 5, 100, dtype=np.float32)
share = np.asarray(np.float32(0.25))
with serve_subprocess("cpu") as server, fw.connect(server.grpc) as session:
    x, y = session.array(a), session.array(b)
    alone = fw.mix(x, y, 0.25).numpy()
    looped = x
    for _ in range(64):
        looped = fw.mix(looped, y, 0.25) * 1.0
    looped = looped.numpy()
expected = twin(BY_NAME["mix"])(np, [a, b, share], (), ())
np.testing.assert_allclose(alone, expected, rtol=1e-5, atol=1e-6)
for _ in range(64):
    a = twin(BY_NAME["mix"])(np, [a, b, share], (), ())
np.testing.assert_allclose(looped, a, rtol=1e-5, atol=1e-6)
print("used")
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for root in _SOURCE_ROOTS:
        shutil.copytree(_ROOT / root, tmp_path / root, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def _insert(path: Path, before: str, line: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, f"{line}\n{before}"), encoding="utf-8")


def test_an_op_with_an_entry_a_body_and_a_twin_is_all_there_for_users(sources: Path) -> None:
    for name, (before, line) in _EDITS.items():
        _insert(sources / name, before, line)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(sources / root) for root in _SOURCE_ROOTS),
        "FUSEWIRE_CACHE_DIR": str(sources / "cache"),
    }
    command = [sys.executable, "-W", "error", "-c", _USER]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.stdout, ended.returncode) == ("used\n", 0), ended.stderr
