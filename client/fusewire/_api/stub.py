"""Prints the types of the functions made from the catalogue, for checkers: `python -m fusewire._api.stub`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from fusewire._api.op_functions import functions_of
from fusewire_protos.catalogue import OPS

_HEAD = '''\
"""Written by `make stubs` from the catalogue of ops: the functions that `_catalogued` holds."""

from typing import Any

from fusewire._api.array import Array
from fusewire._api.operations import Axis

'''


def stub_of(functions: Mapping[str, Any]) -> str:
    """The text of a stub with these functions, as they stand in their signatures and docstrings."""
    names = "".join(f'    "{name}",\n' for name in functions)
    return f"{_HEAD}__all__ = [\n{names}]\n" + "".join(map(_declaration, functions.values()))


def _declaration(function: Any) -> str:
    signature = str(inspect.signature(function)).replace("'", "")  # annotations are not evaluated, and so in quotes
    return f'\ndef {function.__name__}{signature}:\n    """{function.__doc__}"""\n'


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # standard output is a text file
    sys.stdout.write(stub_of(functions_of(OPS)))
