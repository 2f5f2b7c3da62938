"""The rule that ends the warm-up."""

from __future__ import annotations

import pytest

from loadtests.load.windows.samples import Window
from loadtests.load.windows.settling import has_settled


def _window(steps: int, p50_s: float | None = 0.01) -> Window:
    return Window(0.0, 1.0, steps, p50_s, p50_s, p50_s)


def test_three_even_windows_are_settled() -> None:
    assert has_settled([_window(10), _window(100), _window(105), _window(95)])


def test_two_windows_are_too_few() -> None:
    assert not has_settled([_window(100), _window(100)])


@pytest.mark.parametrize("last", [_window(130), _window(100, p50_s=0.013), _window(0, p50_s=None)])
def test_a_window_that_differs_unsettles(last: Window) -> None:
    assert not has_settled([_window(100), _window(100), last])
