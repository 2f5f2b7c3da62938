"""Reports work when the device has reached its fence: at once if it has, else from a thread that waits for it.

What is said here of the device thread holds for the engine thread while it uses the device.

So the device thread waits for no fence, and reports come in the order in which they were asked for. If a client waits
for the value and the device thread has no other order, the device thread polls the fence for up to `LOOK_NS` before it
hands the report over: waking another thread takes longer than a short kernel does.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from fusewire_kernels.devices.base import Device, Fence
from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.orders import Broken, Report

LOOK_NS = 50_000


class Completion:
    """Makes reports. The device thread and the completion thread pass them to `reports`.

    `is_idle` tells whether the device thread has no order to act on.
    """

    def __init__(self, device: Device, reports: JoinedReports, is_idle: Callable[[], bool]) -> None:
        self._device = device
        self._reports = reports
        self._is_idle = is_idle
        self._fenced: queue.SimpleQueue[tuple[Fence, Callable[[], Report]] | None] = queue.SimpleQueue()
        self._handed_over = 0  # reports given to the completion thread; written by the device thread
        self._completed = 0  # those of them that have been made; written by the completion thread
        self._waiting_since_ns: int | None = None  # written by the completion thread
        self._thread = threading.Thread(target=self._complete, name="fusewire-completion", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Waits until all reports are made. Device thread."""
        self._fenced.put(None)
        self._thread.join()

    def waited_ns(self, now_ns: int) -> int:
        """Returns how long the completion thread has waited for the fence that is next. Any thread.

        It is 0 while a submission is still being launched, even if the device thread waits for room in the stream.
        """
        since_ns = self._waiting_since_ns
        return 0 if since_ns is None else now_ns - since_ns

    @property
    def awaits_nothing(self) -> bool:
        """Whether all work has ended that was still going on when its report was asked for. Device thread."""
        return self._handed_over == self._completed

    def when_reached(
        self, report: Callable[[], Report], *, is_awaited: bool = False, fence: Fence | None = None
    ) -> None:
        """Makes a report once the device has done all work that it has been given. Device thread.

        `is_awaited`: a client waits for a value that the report carries. `fence`: a fence after all that work, if the
        caller has one.
        """
        if fence is None:
            fence = self._device.fence()
        if self.awaits_nothing and (fence.is_reached() or (is_awaited and self._is_reached_soon(fence))):
            self._reports.add(report())
        else:
            self._handed_over += 1
            self._fenced.put((fence, report))

    def _is_reached_soon(self, fence: Fence) -> bool:
        until_ns = time.perf_counter_ns() + LOOK_NS
        while self._is_idle() and time.perf_counter_ns() < until_ns:
            if fence.is_reached():
                return True
        return False

    def _complete(self) -> None:
        while (fenced := self._fenced.get()) is not None:
            fence, report = fenced
            try:
                self._waiting_since_ns = time.monotonic_ns()
                fence.wait()
                self._waiting_since_ns = None
                reached = report()
            except Exception as error:  # noqa: BLE001 - the device can no longer be trusted, whatever the error is
                self._reports.report(Broken(error))
                return
            self._reports.report(reached)
            self._completed += 1
