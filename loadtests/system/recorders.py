"""Chooses what records ops in client processes: the compiled recorder or the one in Python."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from fusewire._recording import implementation
from loadtests.measuring.errors import NotMeasured

COMPILED, PYTHON = "compiled", "python"
_COMPILED_MODULE = "fusewire._recording.compiled_recorder"


@contextmanager
def recording_by(recorder: str) -> Iterator[None]:
    """Makes the client processes that are started within the block use this recorder.

    Raises NotMeasured if the compiled recorder was not built.
    """
    if recorder == COMPILED and find_spec(_COMPILED_MODULE) is None:
        raise NotMeasured("the compiled recorder was not built: run `make recorder`")
    before = os.environ.get(implementation.VARIABLE)
    os.environ[implementation.VARIABLE] = recorder
    try:
        yield
    finally:
        os.environ.pop(implementation.VARIABLE)
        if before is not None:
            os.environ[implementation.VARIABLE] = before
