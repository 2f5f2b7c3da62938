"""The GPUs that a process may use, by the driver and by the variable that names some of them."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices import visible_gpus as module
from fusewire_kernels.devices.visible_gpus import visible_gpus


@pytest.mark.parametrize(
    ("count", "named", "expected"),
    [
        (0, None, ()),
        (2, None, ("0", "1")),
        (2, "", ("0", "1")),
        (2, "3, 1", ("3", "1")),
        (1, "GPU-aa,GPU-bb", ("GPU-aa",)),  # the driver does not show what is named wrongly
        (0, "7", ()),
    ],
)
def test_each_gpu_has_the_name_by_which_a_process_sees_it_alone(
    count: int, named: str | None, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_count", lambda: count)
    environment = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
    assert visible_gpus(environment) == expected


def test_without_a_driver_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LIBRARY", "libno-such-driver.so.1")
    assert visible_gpus({}) == ()
