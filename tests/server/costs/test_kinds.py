"""The catalogue of costly frames: it has every kind of entry, and a server refuses or applies each as it should."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.frames import EntryKind
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.config.config import Limits
from fusewire_server.sessions.session import SessionState
from tests.effort import of_a_hundred
from tests.server.costs.draft import Draft, drafted
from tests.server.costs.kinds import KINDS, Kind
from tests.server.costs.loopback import Client, engine_thread

_FEW = 5


def _kinds_of(draft: Draft) -> set[int]:
    try:
        return {entry[0] for entry in msgpack.unpackb(draft.bindings)} if draft.bindings else set()
    except ValueError:
        return set()  # a malformed frame


def test_every_kind_of_entry_is_in_the_catalogue() -> None:
    found = {number for kind in KINDS for draft in kind.sent(1, 1) for number in _kinds_of(draft)}
    assert found >= {*EntryKind}


def test_kinds_have_names_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rounds_go_on_unless_they_end_their_session_and_others_see_nothing_of_it(kind: Kind) -> None:
    size = min(_FEW, kind.most)
    with engine_thread() as server:
        bystander, client = Client(server), Client(server)
        client.send(client.bytes_of(kind.before(size)))
        for turn in range(2):
            if not client.is_closed:
                raws = client.bytes_of(kind.sent(size, turn))
                (client.begin_streams if kind.opens else client.send)(raws)
        bystander.send(bystander.bytes_of([drafted()]))
        assert client.is_closed is kind.ends
        assert bystander.session.state is SessionState.OPEN
        assert not server.engine.is_broken


@of_a_hundred(30)
@given(st.sampled_from(KINDS), st.floats(0, 1), st.integers(0, 9))
def test_frames_of_any_size_are_not_longer_than_a_message_may_be(kind: Kind, part: float, turn: int) -> None:
    size = kind.size(part)
    for draft in (*kind.before(size), *kind.sent(size, turn)):
        frame = pb.ClientFrame(programs=draft.programs, bindings=draft.bindings, tensors=draft.tensors)
        assert frame.ByteSize() + len(draft.further) <= Limits().message_bytes
