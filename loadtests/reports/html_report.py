"""Writes the HTML report of a load test: a single file, for the screen and for paper."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from loadtests.reports.plots import plots_of
from loadtests.reports.summary import summary

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>$title</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: 0; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p { margin: .3rem 0; }
pre { background: #f4f6f8; padding: .8rem 1rem; white-space: pre-wrap; font-size: .75rem; }
table { border-collapse: collapse; font-size: .85rem; }
td { padding: .15rem 1.2rem .15rem 0; vertical-align: top; }
td:first-child { color: #666; }
figure { margin: 0; break-inside: avoid; }
svg { width: 100%; height: auto; }
.failed { color: #a00; font-weight: 600; }
@page { margin: 16mm; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } pre { border: 1px solid #ccc; } }
</style>
</head>
<body>
<h1>$title</h1>
<p>$what</p>
<p>$outcome</p>
<pre>$summary</pre>
<h2>Latency over time</h2>
<figure>$timeline</figure>
<h2>Latencies</h2>
$histogram
<h2>Rows a launch, and the device time of each session</h2>
<figure>$shares</figure>
<h2>Server and machine</h2>
<table>$rows</table>
</body>
</html>
""")


def html_of(document: Mapping[str, Any]) -> str:
    """Returns the HTML page that shows a document."""
    timeline, histogram, shares = plots_of(document)
    problems = "".join(f'<span class="failed">{escape(problem)}</span><br>' for problem in document["problems"])
    return _PAGE.substitute(
        title=escape(f"Load test: {document['scenario']}, {document['measured_at']}"),
        what=escape(document["what"]),
        outcome=problems or "Everything that was checked is in order.",
        summary=escape(summary(document)),
        timeline=timeline,
        histogram="<p>No step was measured.</p>" if histogram is None else f"<figure>{histogram}</figure>",
        shares=shares,
        rows="".join(_row(name, value) for name, value in {**document["server"], **document["machine"]}.items()),
    )


def _row(name: str, value: object) -> str:
    text = ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else value
    return f"<tr><td>{escape(name)}</td><td>{escape(str(text))}</td></tr>"
