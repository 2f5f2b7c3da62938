"""Reads what the machine tells of a server: its process, disk, certificate and GPU, at most once a second."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from fusewire_kernels.compile.binary_cache import default_cache_folder
from fusewire_server.access.certificates import expires_at_s
from fusewire_server.host.disk_space import free_bytes
from fusewire_server.host.gpu_health import Gpu, ReadHealth
from fusewire_server.host.process_usage import Process, process_usage

_READ_EVERY_NS = 1_000_000_000  # reading takes the engine thread a few tenths of a millisecond


class Machine:
    """What was read last. Runs on the engine thread; only the GPU, which may be slow, is read on another one."""

    def __init__(self, certificate: Path | None, read_gpu: ReadHealth | None) -> None:
        self.process = Process()
        self.gpu = Gpu()
        self.disk_free_bytes: int | None = None
        self.certificate_expires_at_s: float | None = None
        self._certificate = certificate
        self._read_gpu = read_gpu
        self._reading: asyncio.Future[Gpu] | None = None
        self._read_at_ns = 0

    def look(self, now_ns: int) -> None:
        """Reads all, if the last time was a second ago. The GPU is told as it was when it was read before."""
        if now_ns - self._read_at_ns <= _READ_EVERY_NS:
            return
        self._read_at_ns = now_ns
        self.process = replace(process_usage(), tasks=len(asyncio.all_tasks()))
        self.disk_free_bytes = free_bytes(default_cache_folder())
        self.certificate_expires_at_s = None if self._certificate is None else expires_at_s(self._certificate)
        if self._reading is not None and self._reading.done() and self._reading.exception() is None:
            self.gpu = self._reading.result()
        if self._read_gpu is not None and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().run_in_executor(None, self._read_gpu)

    def look_again(self) -> None:
        """Lets the next look read everything."""
        self._read_at_ns = 0
