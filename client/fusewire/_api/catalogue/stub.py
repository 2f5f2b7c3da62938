"""Prints the types of the functions made from the catalogue: `python -m fusewire._api.catalogue.stub`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from fusewire._api.catalogue.op_functions import functions_of
from fusewire_protos.ops.catalogue import OPS

_HEAD = '''\
"""The types of the functions in `catalogued`. `make stubs` writes this file from the catalogue of ops."""

from typing import Any

from fusewire._api.array import Array
from fusewire._api.ops.operations import Axis

'''


def stub_of(functions: Mapping[str, Any]) -> str:
    """Returns the text of a stub file with the parameters and docstrings of these functions."""
    names = "".join(f'    "{name}",\n' for name in functions)
    return f"{_HEAD}__all__ = [\n{names}]\n" + "".join(map(_declaration, functions.values()))


def _declaration(function: Any) -> str:
    parameters = str(inspect.signature(function)).replace("'", "")  # annotations are strings, which print with quotes
    return f'\ndef {function.__name__}{parameters}:\n    """{function.__doc__}"""\n'


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # standard output is a text file
    sys.stdout.write(stub_of(functions_of(OPS)))
