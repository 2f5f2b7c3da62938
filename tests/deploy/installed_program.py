"""Runs a small program with the Fusewire that is installed, on a server of its own, and fails if it is not compiled.

`python installed_program.py` needs nothing but `fusewire[server]`. It is run where a wheel has been installed.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

import fusewire as fw
import fusewire_kernels
from fusewire.testing import serve_subprocess

# Of the recorder, which a client cannot do without, and of the server, whose sources would run too.
_COMPILED = ("fusewire._recording.recorded_ops", "fusewire_server.engine.engine")
_DEADLINE_S = 60.0


def main() -> None:
    for name in _COMPILED:
        found = importlib.util.find_spec(name)
        assert found is not None, name
        assert found.origin is not None, name
        assert found.origin.endswith(tuple(EXTENSION_SUFFIXES)), f"{name} is not compiled: {found.origin}"
    assert list(Path(fusewire_kernels.__file__).parent.glob("packs/**/*.so")), "the kernels of single ops are missing"
    with serve_subprocess("cpu") as server, fw.connect(server.grpc, timeout=_DEADLINE_S) as session:
        x = session.array(np.arange(8, dtype=np.float32))
        for _ in range(100):
            x = fw.maximum(x * 0.5, 1) + 1
        assert x.numpy(timeout=_DEADLINE_S).tolist() == [2.0] * 8


if __name__ == "__main__":
    main()
