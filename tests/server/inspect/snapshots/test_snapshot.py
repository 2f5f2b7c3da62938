"""The snapshot: shown ids, and that all of it is JSON."""

import dataclasses
import json

import pytest

from fusewire_server.inspect.snapshots.snapshot import shown_id
from tests.server.inspect.examples import SNAPSHOT


def test_a_shown_id_is_too_short_to_resume_a_session() -> None:
    session_id = bytes(range(16))
    assert session_id.hex().startswith(shown_id(session_id))
    assert len(shown_id(session_id)) < len(session_id.hex()) // 2


def test_a_snapshot_is_json() -> None:
    assert json.loads(json.dumps(dataclasses.asdict(SNAPSHOT)))["stats"]["totals"]["ops"] == 600


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SNAPSHOT.stats.is_ready = False  # type: ignore[misc]
