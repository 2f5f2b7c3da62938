"""The description of a device."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.base import DeviceInfo


@pytest.mark.parametrize(("dialect", "is_gpu"), [("cuda", True), ("c", False), (None, False)])
def test_the_dialect_of_a_device_says_whether_it_is_a_gpu(dialect: str | None, is_gpu: bool) -> None:
    assert DeviceInfo("", "", dialect, "", 0, "", has_compiler=False).is_gpu is is_gpu
