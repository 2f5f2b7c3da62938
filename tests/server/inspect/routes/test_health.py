"""Liveness, readiness and statistics."""

from __future__ import annotations

import dataclasses
import json

import pytest

from fusewire_server.access.tokens import Scope
from fusewire_server.inspect.snapshot import Snapshot
from tests.server.inspect.examples import STATS, Client
from tests.server.inspect.routes.applications import Guarded, application, kind_of


def test_liveness_is_one_word(client: Client) -> None:
    assert client.get("/livez").text == "alive"


@pytest.mark.parametrize(
    ("is_ready", "is_draining", "status", "word"),
    [(True, False, 200, "ready"), (False, False, 503, "unready"), (True, True, 503, "draining")],
)
def test_readiness_is_one_word_and_a_status(is_ready: bool, is_draining: bool, status: int, word: str) -> None:
    stats = dataclasses.replace(STATS, is_ready=is_ready, is_draining=is_draining)
    client = Client(application(snapshot=Snapshot(stats)))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (status, word)
    verbose = client.get("/readyz?verbose")
    assert (verbose.status_code, verbose.json()["is_draining"]) == (status, is_draining)


def test_a_verbose_readiness_needs_a_token(guarded: Guarded) -> None:
    assert guarded.request(("GET", "/readyz?verbose")).status_code == 401
    told = guarded.request(("GET", "/readyz?verbose"), guarded.tokens[Scope.INSPECT])
    assert (told.status_code, told.json()["is_ready"], told.json()["device"]) == (200, True, "2 cores")


def test_statistics_are_the_published_ones(client: Client) -> None:
    assert client.get("/v1/stats").json() == json.loads(json.dumps(dataclasses.asdict(STATS)))


def test_a_server_that_is_too_busy_to_be_asked_says_so_and_is_alive() -> None:
    busy = Client(application(is_busy=True))
    refused = busy.get("/v1/stats")
    assert (refused.status_code, kind_of(refused)) == (503, "busy")
    assert busy.get("/livez").text == "alive"
    assert busy.get("/readyz").text == "ready"
