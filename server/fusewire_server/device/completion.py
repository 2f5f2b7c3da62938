"""Reports work once the device has reached its fence: at once if it has, else from a thread that waits.

So the device thread waits for no fence, and reports come in the order in which they were asked for. Where somebody
waits for a value and the device thread has nothing else to do, it looks for the fence for a moment: to wake another
thread takes longer than what is short takes the device.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from fusewire_kernels.devices.base import Device, Fence
from fusewire_server.device.orders import Broken, Report

LOOK_NS = 50_000


class Completion:
    """Makes reports. `report` is called from the device and the completion thread.

    `is_idle` says whether the device thread has no order to act on.
    """

    def __init__(self, device: Device, report: Callable[[Report], None], is_idle: Callable[[], bool]) -> None:
        self._device = device
        self._report = report
        self._is_idle = is_idle
        self._fenced: queue.SimpleQueue[tuple[Fence, Callable[[], Report]] | None] = queue.SimpleQueue()
        self._handed_over = 0  # reports, to the completion thread; the device thread writes
        self._completed = 0  # of these, that have been made; the completion thread writes
        self._thread = threading.Thread(target=self._complete, name="fusewire-completion", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Waits until all reports are made. Device thread."""
        self._fenced.put(None)
        self._thread.join()

    def when_reached(
        self, report: Callable[[], Report], *, is_awaited: bool = False, fence: Fence | None = None
    ) -> None:
        """Has a report made once the device is past all that it has been told. Device thread.

        `is_awaited`: somebody waits for a value that comes with the report. `fence`: one made after all of it, if the
        caller has one already.
        """
        if fence is None:
            fence = self._device.fence()
        if self._handed_over == self._completed and (
            fence.is_reached() or (is_awaited and self._is_reached_soon(fence))
        ):
            self._report(report())
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
                fence.wait()
                reached = report()
            except Exception as error:  # noqa: BLE001 - whatever it is, the device can no longer be trusted
                self._report(Broken(error))
                return
            self._report(reached)
            self._completed += 1
