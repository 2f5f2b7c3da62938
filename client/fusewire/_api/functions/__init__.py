"""Functions by topic.

These are the functions of NumPy and of the array API standard that are not made from the catalogue alone. A function is
here for one of three reasons: its parameters are not the operands and attributes of its op, it consists of several ops,
or it is a second name of a function. All other functions are in `catalogued`.
"""

import typing as _typing

from fusewire._api.functions import accumulation as _accumulation
from fusewire._api.functions import arithmetic as _arithmetic
from fusewire._api.functions import calling as _calling
from fusewire._api.functions import closeness as _closeness
from fusewire._api.functions import contraction as _contraction
from fusewire._api.functions import creation as _creation
from fusewire._api.functions import dtypes as _dtypes
from fusewire._api.functions import editing as _editing
from fusewire._api.functions import elementwise as _elementwise
from fusewire._api.functions import exponents as _exponents
from fusewire._api.functions import grids as _grids
from fusewire._api.functions import joining as _joining
from fusewire._api.functions import matrices as _matrices
from fusewire._api.functions import nan_aware as _nan_aware
from fusewire._api.functions import numpy_names as _numpy_names
from fusewire._api.functions import padding as _padding
from fusewire._api.functions import places as _places
from fusewire._api.functions import polynomials as _polynomials
from fusewire._api.functions import products as _products
from fusewire._api.functions import reductions as _reductions
from fusewire._api.functions import searching as _searching
from fusewire._api.functions import selection as _selection
from fusewire._api.functions import shapes as _shapes
from fusewire._api.functions import signs as _signs
from fusewire._api.functions import sorting as _sorting
from fusewire._api.functions import statistics as _statistics
from fusewire._api.functions import trigonometry as _trigonometry
from fusewire._api.functions import windows as _windows
from fusewire._api.functions.accumulation import *  # noqa: F403  # each topic says which names it has
from fusewire._api.functions.arithmetic import *  # noqa: F403
from fusewire._api.functions.calling import *  # noqa: F403
from fusewire._api.functions.closeness import *  # noqa: F403
from fusewire._api.functions.contraction import *  # noqa: F403
from fusewire._api.functions.creation import *  # noqa: F403
from fusewire._api.functions.dtypes import *  # noqa: F403
from fusewire._api.functions.editing import *  # noqa: F403
from fusewire._api.functions.elementwise import *  # noqa: F403
from fusewire._api.functions.exponents import *  # noqa: F403
from fusewire._api.functions.grids import *  # noqa: F403
from fusewire._api.functions.joining import *  # noqa: F403
from fusewire._api.functions.matrices import *  # noqa: F403
from fusewire._api.functions.nan_aware import *  # noqa: F403
from fusewire._api.functions.numpy_names import *  # noqa: F403
from fusewire._api.functions.padding import *  # noqa: F403
from fusewire._api.functions.places import *  # noqa: F403
from fusewire._api.functions.polynomials import *  # noqa: F403
from fusewire._api.functions.products import *  # noqa: F403
from fusewire._api.functions.reductions import *  # noqa: F403
from fusewire._api.functions.searching import *  # noqa: F403
from fusewire._api.functions.selection import *  # noqa: F403
from fusewire._api.functions.shapes import *  # noqa: F403
from fusewire._api.functions.signs import *  # noqa: F403
from fusewire._api.functions.sorting import *  # noqa: F403
from fusewire._api.functions.statistics import *  # noqa: F403
from fusewire._api.functions.trigonometry import *  # noqa: F403
from fusewire._api.functions.windows import *  # noqa: F403

if not _typing.TYPE_CHECKING:  # a type checker follows the imports above, and no sum of lists
    _topics = (
        _accumulation,
        _arithmetic,
        _calling,
        _closeness,
        _contraction,
        _creation,
        _dtypes,
        _editing,
        _elementwise,
        _exponents,
        _grids,
        _joining,
        _matrices,
        _nan_aware,
        _numpy_names,
        _padding,
        _places,
        _polynomials,
        _products,
        _reductions,
        _searching,
        _selection,
        _shapes,
        _signs,
        _sorting,
        _statistics,
        _trigonometry,
        _windows,
    )
    __all__ = [name for topic in _topics for name in topic.__all__]
