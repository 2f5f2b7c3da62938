"""Makes the CUDA driver calls that every submission needs. The calls stay cheap while other threads are busy.

CuPy's own calls release Python's interpreter lock. If another thread computes in Python, each call may then wait a
whole switch interval to get the lock back, and a plan makes dozens of calls. The calls here keep the lock. Each call
ends within microseconds as long as the driver's queue is not full. `Stream` keeps the queue from becoming full. Only
waiting for a fence releases the lock.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from cupy.cuda import driver, runtime

from fusewire_protos.errors import ConfigurationError, ServerFault

# The arguments of cuLaunchKernel. They are made once: some are pointers to the values that differ between launches.
Call = tuple[Any, ...]

_STARTS_EARLY = 6  # the number of a launch's attribute: programmatic stream serialization

OUT_OF_MEMORY = 2  # the status that the driver and the runtime report

_LIBRARY = "libcuda.so.1"
_SUCCESS = 0
_NOT_READY = 600
_DYNAMIC_SHARED_BYTES = 8  # the number of a function's attribute
_UNTIMED = runtime.eventDisableTiming | runtime.eventBlockingSync
_TIMED = runtime.eventBlockingSync
# The driver queues about a thousand operations. A call that exceeds this number blocks its caller.
_OPERATIONS_A_MARK = 128
_UNREACHED_MARKS = 3


class _Attribute(ctypes.Structure):
    """The driver's CUlaunchAttribute: an attribute of a launch, whose value is an integer."""

    _fields_ = (
        ("number", ctypes.c_uint),
        ("unused", ctypes.c_uint),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_char * 60),
    )


class _Launch(ctypes.Structure):
    """The driver's CUlaunchConfig. `sizes` are those of the grid, of a block, and of its shared memory in bytes."""

    _fields_ = (
        ("sizes", ctypes.c_uint * 7),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attributes_count", ctypes.c_uint),
    )


class EventPool:
    """CUDA events of one kind that no fence uses and that can be recorded again. Any thread may use the pool."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._idle: deque[int] = deque()

    def take(self) -> int:
        try:
            return self._idle.pop()
        except IndexError:
            event: int = runtime.eventCreateWithFlags(self._flags)
            return event

    def give_back(self, event: int) -> None:
        self._idle.append(event)


class CudaFence:
    """A CUDA event in a stream.

    `wait` sleeps instead of polling. `is_reached` and `wait` raise ServerFault if the device has become unusable.
    """

    def __init__(self, events: EventPool) -> None:
        self._events = events
        self.event = events.take()
        self._is_reached = False  # changes only from False to True, in any thread

    def is_reached(self) -> bool:
        if self._is_reached:
            return True
        status = runtime.eventQuery(self.event)
        if status not in (_SUCCESS, _NOT_READY):
            raise ServerFault(f"work on the device failed: {runtime.CUDARuntimeError(status)}")
        self._is_reached = status == _SUCCESS
        return self._is_reached

    def wait(self) -> None:
        if self.is_reached():  # this query keeps the interpreter lock; sleeping releases it
            return
        try:
            runtime.eventSynchronize(self.event)
        except runtime.CUDARuntimeError as error:
            raise ServerFault(f"work on the device failed: {error}") from error
        self._is_reached = True

    def __del__(self) -> None:
        self._events.give_back(self.event)


class TimedCudaFence(CudaFence):
    """A fence whose event also records the time at which the device reached it."""

    def ns_since(self, earlier: TimedCudaFence) -> int:
        elapsed_ms: float = runtime.eventElapsedTime(earlier.event, self.event)
        return round(elapsed_ms * 1e6)


AnyFence = TypeVar("AnyFence", bound=CudaFence)


class Stream:
    """Sends work to one CUDA stream. One thread uses the object, and another one calls `capture`.

    The CUDA context is current in both.

    Every method may raise ServerFault, because the driver reports a failure of earlier work at a later call.
    """

    def __init__(self, address: int) -> None:
        self.pointer = ctypes.c_void_p(address)
        self._events = EventPool(_UNTIMED)
        self._timed_events = EventPool(_TIMED)
        self._marks: deque[CudaFence] = deque()
        self._unmarked_operations = 0
        library = _library()
        self._launch_kernel = library.cuLaunchKernel
        self._launch_with_attributes = library.cuLaunchKernelEx
        self._copy_to_device = library.cuMemcpyHtoDAsync_v2
        self._copy_to_host = library.cuMemcpyDtoHAsync_v2
        self._copy_on_device = library.cuMemcpyDtoDAsync_v2
        self._record = library.cuEventRecord
        self._launch_executable = library.cuGraphLaunch
        self._set_attribute = library.cuFuncSetAttribute
        self._count_clusters = library.cuOccupancyMaxActiveClusters

    def launch(self, calls: Sequence[Call]) -> None:
        """Launches any number of kernels."""
        if len(calls) <= _OPERATIONS_A_MARK:
            self._launch(calls)
            self._count(len(calls))
            return
        for first in range(0, len(calls), _OPERATIONS_A_MARK):
            part = calls[first : first + _OPERATIONS_A_MARK]
            self._launch(part)
            self._count(len(part))

    def allow_shared_memory(self, function: ctypes.c_void_p, size_bytes: int) -> None:
        """Lets blocks of a kernel use so much dynamic shared memory."""
        _check(self._set_attribute(function, ctypes.c_int(_DYNAMIC_SHARED_BYTES), ctypes.c_int(size_bytes)))

    def clusters_at_once(self, call: Call) -> int:
        """Returns how many of a kernel's clusters the device runs at once. It is 0 if the device cannot run any."""
        function, *sizes, pointer, _, _ = call
        launch, count = _Launch(tuple([size.value for size in sizes]), pointer), ctypes.c_int()
        _check(self._count_clusters(ctypes.byref(count), function, ctypes.byref(launch)))
        return count.value

    def capture(self, calls: Sequence[Call], capturing: ctypes.c_void_p, *, start_early: bool) -> None:
        """Adds launches to the graph that another stream captures.

        If they `start_early`, a kernel starts before the one ahead of it has ended, and waits before it touches arrays.
        """
        attribute = ctypes.pointer(_Attribute(_STARTS_EARLY, value=1))
        for function, *sizes, _, pointers, extra in calls:
            launch = _Launch(tuple([size.value for size in sizes]), capturing, attribute, int(start_early))
            _check(self._launch_with_attributes(ctypes.byref(launch), function, pointers, extra))

    def launch_graph(self, executable: int) -> None:
        """Launches all nodes of a captured graph."""
        _check(self._launch_executable(ctypes.c_void_p(executable), self.pointer))
        self._count(1)

    def copy_to_device(self, address: int, host_address: int, size_bytes: int) -> None:
        """Copies from page-locked memory, which must not change until a later fence is reached."""
        size = ctypes.c_size_t(size_bytes)
        _check(self._copy_to_device(ctypes.c_void_p(address), ctypes.c_void_p(host_address), size, self.pointer))
        self._count(1)

    def copy_to_host(self, host_address: int, address: int, size_bytes: int) -> None:
        """Copies into page-locked memory, which holds the bytes once a later fence is reached."""
        size = ctypes.c_size_t(size_bytes)
        _check(self._copy_to_host(ctypes.c_void_p(host_address), ctypes.c_void_p(address), size, self.pointer))
        self._count(1)

    def copy_on_device(self, address: int, source_address: int, size_bytes: int) -> None:
        size = ctypes.c_size_t(size_bytes)
        _check(self._copy_on_device(ctypes.c_void_p(address), ctypes.c_void_p(source_address), size, self.pointer))
        self._count(1)

    def fence(self) -> CudaFence:
        return self._recorded(CudaFence(self._events))

    def timed_fence(self) -> TimedCudaFence:
        return self._recorded(TimedCudaFence(self._timed_events))

    def _recorded(self, fence: AnyFence) -> AnyFence:
        _check(self._record(ctypes.c_void_p(fence.event), self.pointer))
        return fence

    def _launch(self, calls: Sequence[Call]) -> None:
        launch_kernel = self._launch_kernel
        for call in calls:
            status = launch_kernel(*call)
            if status != _SUCCESS:
                _check(status)

    def _count(self, operations: int) -> None:
        """Waits while too many operations are queued, because a full queue would block the whole interpreter."""
        self._unmarked_operations += operations
        if self._unmarked_operations < _OPERATIONS_A_MARK:
            return
        self._unmarked_operations = 0
        self._marks.append(self.fence())
        if len(self._marks) > _UNREACHED_MARKS:
            self._marks.popleft().wait()


def _library() -> ctypes.PyDLL:
    try:
        return ctypes.PyDLL(_LIBRARY)
    except OSError as error:
        raise ConfigurationError(f"the NVIDIA driver cannot be loaded: {error}") from None


def _check(status: int) -> None:
    if status != _SUCCESS:
        raise ServerFault(f"the device refused work: {driver.CUDADriverError(status)}")
