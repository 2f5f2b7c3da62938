"""The rules of axe-core (WCAG 2.1 A and AA, and its best practices) find no fault in a view, and keys do everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any

import pytest

from tests.browser import NEEDS_CHROMIUM, soon, texts
from tests.server.inspect.page.served_page import CROWDED

pytest.importorskip("axe_core_python", reason="axe-core is missing: pip install 'fusewire[dev]'")
pytestmark = NEEDS_CHROMIUM

_VIEWS = {
    "now": ".sessions tbody tr",
    "stream": ".legend.programs a",
    "program/aa": ".node",
    "company/0123456789ab": ".bars a",
}
_SIZES = {"desk": (1300, 900), "phone": (390, 844)}
_RUN = """const done = arguments[arguments.length - 1];
axe.run().then(found => done(found.violations.flatMap(
  each => each.nodes.map(node => `${each.id}: ${node.target.join(" ")}: ${node.failureSummary}`))))"""


def _look(browser: Any, scheme: str, size: tuple[int, int]) -> None:
    width, height = size
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # for axe, which is no part of the page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", _SIZES.values(), ids=_SIZES)
def test_axe_finds_no_fault(browser: Any, page: Callable[..., str], scheme: str, size: tuple[int, int]) -> None:
    _look(browser, scheme, size)
    address, found = page(CROWDED), {}
    browser.get(f"{address}/ui/")
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    for view, shown in _VIEWS.items():
        browser.execute_script("location.hash = arguments[0]", view)
        soon(partial(texts, browser, shown))
        found[view] = browser.execute_async_script(_RUN)
        width = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{view} is wider than the screen"
    assert found == {view: [] for view in _VIEWS}


def test_keys_reach_every_view_and_each_of_its_parts(browser: Any, page: Callable[..., str]) -> None:
    browser.get(f"{page()}/ui/#now")
    soon(lambda: texts(browser, ".sessions tbody tr"))
    for view in ("stream", "program", "company"):
        _tab_to(browser, f"a[data-view={view}]").send_keys("\n")
        soon(partial(texts, browser, f"main .{'two' if view == 'program' else view}"))
    browser.get(browser.current_url.partition("#")[0] + "#program/aa")
    soon(lambda: texts(browser, ".node"))
    _tab_to(browser, ".node").send_keys("\n")
    soon(lambda: texts(browser, ".ops li.chosen") == texts(browser, ".ops li:first-child"))


def _tab_to(browser: Any, selector: str) -> Any:
    """Presses the tab key until an element that a selector finds has the focus, at most a hundred times."""
    for _ in range(100):
        browser.switch_to.active_element.send_keys("\ue004")
        if browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return browser.switch_to.active_element
    raise AssertionError(f"no tab leads to {selector}")
