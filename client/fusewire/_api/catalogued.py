"""The functions of the namespace that follow from the catalogue, each by its op's name.

`_catalogued.pyi`, which `make stubs` writes, tells checkers and editors of them.
"""

from fusewire._api.op_functions import functions_of
from fusewire_protos.catalogue import OPS

_functions = functions_of(OPS)
globals().update(_functions)
__all__ = list(_functions)
