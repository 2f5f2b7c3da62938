"""`fusewire ui`: the proxy forwards to who has its key, with the command's token, and to nobody else."""

from __future__ import annotations

import http.client
import json
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest

from fusewire._transport.token import TOKEN_VARIABLE
from fusewire_cli.ui import Proxy, Server, leading_to
from fusewire_protos.address import Address
from fusewire_server.access.tokens import Authenticator, Scope, mint
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.server import InspectionServer, bind
from tests.patience import HANGS_S
from tests.server.inspect.examples import FixedSnapshots, RememberingControl


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before a server that needs a token, which the command has."""
    monkeypatch.setenv(TOKEN_VARIABLE, mint(tmp_path / "tokens", tenant="lab", scope=Scope.INSPECT))
    app = create_app(FixedSnapshots(), Authenticator(tmp_path / "tokens"), RememberingControl())
    server = InspectionServer(app, bind(Address("127.0.0.1", 0)))
    server.start()
    with Proxy(Server(f"127.0.0.1:{server.port}", None)) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join(HANGS_S)
    server.stop(HANGS_S)


def ask(proxy: Proxy, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.server_port, timeout=HANGS_S)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    status_and_text = answer.status, answer.read().decode()
    connection.close()
    return status_and_text


def test_the_page_itself_needs_no_key(proxy: Proxy) -> None:
    status, text = ask(proxy, "/ui/")
    assert (status, "<title>Fusewire</title>" in text) == (200, True)


def test_data_need_the_key_of_the_link(proxy: Proxy) -> None:
    assert proxy.url.endswith(f"/ui/#token={proxy.key}")
    assert ask(proxy, "/v1/stats")[0] == 401
    assert ask(proxy, "/v1/stats", Authorization="Bearer x")[0] == 401
    status, text = ask(proxy, "/v1/stats", Authorization=f"Bearer {proxy.key}")
    assert (status, "sessions" in json.loads(text)) == (200, True)


def test_a_name_of_another_host_is_refused(proxy: Proxy) -> None:
    assert ask(proxy, "/ui/", Host=f"evil.example:{proxy.server_port}")[0] == 421


@pytest.mark.parametrize("path", ["/", "/metrics", "//evil.example/ui/", "/docs"])
def test_nothing_but_the_page_and_its_data_is_forwarded(proxy: Proxy, path: str) -> None:
    assert ask(proxy, path, Authorization=f"Bearer {proxy.key}")[0] == 404


def test_acts_are_forwarded_with_the_commands_token_to_who_has_the_key(proxy: Proxy) -> None:
    assert ask(proxy, "/v1/device/hold", "POST")[0] == 401
    assert ask(proxy, "/ui/", "POST")[0] == 401
    status, text = ask(proxy, "/v1/device/hold", "POST", Authorization=f"Bearer {proxy.key}")
    assert (status, "has the scope inspect; this needs admin" in text) == (403, True)


@pytest.mark.parametrize("length", ["70000", "-1", "1e3", "9" * 40])
def test_a_body_that_is_too_long_is_refused(proxy: Proxy, length: str) -> None:
    headers = {"Authorization": f"Bearer {proxy.key}", "Content-Length": length}
    assert ask(proxy, "/v1/log", "PUT", **headers)[0] == 413


def test_what_needs_no_key_is_asked_for_without_the_token(proxy: Proxy) -> None:
    assert ask(proxy, "/ui/../v1/stats")[0] in {401, 404}
    assert ask(proxy, "/ui/%2e%2e/v1/stats")[0] in {401, 404}


def test_a_path_that_is_no_ascii_is_answered(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.server_port), timeout=HANGS_S) as connection:
        connection.sendall(b"GET /ui/\xe9 HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % proxy.server_port)
        assert b" 502 " in connection.recv(1000).split(b"\r\n")[0]


def test_the_browser_is_started_with_a_file_that_only_its_owner_reads_and_that_leads_to_the_link() -> None:
    with leading_to("http://127.0.0.1:1/ui/#token=a") as link:
        path = Path(urlparse(link).path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "http://127.0.0.1:1/ui/#token=a" in path.read_text(encoding="utf-8")
        assert "token" not in link
    assert not path.exists()


def test_a_server_that_is_gone_is_told() -> None:
    with Proxy(Server("127.0.0.1:1", None)) as proxy:
        threading.Thread(target=proxy.handle_request, daemon=True).start()
        status, text = ask(proxy, "/ui/")
        assert (status, "does not answer" in text) == (502, True)
