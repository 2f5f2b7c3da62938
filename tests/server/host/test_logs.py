"""Log records: as JSON or text, with their fields, at a bounded rate."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from fusewire_server.host.logs import RateLimit, configure_logs


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    root, audit = logging.getLogger(), logging.getLogger("fusewire.audit")
    handlers, level, audit_level = root.handlers, root.level, audit.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    audit.setLevel(audit_level)


def written(style: str, level: str = "info") -> str:
    stream = io.StringIO()
    configure_logs(level, style, stream)
    log = logging.getLogger("fusewire.test")
    log.debug("unsaid")
    log.info("session %s opened", "ab12", extra={"tenant": "lab"})
    return stream.getvalue()


@pytest.mark.parametrize("style", ["json", "auto"])
def test_a_record_is_a_line_of_json_with_its_fields(style: str) -> None:
    answer = json.loads(written(style))
    assert answer.pop("timestamp").endswith("Z")
    assert answer == {"event": "session ab12 opened", "level": "info", "logger": "fusewire.test", "tenant": "lab"}


def test_a_record_on_a_console_is_a_line_of_text() -> None:
    text = written("console")
    assert "session ab12 opened" in text
    assert "tenant=lab" in text


def test_records_below_the_level_are_not_written() -> None:
    assert written("json", "warning") == ""


def test_an_error_is_written_with_its_traceback_in_one_line() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("fusewire.test").exception("it failed")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError: broken" in json.loads(line)["exception"]


def test_an_error_on_a_console_is_written_with_its_traceback_and_no_value_of_a_variable() -> None:
    stream = io.StringIO()
    configure_logs("info", "console", stream)
    value = "of a variable"
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("fusewire.test").exception("it failed")
    assert "ValueError: broken" in stream.getvalue()
    assert value not in stream.getvalue()


def test_records_that_repeat_are_dropped_and_their_number_is_told() -> None:
    now_s = [0.0]
    limit = RateLimit(lambda: now_s[0])

    def passes(text: str) -> bool | int:
        return _passes(limit, "fusewire.test", logging.INFO, text)

    assert [passes("a") for _ in range(50)] == [True] * 20 + [False] * 30
    assert passes("b") is True
    now_s[0] = 10.0
    assert passes("a") == 30
    assert passes("a") is True


def test_the_audit_log_is_written_whatever_the_level_is() -> None:
    stream = io.StringIO()
    configure_logs("error", "json", stream)
    logging.getLogger().setLevel("CRITICAL")  # as an operator may by PUT /v1/log
    logging.getLogger("fusewire.audit").info("a session has a stream")
    assert json.loads(stream.getvalue())["event"] == "a session has a stream"


def test_the_audit_log_may_be_left_out() -> None:
    stream = io.StringIO()
    configure_logs("debug", "json", stream, audits=False)
    logging.getLogger("fusewire.audit").critical("a session has a stream")
    assert stream.getvalue() == ""


def test_what_operators_do_is_never_dropped_and_refusals_are() -> None:
    limit = RateLimit(lambda: 0.0)
    for level, passing in ((logging.INFO, 50), (logging.WARNING, 20)):
        logged = [_passes(limit, "fusewire.audit", level, "a") for _ in range(50)]
        assert logged == [True] * passing + [False] * (50 - passing)


def test_a_storm_of_sessions_is_told_by_their_number_and_hides_no_other_tenants() -> None:
    now_s = [0.0]
    limit = RateLimit(lambda: now_s[0])

    def passes(text: str, tenant: str) -> bool | int:
        return _passes(limit, "fusewire.audit", logging.INFO, text, tenant=tenant, peer="ipv4:10.0.0.7:50000")

    for text in ("a session has a stream", "a session has ended"):
        assert [passes(text, "lab") for _ in range(1000)] == [True] * 20 + [False] * 980
        assert passes(text, "other") is True
    now_s[0] = 10.0
    assert passes("a session has a stream", "lab") == 980


def test_refusals_of_one_case_do_not_drop_those_of_another() -> None:
    now_s = [0.0]
    limit = RateLimit(lambda: now_s[0])

    def passes(case: str) -> bool | int:
        return _passes(limit, "fusewire.audit", logging.WARNING, "a request was refused: %s", case=case)

    assert [passes("unauthenticated") for _ in range(50)] == [True] * 20 + [False] * 30
    assert passes("wrong_host") is True
    now_s[0] = 10.0
    assert passes("unauthenticated") == 30


@pytest.mark.parametrize(
    ("flooding", "other"),
    [
        ("10.0.0.7", "10.0.0.8"),
        ("ipv4:10.0.0.7:{port}", "ipv4:10.0.0.8:50000"),
        ("ipv6:%5B2001:db8::7%5D:{port}", "ipv6:%5B2001:db8::8%5D:50000"),
    ],
)
def test_refusals_of_one_host_do_not_drop_those_of_another(flooding: str, other: str) -> None:
    now_s = [0.0]
    limit = RateLimit(lambda: now_s[0])

    def passes(peer: str) -> bool | int:
        return _passes(limit, "fusewire.audit", logging.WARNING, "a call was refused: %s", peer=peer)

    assert [passes(flooding.format(port=50_000 + count)) for count in range(50)] == [True] * 20 + [False] * 30
    assert passes(other) is True
    now_s[0] = 10.0
    assert passes(other) == 30


def test_refusals_of_however_many_hosts_are_few() -> None:
    now_s = [0.0]
    limit = RateLimit(lambda: now_s[0])

    def passes(host: int) -> bool | int:
        peer = f"ipv4:10.0.{host // 256}.{host % 256}:50000"
        return _passes(limit, "fusewire.audit", logging.WARNING, "a call was refused: %s", peer=peer)

    assert [passes(host) for host in range(1000)] == [True] * 100 + [False] * 900
    now_s[0] = 10.0
    assert passes(1000) == 900


def _passes(limit: RateLimit, name: str, level: int, text: str, **extra: str) -> bool | int:
    """Whether a record is written, and how many it says were dropped before it."""
    record = logging.LogRecord(name, level, "", 0, text, (), None)
    record.__dict__.update(extra)
    return limit.filter(record) and getattr(record, "dropped", True)
