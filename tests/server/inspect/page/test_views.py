"""The page in a real browser: what it shows is what REST tells, live, without an error or a forbidden request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fusewire_server.access.tokens import Authenticator, Scope, mint
from tests.server.inspect.page.browsing import CROWDED, MANY, NEEDS_CHROMIUM, soon, texts

pytestmark = NEEDS_CHROMIUM


def test_now_shows_each_session_as_rest_tells_it(browser: Any, page: Callable[..., str]) -> None:
    browser.get(f"{page(CROWDED)}/")  # which leads to the page
    assert soon(lambda: browser.current_url.endswith("/ui/"))
    soon(lambda: len(texts(browser, ".sessions tbody tr")) == MANY)
    assert texts(browser, ".sessions h3") == ["200 sessions"]
    (row,) = [each for each in texts(browser, ".sessions tbody tr") if each.startswith("worker-7credit")]
    assert row.endswith("7.0 MiB")
    soon(lambda: texts(browser, ".chart output")[1] not in {"", "0"})
    browser.find_element("css selector", "input[type=search]").send_keys("worker-19")
    soon(lambda: len(texts(browser, ".sessions tbody tr")) == 11)


def test_each_view_shows_its_data_without_an_error(browser: Any, page: Callable[..., str]) -> None:
    address = page()
    browser.get(f"{address}/ui/#program/aa")
    soon(lambda: texts(browser, ".launches code") == ["k_add"])
    assert texts(browser, "pre") == ["void k_add(void) {}"]
    soon(lambda: texts(browser, ".detail .chip"))
    browser.get(f"{address}/ui/#company/0123456789ab")
    soon(lambda: texts(browser, ".company .bars a") == ["theirs"])
    browser.get(f"{address}/ui/#stream")
    soon(lambda: texts(browser, ".legend.programs a"))


def test_a_hundred_thousand_launches_are_drawn_in_time_and_picked_by_keys(
    browser: Any, page: Callable[..., str]
) -> None:
    browser.get(f"{page()}/ui/#stream")
    soon(lambda: texts(browser, ".legend.programs a"))
    browser.find_element("xpath", "//button[text()='60 s']").click()
    soon(lambda: "k submissions" in "".join(texts(browser, "#stream-figures")))
    drawn_ms = sorted(
        soon(lambda: float(browser.find_element("id", "timeline").get_attribute("data-draw-ms"))) for _ in range(20)
    )
    assert drawn_ms[10] <= 50
    canvas = browser.find_element("id", "timeline")
    canvas.send_keys("]")
    soon(lambda: "Why it ended there" in "".join(texts(browser, ".details")))
    assert texts(browser, ".details .chip")


def test_a_token_comes_by_the_link_or_the_form_and_is_not_kept(
    browser: Any, page: Callable[..., str], tmp_path: Path
) -> None:
    token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
    address = page(authenticator=Authenticator(tmp_path / "tokens"))
    browser.get(f"{address}/ui/#token={token}")
    soon(lambda: texts(browser, ".sessions tbody tr"))
    assert token not in browser.current_url
    stored = browser.execute_script("return [document.cookie, localStorage.length, sessionStorage.length]")
    assert stored == ["", 0, 0]
    browser.get("about:blank")
    browser.get(f"{address}/ui/")
    field = browser.find_element("id", "token")
    soon(field.is_displayed)
    field.send_keys(token + "\n")
    soon(lambda: texts(browser, ".sessions tbody tr"))
