"""The public functions that are made from the catalogue of ops; each function has the name of its op.

`make stubs` writes the types of these functions to `catalogued.pyi`, for type checkers and editors.
"""

from fusewire._api.catalogue.op_functions import functions_of
from fusewire_protos.ops.catalogue import OPS

_functions = functions_of(OPS)
globals().update(_functions)
__all__ = list(_functions)
