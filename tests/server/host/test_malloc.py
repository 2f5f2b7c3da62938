"""The C library's heap, in a process of its own: the setting is for the whole process and for good."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tests.patience import HANGS_S

_CHUNKS = """
import ctypes
import resource
from fusewire_server.host.malloc import keep_freed_memory

keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
CHUNK_BYTES = 1 << 20

def take_and_free_a_chunk():
    address = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(CHUNK_BYTES)))
    libc.memset(address, 1, ctypes.c_size_t(CHUNK_BYTES))
    libc.free(address)

take_and_free_a_chunk()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    take_and_free_a_chunk()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_memory_of_a_chunks_size_is_taken_again_without_fresh_pages() -> None:
    faults = int(subprocess.check_output([sys.executable, "-c", _CHUNKS], timeout=HANGS_S))
    pages_a_chunk = (1 << 20) // 4096
    assert faults < pages_a_chunk


def test_a_library_without_the_setting_is_left_as_it_is() -> None:
    text = (
        "import ctypes\n"
        "ctypes.CDLL = lambda name: object()\n"
        "from fusewire_server.host.malloc import keep_freed_memory\n"
        "keep_freed_memory()\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=HANGS_S)
