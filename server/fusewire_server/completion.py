"""What is reported when the device has come so far: at once if it has, else by a thread that waits on fences in order.

So the device thread waits for no fence, and reports come in the order in which they were asked for.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from fusewire_kernels.devices.base import Device, Fence
from fusewire_server.orders import Broken, Report


class Completion:
    """Makes reports. `report` is called from the device and the completion thread."""

    def __init__(self, device: Device, report: Callable[[Report], None]) -> None:
        self._device = device
        self._report = report
        self._fenced: queue.SimpleQueue[tuple[Fence, Callable[[int], Report]] | None] = queue.SimpleQueue()
        self._handed_over = 0  # reports, to the completion thread; the device thread writes
        self._completed = 0  # of these, that have been made; the completion thread writes
        self._past_ns = 0  # when the device was past what was last reported; whoever makes a report writes
        self._thread = threading.Thread(target=self._complete, name="fusewire-completion", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Waits until all reports are made. Device thread."""
        self._fenced.put(None)
        self._thread.join()

    def when_reached(self, report: Callable[[int], Report]) -> None:
        """Has a report made once the device is past all that it has been told. Device thread.

        `report` is given the `perf_counter_ns` at which the device was past what the report before is of.
        """
        fence = self._device.fence()
        if fence.is_reached() and self._handed_over == self._completed:
            self._report(self._made(report))
        else:
            self._handed_over += 1
            self._fenced.put((fence, report))

    def _made(self, report: Callable[[int], Report]) -> Report:
        before_ns, self._past_ns = self._past_ns, time.perf_counter_ns()
        return report(before_ns)

    def _complete(self) -> None:
        while (fenced := self._fenced.get()) is not None:
            fence, report = fenced
            try:
                fence.wait()
                reached = self._made(report)
            except Exception as error:  # noqa: BLE001 - whatever it is, the device can no longer be trusted
                self._report(Broken(error))
                return
            self._report(reached)
            self._completed += 1
