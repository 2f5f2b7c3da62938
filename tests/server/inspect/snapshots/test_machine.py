"""What the machine tells is read at most once a second, and the GPU on another thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fusewire_server.host.gpu_health import Gpu
from fusewire_server.inspect.snapshots.machine import Machine
from tests.server.world import run, until

SECOND_NS = 1_000_000_000


def test_the_machine_is_read_once_a_second() -> None:
    async def test() -> None:
        machine = Machine(None, None)
        machine.look(2 * SECOND_NS)
        first = machine.process
        assert first.tasks == 1
        machine.look(3 * SECOND_NS)
        assert machine.process is first
        machine.look(3 * SECOND_NS + 1)
        assert machine.process is not first
        assert machine.certificate_expires_at_s is None
        assert machine.gpu == Gpu()

    run(test())


def test_the_gpu_is_read_on_another_thread_and_told_at_the_next_look() -> None:
    async def test() -> None:
        threads: list[int] = []

        def read() -> Gpu:
            threads.append(threading.get_ident())
            return Gpu(utilization_ratio=0.5)

        machine = Machine(None, read)
        machine.look(2 * SECOND_NS)
        assert machine.gpu == Gpu()
        await until(lambda: machine._reading is not None and machine._reading.done())
        machine.look(4 * SECOND_NS)
        assert machine.gpu.utilization_ratio == 0.5
        assert threading.get_ident() not in threads

    run(test())


@pytest.mark.parametrize("error", [OSError("gone"), ValueError()])
def test_a_gpu_that_cannot_be_read_stays_as_it_was(error: Exception) -> None:
    async def test() -> None:
        def read() -> Gpu:
            raise error

        machine = Machine(None, read)
        for second in (2, 4, 6):
            machine.look(second * SECOND_NS)
            assert machine._reading is not None
            await asyncio.wait([machine._reading])
        assert machine.gpu == Gpu()

    run(test())
