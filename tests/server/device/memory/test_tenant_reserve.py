"""Tenants in the device's memory: who holds much leaves the last part of it to others."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.memory.tenant_reserve import TenantReserve
from fusewire_server.device.orders import Order
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders
from fusewire_server.sessions.device_share import NOBODYS, DeviceShare
from fusewire_server.sessions.session import Value, ValueState
from tests.server.parts import SIZE_BYTES, VECTOR

MEMORY_BYTES = 800
EIGHTH = 1 / 8


def holding(reserve: TenantReserve, held_bytes: int) -> DeviceShare:
    share = DeviceShare()
    share.held_bytes = held_bytes
    if held_bytes:
        reserve.note_held(share)
    return share


def test_a_tenant_alone_leaves_the_reserve_free() -> None:
    reserve = TenantReserve(EIGHTH)
    one = holding(reserve, 600)
    reserve.check(one, 100, 600, MEMORY_BYTES)
    with pytest.raises(OutOfMemory, match=r"last 100 are for others; limits.tenant_reserve = 0.125"):
        reserve.check(one, 101, 600, MEMORY_BYTES)


def test_who_holds_little_takes_the_reserve_up_to_its_share() -> None:
    reserve = TenantReserve(EIGHTH)
    one, other = holding(reserve, 700), holding(reserve, 0)
    reserve.check(other, 100, 700, MEMORY_BYTES)
    other = holding(reserve, 50)
    reserve.check(other, 50, 750, MEMORY_BYTES)  # two tenants hold memory, so a third of it is a share
    with pytest.raises(OutOfMemory):
        reserve.check(one, 1, 750, MEMORY_BYTES)
    reserve.note_empty(other)
    one.held_bytes = 300
    reserve.check(one, 100, 700, MEMORY_BYTES)  # half of it, as the other holds none again


def test_without_a_reserve_nothing_is_kept_and_what_is_nobodys_may_take_all() -> None:
    assert not TenantReserve().is_kept
    TenantReserve(EIGHTH).check(NOBODYS, MEMORY_BYTES, 0, MEMORY_BYTES)


def test_blocks_count_for_their_tenant_until_they_are_given_back() -> None:
    device = NullDevice()
    memory = DeviceMemory(device, UnfinishedOrders[Order](), TenantReserve(EIGHTH))
    one = DeviceShare()
    value = Value(1, VECTOR, ValueState.READY)
    value.share, value.block = one, memory.allocate(SIZE_BYTES, one)
    other = Value(2, VECTOR, ValueState.READY)
    other.share = one
    temporaries = memory.begin_run(lambda: None)
    temporaries.become(other, temporaries.allocate(SIZE_BYTES))
    assert one.held_bytes == value.block.size_bytes + memory.count().live_bytes // 2
    memory.release((value, other))
    assert (one.held_bytes, memory.count().live_bytes) == (0, 0)
