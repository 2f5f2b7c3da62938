"""Functions by topic.

These are the functions of NumPy and of the array API standard that are not made from the catalogue alone. A function is
here for one of three reasons: its parameters are not the operands and attributes of its op, it consists of several ops,
or it is a second name of a function. All other functions are in `catalogued`.
"""

import functools as _functools
import types as _types
import typing as _typing

from fusewire._api.functions import calling as _calling
from fusewire._api.functions import dtypes as _dtypes
from fusewire._api.functions import numpy_names as _numpy_names
from fusewire._api.functions.arrangement import editing as _editing
from fusewire._api.functions.arrangement import joining as _joining
from fusewire._api.functions.arrangement import matrices as _matrices
from fusewire._api.functions.arrangement import padding as _padding
from fusewire._api.functions.arrangement import places as _places
from fusewire._api.functions.arrangement import shapes as _shapes
from fusewire._api.functions.arrangement.editing import *  # noqa: F403  # each topic says which names it has
from fusewire._api.functions.arrangement.joining import *  # noqa: F403
from fusewire._api.functions.arrangement.matrices import *  # noqa: F403
from fusewire._api.functions.arrangement.padding import *  # noqa: F403
from fusewire._api.functions.arrangement.places import *  # noqa: F403
from fusewire._api.functions.arrangement.shapes import *  # noqa: F403
from fusewire._api.functions.calling import *  # noqa: F403
from fusewire._api.functions.creation import creation as _creation
from fusewire._api.functions.creation import grids as _grids
from fusewire._api.functions.creation import windows as _windows
from fusewire._api.functions.creation.creation import *  # noqa: F403
from fusewire._api.functions.creation.grids import *  # noqa: F403
from fusewire._api.functions.creation.windows import *  # noqa: F403
from fusewire._api.functions.dtypes import *  # noqa: F403
from fusewire._api.functions.elementwise import arithmetic as _arithmetic
from fusewire._api.functions.elementwise import choices as _choices
from fusewire._api.functions.elementwise import closeness as _closeness
from fusewire._api.functions.elementwise import complex_numbers as _complex_numbers
from fusewire._api.functions.elementwise import exponents as _exponents
from fusewire._api.functions.elementwise import signs as _signs
from fusewire._api.functions.elementwise import trigonometry as _trigonometry
from fusewire._api.functions.elementwise.arithmetic import *  # noqa: F403
from fusewire._api.functions.elementwise.choices import *  # noqa: F403
from fusewire._api.functions.elementwise.closeness import *  # noqa: F403
from fusewire._api.functions.elementwise.complex_numbers import *  # noqa: F403
from fusewire._api.functions.elementwise.exponents import *  # noqa: F403
from fusewire._api.functions.elementwise.signs import *  # noqa: F403
from fusewire._api.functions.elementwise.trigonometry import *  # noqa: F403
from fusewire._api.functions.numpy_names import *  # noqa: F403
from fusewire._api.functions.ordering import searching as _searching
from fusewire._api.functions.ordering import selection as _selection
from fusewire._api.functions.ordering import sorting as _sorting
from fusewire._api.functions.ordering.searching import *  # noqa: F403
from fusewire._api.functions.ordering.selection import *  # noqa: F403
from fusewire._api.functions.ordering.sorting import *  # noqa: F403
from fusewire._api.functions.products import contraction as _contraction
from fusewire._api.functions.products import convolutions as _convolutions
from fusewire._api.functions.products import polynomials as _polynomials
from fusewire._api.functions.products import products as _products
from fusewire._api.functions.products.contraction import *  # noqa: F403
from fusewire._api.functions.products.convolutions import *  # noqa: F403
from fusewire._api.functions.products.polynomials import *  # noqa: F403
from fusewire._api.functions.products.products import *  # noqa: F403
from fusewire._api.functions.reduction import accumulation as _accumulation
from fusewire._api.functions.reduction import nan_aware as _nan_aware
from fusewire._api.functions.reduction import pools as _pools
from fusewire._api.functions.reduction import reductions as _reductions
from fusewire._api.functions.reduction import statistics as _statistics
from fusewire._api.functions.reduction.accumulation import *  # noqa: F403
from fusewire._api.functions.reduction.nan_aware import *  # noqa: F403
from fusewire._api.functions.reduction.pools import *  # noqa: F403
from fusewire._api.functions.reduction.reductions import *  # noqa: F403
from fusewire._api.functions.reduction.statistics import *  # noqa: F403
from fusewire._api.protocols.numpy_parameters import with_numpys_parameters as _with_numpys_parameters
from fusewire._recording.recorded_ops import known_call as _known_call

if not _typing.TYPE_CHECKING:  # a type checker follows the imports above, and no sum of lists
    _topics = (
        _editing,
        _joining,
        _matrices,
        _padding,
        _places,
        _shapes,
        _calling,
        _creation,
        _grids,
        _windows,
        _dtypes,
        _arithmetic,
        _choices,
        _closeness,
        _complex_numbers,
        _exponents,
        _signs,
        _trigonometry,
        _numpy_names,
        _searching,
        _selection,
        _sorting,
        _contraction,
        _convolutions,
        _polynomials,
        _products,
        _accumulation,
        _nan_aware,
        _pools,
        _reductions,
        _statistics,
    )
    __all__ = [name for topic in _topics for name in topic.__all__]

    @_functools.cache  # two names of a function stay one function
    def _known(function):
        return _known_call(_with_numpys_parameters(function))

    for _topic in _topics:
        for _name in _topic.__all__:
            if isinstance(getattr(_topic, _name), _types.FunctionType):
                globals()[_name] = _known(getattr(_topic, _name))
                setattr(_topic, _name, globals()[_name])
