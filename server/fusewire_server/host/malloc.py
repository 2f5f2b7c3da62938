"""Sets malloc to keep freed chunks for later chunks instead of giving the freed chunks back to the system.

By default glibc maps fresh pages for each large chunk, and gives the end of the heap back to the system as soon as that
end is free. Then every chunk that gRPC receives or sends would need fresh pages. Fresh pages cost more than all copies
of the chunk's bytes together. A compiler in the process would need fresh pages for each kernel.
"""

from __future__ import annotations

import ctypes

# Parameters of mallopt(3), and their values in bytes.
_TRIM_THRESHOLD, _KEPT_BYTES = -1, 128 << 20
_MMAP_THRESHOLD, _MAPPED_BYTES = -3, 16 << 20


def keep_freed_memory() -> None:
    """Makes malloc of the whole process keep freed chunks. Does nothing if the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)
