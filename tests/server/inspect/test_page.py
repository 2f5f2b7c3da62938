"""The page in a real browser: what it shows is what REST tells, live, without an error or a forbidden request."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fusewire_protos.address import Address
from fusewire_server.access.tokens import Authenticator, Scope, mint
from fusewire_server.engine.launch_records import Records
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.server import InspectionServer, bind
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from tests.patience import HANGS_S
from tests.server.inspect.examples import RECORDS, SESSION, SNAPSHOT, FixedSnapshots, RememberingControl, record

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: pip install 'fusewire[dev]'")
_CHROMIUM, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (_CHROMIUM and _DRIVER), reason="Chromium is missing: apt install chromium-driver")

_T = TypeVar("_T")
_MANY = 200


class Moving(FixedSnapshots):
    """Gives snapshots of a server that has done more each time."""

    async def fresh(self) -> Snapshot:
        told = await super().fresh()
        totals = replace(told.stats.totals, ops=told.stats.totals.ops + 1_000)
        self.snapshot = replace(told, stats=replace(told.stats, totals=totals))
        return told


class Launching(RememberingControl):
    """Tells of a hundred thousand launches in the last minute, and of a few more each time."""

    def __init__(self) -> None:
        super().__init__()
        self._has_told = False

    async def launch_records(self, positions: object, most: int) -> list[Records]:
        now_ns = time.monotonic_ns()
        count, since_ns = (10, 10**7) if self._has_told else (100_000, 60 * 10**9)
        step_ns = since_ns // count
        self._has_told = True
        records = [
            record(now_ns - since_ns + each * step_ns, step_ns // 2, each % 90, (each + 1) % 90, program=1 + each % 2)
            for each in range(count)
        ]
        return [RECORDS._replace(records=b"".join(records))]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Serves the page for a snapshot, and returns its address without a fragment."""
    servers = []

    def serve(snapshot: Snapshot = SNAPSHOT, *, authenticator: Authenticator | None = None) -> str:
        app = create_app(Moving(snapshot), authenticator, Launching())
        servers.append(InspectionServer(app, bind(Address("127.0.0.1", 0))))
        servers[-1].start()
        return f"http://127.0.0.1:{servers[-1].port}"

    yield serve
    for server in servers:
        server.stop(HANGS_S)


@pytest.fixture
def browser(page: object) -> Iterator[Any]:
    """A browser. At its end its console has no errors, and no request that the page's policy forbids."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(argument)
    options.binary_location = _CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(_DRIVER))
    yield driver
    told = [each["message"] for each in driver.get_log("browser") if "favicon" not in each["message"]]
    driver.quit()
    assert [each for each in told if "401" not in each] == []


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


def test_now_shows_each_session_as_rest_tells_it(browser: Any, page: Callable[..., str]) -> None:
    sessions = tuple(
        replace(SESSION, session=f"{each:012x}", name=f"worker-{each}", wait_reason="credit", live_bytes=each << 20)
        for each in range(_MANY)
    )
    address = page(replace(SNAPSHOT, sessions=sessions, stats=replace(SNAPSHOT.stats, sessions=_MANY)))
    browser.get(f"{address}/")  # which leads to the page
    assert soon(lambda: browser.current_url.endswith("/ui/"))
    soon(lambda: len(texts(browser, ".sessions tbody tr")) == _MANY)
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
