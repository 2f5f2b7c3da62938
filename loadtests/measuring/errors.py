"""The reasons why there is no measurement."""

from __future__ import annotations


class NotMeasured(Exception):
    """There is no measurement; the message says why, in one line."""


class WrongResult(NotMeasured):
    """Fusewire or a peer computed a wrong result, so its time is not reported."""


class NotWarm(NotMeasured):
    """The server did not run in fused plans in time, so there is nothing to be timed."""


class LoadFailed(NotMeasured):
    """A session, a worker process or the server failed under the load."""


class NotAnswered(LoadFailed):
    """A worker process did not answer in time. It may answer later, so no other command can be sent to it."""
