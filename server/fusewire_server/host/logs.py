"""Writes log records to standard error: as JSON for programs, or as coloured text for people, at a bounded rate.

Records carry ids of sessions and names of tenants, and never values or tokens. The audit log is written whatever the
level of the log is, or not at all.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import TextIO

import structlog
from structlog.typing import Processor

_AUDIT_LOGGER = "fusewire.audit"
_MOST_ALIKE = 20  # the most records of one kind in a window that one host causes
_MOST_OF_ALL_HOSTS = 100  # the most records of one kind in a window
_WINDOW_S = 10.0
_NO_LEVEL = logging.CRITICAL + 1  # of no record
_QUIET_LOGGERS = ("uvicorn", "asyncio")  # they tell at level info what the server tells itself


class _Window:
    """The records of one kind since `began_s`: how many were written, by the host that caused them, and dropped."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.written: Counter[str] = Counter()
        self.dropped = 0

    def has_room_for(self, host: str) -> bool:
        return self.written[host] < _MOST_ALIKE and self.written.total() < _MOST_OF_ALL_HOSTS


class RateLimit(logging.Filter):
    """Drops records that repeat too often. The next one that passes tells how many were dropped, as `dropped`.

    Records of one logger, text, `case` and `tenant` are of one kind. A host, which `peer` names, uses up a part of the
    kind's room only. Of the audit log, what operators do is never dropped. Refusals and the sessions of a tenant are,
    because strangers and programs can cause any number of them.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._windows: dict[tuple[str, ...], _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if _tells_of_an_operator(record):
            return True
        kind, now_s = _kind_of(record), self._now_s()
        window = self._windows.get(kind)
        if window is None or now_s - window.began_s >= _WINDOW_S:
            if window is not None and window.dropped:
                record.dropped = window.dropped
            window = self._windows[kind] = _Window(now_s)
        host = _host_of(str(record.__dict__.get("peer", "")))
        if not window.has_room_for(host):
            window.dropped += 1
            return False
        window.written[host] += 1
        return True


def _tells_of_an_operator(record: logging.LogRecord) -> bool:
    is_refusal, is_of_tenant = record.levelno >= logging.WARNING, hasattr(record, "tenant")
    return record.name == _AUDIT_LOGGER and not is_refusal and not is_of_tenant


def _kind_of(record: logging.LogRecord) -> tuple[str, ...]:
    return record.name, str(record.msg), *(str(record.__dict__.get(name)) for name in ("case", "tenant"))


def _host_of(peer: str) -> str:
    """Returns the host of a peer. gRPC tells its port too, as in `ipv4:10.0.0.7:50412`."""
    return peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer


def configure_logs(level: str, style: str, stream: TextIO = sys.stderr, *, audits: bool = True) -> None:
    """Makes all loggers of the process write to `stream`, the audit log only if `audits`.

    `level` is debug, info, warning or error. `style` is json, console, or auto: console on a terminal, else json.
    """
    common: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    is_console = style == "console" or (style == "auto" and stream.isatty())
    last: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    if is_console:
        # If rich is installed, structlog's default shows the values of variables, such as tokens, in tracebacks.
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=common,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    handler.addFilter(RateLimit())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.getLogger(_AUDIT_LOGGER).setLevel(logging.INFO if audits else _NO_LEVEL)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
