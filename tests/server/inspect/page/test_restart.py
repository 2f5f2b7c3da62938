"""A server that ends and starts again under an open page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.browser import NEEDS_CHROMIUM, soon, texts
from tests.server.inspect.page.served_page import CROWDED, MANY, serving

pytestmark = NEEDS_CHROMIUM


def test_the_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(browser: Any) -> None:
    with serving(CROWDED) as address:
        browser.get(f"{address}/ui/#now")
        soon(lambda: len(texts(browser, ".sessions tbody tr")) == MANY)
        assert texts(browser, "#state") == ["live"]
    soon(lambda: texts(browser, "#state") == ["offline: the server does not answer"])
    with serving(CROWDED, port=urlsplit(address).port or 0):
        soon(lambda: texts(browser, "#state") == ["live"])
        soon(lambda: len(texts(browser, ".sessions tbody tr")) == MANY)
        names = texts(browser, ".sessions tbody a")
        assert len({*names}) == len(names) == MANY
        browser.find_element("css selector", "a[data-view=stream]").click()
        soon(lambda: texts(browser, ".legend.programs a"))
        soon(lambda: texts(browser, "#state") == ["live"])
