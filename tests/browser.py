"""A browser for tests of pages: Chromium without a window. Without it, its driver or selenium they are skipped."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tests.patience import HANGS_S

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: pip install 'fusewire[dev]'")
_CHROMIUM, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (_CHROMIUM and _DRIVER), reason="Chromium is missing: apt install chromium-driver"
)

_T = TypeVar("_T")


def new_browser() -> Any:
    """Starts a browser. The caller ends it by `quit`."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(argument)
    options.binary_location = _CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(_DRIVER))


def console(browser: Any) -> list[str]:
    """What the console tells: errors, and requests that the page's policy forbids."""
    return [each["message"] for each in browser.get_log("browser") if "favicon" not in each["message"]]


def soon(read: Callable[[], _T]) -> _T:
    """What `read` returns once it is true."""
    ends_s = time.monotonic() + HANGS_S
    while time.monotonic() < ends_s:
        found = read()
        if found:
            return found
    raise AssertionError("the page does not show it")


def texts(browser: Any, selector: str) -> list[str]:
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector
    )
    return found
