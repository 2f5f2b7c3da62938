"""Writes log records to standard error: as JSON for programs, or as coloured text for people, at a bounded rate.

Records carry ids of sessions and names of tenants, and never values or tokens. The audit log is written whatever the
level of the log is.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import TextIO

import structlog
from structlog.typing import Processor

_AUDIT_LOGGER = "fusewire.audit"
_MOST_ALIKE = 20  # the most records of one kind in a window
_WINDOW_S = 10.0
_QUIET_LOGGERS = ("uvicorn", "asyncio")  # they tell at level info what the server tells itself


class RateLimit(logging.Filter):
    """Drops records that repeat too often. The next one that passes tells how many were dropped, as `dropped`.

    Records of one logger, text and `case` are of one kind. Of the audit log only refusals are dropped, because anybody
    can cause any number of them.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._windows: dict[tuple[str, str, str], tuple[float, int]] = {}  # of a kind: begin, number of records

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == _AUDIT_LOGGER and record.levelno < logging.WARNING:
            return True
        key, now_s = (record.name, str(record.msg), str(record.__dict__.get("case"))), self._now_s()
        began_s, count = self._windows.get(key, (now_s, 0))
        if now_s - began_s >= _WINDOW_S:
            if count > _MOST_ALIKE:
                record.dropped = count - _MOST_ALIKE
            began_s, count = now_s, 0
        self._windows[key] = (began_s, count + 1)
        return count < _MOST_ALIKE


def configure_logs(level: str, style: str, stream: TextIO = sys.stderr) -> None:
    """Makes all loggers of the process write to `stream`.

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
        last = [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
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
    logging.getLogger(_AUDIT_LOGGER).setLevel(logging.INFO)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
