# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Records ops: the tape of a thread, the objects of results, and the functions that operators call.

No Python code runs from the moment when an op's operands are read until its record is on the tape and its result is
complete. So no finaliser, no signal handler and no other thread ever sees half an op. What may run Python code comes
before: the rules for new specs, and the conversion of a scalar. The op's place and the checkpoint come behind.

Arrays are not tracked by the garbage collector, which would cost a third of the time of an op. An array refers to its
recorder and its spec alone, so it is part of a cycle only if the user stores it in an attribute of its own session.
Python frees such a session only after the user has deleted the attribute.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from functools import update_wrapper

from numpy import empty, int64, integer

from fusewire._recording.integer_scans import INSIDE, OUTSIDE
from fusewire._recording.op_rules import known_ops, learn, learn_beside
from fusewire._recording.pinned_handles import ForeignHandles
from fusewire._recording.places import INTERNAL, NOT_KNOWN, OPS_WITH_PLACES, places
from fusewire_protos.ops.dtypes import DType

include "compiled/python_api.pxi"
include "compiled/places.pxi"
include "compiled/tape.pxi"
include "compiled/arrays.pxi"
include "compiled/allocation.pxi"
include "compiled/records.pxi"
include "compiled/key_names.pxi"
include "compiled/operators.pxi"
include "compiled/known_calls.pxi"
include "compiled/default_session.pxi"
include "compiled/assignment.pxi"
