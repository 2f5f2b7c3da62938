"""Chromium for tests of pages, without a window. Tests skip where it, its driver or selenium is missing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from tests.patience import HANGS_S

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: pip install 'fusewire[dev]'")
_CHROMIUM, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEEDS_CHROMIUM = pytest.mark.skipif(
    not (_CHROMIUM and _DRIVER), reason="Chromium is missing: apt install chromium-driver"
)

_T = TypeVar("_T")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser. At its end its console has no errors but failed requests, and none that the page's policy forbids."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(argument)
    options.binary_location = _CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(_DRIVER))
    driver.set_script_timeout(HANGS_S)
    try:
        yield driver
        messages = [each["message"] for each in driver.get_log("browser")]
    finally:
        driver.quit()
    assert [each for each in messages if "Failed to load resource" not in each] == []


def soon(read: Callable[[], _T]) -> _T:
    """What `read` returns once it is true."""
    ends_s = time.monotonic() + HANGS_S
    while time.monotonic() < ends_s:
        found = read()
        if found:
            return found
    raise AssertionError("the page does not show it")


def texts(browser: Any, selector: str) -> list[str]:
    """The texts of the elements that a selector finds."""
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector
    )
    return found
