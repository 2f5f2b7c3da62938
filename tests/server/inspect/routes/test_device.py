"""The memory, queue, slow log and gate of the device."""

from __future__ import annotations

import pytest
from pydantic_core import to_jsonable_python

from fusewire_server.inspect.routes import examples
from tests.server.inspect.examples import Client, RememberingControl
from tests.server.inspect.routes.applications import application, kind_of


def test_an_operator_holds_and_releases_the_device() -> None:
    control = RememberingControl()
    client = Client(application(control=control))
    assert client.post("/v1/device/hold").json() == {"is_held": True}
    assert client.post("/v1/device/release").json() == {"is_held": False}
    assert control.told == ["hold", "release"]


@pytest.mark.parametrize(
    ("path", "example"),
    [("/v1/pool", examples.POOL), ("/v1/queue", examples.QUEUE), ("/v1/slowlog", examples.SLOW_LOG)],
)
def test_the_device_is_told(client: Client, path: str, example: object) -> None:
    assert client.get(path).json() == to_jsonable_python(example)


@pytest.mark.parametrize("path", ["/v1/queue", "/v1/slowlog", "/v1/sessions/0123456789ab/arrays"])
def test_a_server_that_is_too_busy_to_be_asked_says_so(path: str) -> None:
    refused = Client(application(is_busy=True)).get(path)
    assert (refused.status_code, kind_of(refused)) == (503, "busy")


@pytest.mark.parametrize("limit", ["0", "129", "-1", "many"])
def test_a_slow_log_of_a_length_out_of_range_is_refused(client: Client, limit: str) -> None:
    assert client.get(f"/v1/slowlog?limit={limit}").status_code == 422
