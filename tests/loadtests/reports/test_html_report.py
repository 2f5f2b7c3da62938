"""The HTML report."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from loadtests.reports.html_report import html_of
from tests.loadtests.reports.documents import document, document_without_steps


def test_it_holds_three_plots_and_needs_no_other_file() -> None:
    page = html_of(document([5, 10, 20]))
    assert page.count("<svg") == 3
    assert not re.search(r'(?:src|href)="(?!#)', page)
    for plot in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(plot)  # noqa: S314 - our own text


def test_text_of_others_is_escaped() -> None:
    page = html_of({**document(), "problems": ["<script>alert(1)</script>"], "server": {"target": "<b>"}})
    assert "<script>" not in page
    assert "&lt;b&gt;" in page


def test_a_server_without_inspection_has_a_report() -> None:
    unknown = {"rows_per_launch": None, "rows_histogram": None, "phases": None, "fairness": None}
    sessions = [{**session, "device_ns": None} for session in document()["by_session"]]
    assert "<svg" in html_of({**document(), **unknown, "by_session": sessions})


def test_a_load_without_steps_has_a_report_without_a_histogram() -> None:
    page = html_of(document_without_steps())
    assert page.count("<svg") == 2
    assert "No step was measured." in page
