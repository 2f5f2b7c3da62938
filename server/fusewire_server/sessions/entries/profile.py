"""Applies an entry that asks how the segments of the session ran: answers it at once, and keeps what follows. Pure."""

from __future__ import annotations

from fusewire_protos.frames import Profile as Ask
from fusewire_protos.profiled import MOST_RUNS, RUN_BYTES
from fusewire_server.sessions.entries.explain import has_room_to_tell, tell
from fusewire_server.sessions.entries.fetch import check_takeable
from fusewire_server.sessions.entries.frame import Frame
from fusewire_server.sessions.profile import MOST_BYTES, Profile


def take_profile(frame: Frame, ask: Ask) -> None:
    """Answers with the runs since the last question, and the time at which this one came.

    Runs are kept from now on if the profile goes on, and no longer if not. A refused question can only end the profile.
    Raises CaseError if the session has too many answers to take.
    """
    session = frame.session
    if ask.fetch in session.answers.untaken:
        return
    check_takeable(frame)
    profile = session.profile
    if not has_room_to_tell(frame, ask.fetch, MOST_BYTES if profile is None else MOST_RUNS * RUN_BYTES):
        session.profile = profile if ask.goes_on else None
        return
    profile = profile or Profile()
    session.profile = profile if ask.goes_on else None
    tell(frame, ask.fetch, profile.take(frame.arrival.now_ns))
