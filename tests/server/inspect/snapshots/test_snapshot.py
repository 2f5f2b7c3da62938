"""The snapshot is JSON, and does not change."""

import dataclasses
import json

import pytest

from tests.server.inspect.examples import SNAPSHOT


def test_a_snapshot_is_json() -> None:
    assert json.loads(json.dumps(dataclasses.asdict(SNAPSHOT)))["stats"]["totals"]["ops"] == 600


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SNAPSHOT.stats.is_ready = False  # type: ignore[misc]
