"""Acts from the page: offered to whom the token allows them, confirmed first, and answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fusewire_server.access.tokens import Authenticator, Scope, mint
from tests.browser import NEEDS_CHROMIUM, soon, texts
from tests.server.inspect.examples import SNAPSHOT, RememberingControl

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def control() -> RememberingControl:
    return RememberingControl()


@pytest.fixture
def link(page: Callable[..., str], tmp_path: Path, control: RememberingControl) -> Callable[..., str]:
    """The link of the page with a token of a scope, at a view."""

    def link(scope: Scope, view: str = "now", snapshot: object = SNAPSHOT) -> str:
        token = mint(tmp_path / "tokens", tenant="lab", scope=scope)
        address = page(snapshot, authenticator=Authenticator(tmp_path / "tokens"), control=control)
        return f"{address}/ui/#token={token}&{view}"

    return link


def click(browser: Any, text: str, place: str = "main") -> None:
    soon(lambda: shown(browser, text, place))[0].click()


def shown(browser: Any, text: str, place: str = "main") -> list[Any]:
    found = browser.find_elements("xpath", f"//{place}//button[text()='{text}']")
    return [each for each in found if each.is_displayed()]


def test_the_device_is_held_once_its_consequence_is_confirmed(
    browser: Any, link: Callable[..., str], control: RememberingControl
) -> None:
    browser.get(link(Scope.ADMIN))
    click(browser, "Hold the device")
    assert "No submission begins until somebody releases" in "".join(texts(browser, "dialog[open]"))
    assert control.calls == []
    click(browser, "Hold the device", "dialog")
    soon(lambda: texts(browser, "dialog [role=status]") == ["Done: held: true"])
    assert control.calls == ["hold"]
    click(browser, "Close", "dialog")
    assert texts(browser, "dialog") == []


def test_an_act_that_is_not_confirmed_does_nothing(
    browser: Any, link: Callable[..., str], control: RememberingControl
) -> None:
    browser.get(link(Scope.ADMIN))
    click(browser, "Drain the server")
    click(browser, "Cancel", "dialog")
    click(browser, "Drain the server")
    browser.switch_to.active_element.send_keys("\ue00c")  # Escape
    soon(lambda: texts(browser, "dialog") == [])
    assert control.calls == []


def test_a_session_is_ended_and_the_log_set_from_the_page(
    browser: Any, link: Callable[..., str], control: RememberingControl
) -> None:
    browser.get(link(Scope.ADMIN, "company/0123456789ab"))
    click(browser, "End this session")
    assert "ppo-worker-7 (tenant lab)" in "".join(texts(browser, "dialog[open]"))
    click(browser, "End this session", "dialog")
    soon(lambda: texts(browser, "dialog [role=status]") == ["Done: session: 0123456789ab, ending: true"])
    click(browser, "Close", "dialog")
    browser.find_element("css selector", "a[data-view=now]").click()
    soon(lambda: shown(browser, "Set"))
    browser.find_element("id", "log-level").send_keys("warning")
    click(browser, "Set")
    click(browser, "Set the level of the log", "dialog")
    soon(lambda: texts(browser, "dialog [role=status]") == ["Done: level: warning"])
    assert control.calls == ["end 0123456789ab", "log warning"]


def test_a_held_device_can_be_released(browser: Any, link: Callable[..., str], control: RememberingControl) -> None:
    held = replace(SNAPSHOT, stats=replace(SNAPSHOT.stats, is_held=True))
    browser.get(link(Scope.ADMIN, snapshot=held))
    click(browser, "Release the device")
    click(browser, "Release the device", "dialog")
    soon(lambda: control.calls == ["release"])
    assert shown(browser, "Hold the device") == []


@pytest.mark.parametrize("scope", [Scope.USE, Scope.INSPECT])
def test_no_act_is_offered_to_whom_the_token_does_not_allow_it(
    browser: Any, link: Callable[..., str], scope: Scope
) -> None:
    browser.get(link(scope))
    soon(lambda: texts(browser, ".sessions tbody tr"))
    assert shown(browser, "Hold the device") + shown(browser, "Drain the server") == []


def test_without_a_token_the_page_says_how_to_operate(browser: Any, page: Callable[..., str]) -> None:
    browser.get(f"{page()}/ui/#now")
    soon(lambda: texts(browser, ".sessions tbody tr"))
    assert shown(browser, "Hold the device") == []
    assert browser.find_element("xpath", "//code[text()='fusewire ui']").is_displayed()
