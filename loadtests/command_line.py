"""The command `python -m loadtests`: runs a scenario or the benchmarks, replays a recording, or compares two results.

The exit status is 0 if everything that was checked is in order, 1 if a check failed or there is no result, and 2 for
wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

from fusewire import FusewireError
from loadtests import bench, machine
from loadtests.load.load_test import LoadResult, LoadTest
from loadtests.load.options import Options
from loadtests.load.replaying import repeated, run_replays, scenario_of
from loadtests.load.run import Tell
from loadtests.load.target.server import Access, ServerUnderLoad, given_server, own_server
from loadtests.measuring.errors import NotMeasured
from loadtests.progress import progress
from loadtests.reports import bounds, comparing
from loadtests.reports.document import SCHEMA, VERSION, Document, document_of
from loadtests.reports.html_report import html_of
from loadtests.reports.output_file import output_file
from loadtests.reports.summary import summary
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.scenarios.scenario import Scenario

_MOST_PROCESSES = 4  # unless the command says another number
_OF_A_GIVEN_SERVER = ("http", "token_file", "http_token_file", "tls_ca")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except (NotMeasured, FusewireError) as reason:
        print(f"no result: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            child.kill()  # one that was being started is in no `with` block, and Python would wait for it at its end
        print("no result: interrupted", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests", description="Puts load on a Fusewire server.")
    commands = parser.add_subparsers(required=True, metavar="SCENARIO")
    commands.add_parser("list", help="say what each scenario does and what it shows").set_defaults(run=_list)
    comparison = commands.add_parser("compare", help="compare the JSON results of two load tests; 1 if one got worse")
    comparison.add_argument("first", type=_document)
    comparison.add_argument("second", type=_document)
    comparison.set_defaults(run=_compare)
    _add_replay(commands.add_parser("replay", help="send what a session has recorded, in several sessions"))
    bench.add_arguments(commands.add_parser("bench", help="measure all figures with limits, and print one table"))
    for scenario in find_scenarios().values():
        _add_scenario(commands.add_parser(scenario.name, help=scenario.what), scenario)
    return parser


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.description = "Each session repeats what the recording holds. Kept values are compared bit for bit."
    add = parser.add_argument
    add("recording", type=Path, help="file that fusewire.connect(record=…) wrote")
    add("--speed", type=_speed, default=1.0, metavar="K", help="times the recorded speed; inf: no waits (%(default)g)")
    add("--sessions", type=_count, default=1, metavar="N", help="sessions in all (%(default)s)")
    _add_time_and_rate(parser)
    _add_common(parser)
    parser.set_defaults(run=_replay)


def _add_scenario(parser: argparse.ArgumentParser, scenario: Scenario) -> None:
    parser.description = f"Each session: {scenario.what}. Shows {scenario.shows}."
    add = parser.add_argument
    add("--sessions", type=_count, default=scenario.sessions, metavar="N", help="sessions in all (%(default)s)")
    if scenario.sessions_vanish:
        for name in ("--seconds", "--rate"):
            add(name, type=_refuse_for_vanishing, help=argparse.SUPPRESS)
    else:
        _add_time_and_rate(parser)
    add("--verify", action="store_true", help="run every session again, alone and in NumPy, and compare each value")
    if scenario.peers:
        add("--peer", choices=scenario.peers, help="run the same steps in another library as well")
    _add_common(parser)
    parser.set_defaults(run=_run, scenario=scenario, peer=None)


def _add_time_and_rate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", type=_positive, default=6.0, metavar="S", help="measured time, in three windows (%(default)g)")
    add("--rate", type=_positive, metavar="R", help="steps a second of all sessions; else as fast as they can")


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that all load tests have."""
    add = parser.add_argument
    add("--processes", type=_count, default=_MOST_PROCESSES, metavar="N", help="client processes at most (%(default)s)")
    add("--seed", type=_seed, default=0, metavar="N", help="seed of all data (%(default)s)")
    add("--target", metavar="T", help="server to use, as for fusewire.connect; else one is started and stopped")
    add("--http", type=_address, metavar="HOST:PORT", help="address of that server's inspection, for its numbers")
    add("--token-file", type=_text, metavar="F", help="file that holds the token for that server")
    add("--http-token-file", type=_text, metavar="F", help="file that holds another token for its inspection")
    add("--tls-ca", type=_certificates, metavar="F", help="certificates to trust; with it connections use TLS")
    add("--local", action="store_true", help="use local calls, if the server is on this machine; else gRPC")
    add("--backend", choices=("auto", "cpu", "cuda"), default="cpu", help="backend of an own server (%(default)s)")
    add("--bound", action="append", type=_bound, default=[], metavar="NAME=X", help="fail if NAME is worse than X")
    add("--json", type=output_file, metavar="PATH", help="write the result as JSON")
    add("--html", type=output_file, metavar="PATH", help="write a report with plots")
    parser.set_defaults(refuse=parser.error)


def _run(parsed: argparse.Namespace) -> int:
    options = _options(parsed, parsed.scenario)._replace(verifies=parsed.verify, peer=parsed.peer)
    return _test(parsed, options, lambda server, tell: LoadTest(options, server, tell).run())


def _replay(parsed: argparse.Namespace) -> int:
    options = _options(parsed, scenario_of(parsed.recording))

    def run(server: ServerUnderLoad, tell: Tell) -> LoadResult:
        return run_replays(repeated(parsed.recording, parsed.speed), options, server, tell)

    return _test(parsed, options, run)


def _options(parsed: argparse.Namespace, scenario: Scenario) -> Options:
    processes = min(parsed.processes, parsed.sessions)
    return Options(scenario, parsed.sessions, processes, parsed.seconds, parsed.rate, seed=parsed.seed)


def _test(parsed: argparse.Namespace, options: Options, run: Callable[[ServerUnderLoad, Tell], LoadResult]) -> int:
    """Runs a load test, prints and writes its result, and returns the exit status."""
    for name in _OF_A_GIVEN_SERVER:
        if parsed.target is None and getattr(parsed, name) is not None:
            option = f"--{name.replace('_', '-')}"
            parsed.refuse(f"{option} says how to reach a given server: name that server with --target")
    described = machine.describe()
    with progress() as tell, _server(parsed) as server:
        result = run(server, tell)
        server_fields = _server_fields(server)
    document = document_of(options, result, server_fields, described)
    document["problems"] += bounds.failures(parsed.bound, document)
    print(summary(document))
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if parsed.html is not None:
        parsed.html.write_text(html_of(document), encoding="utf-8")
    return 1 if document["problems"] else 0


def _server(parsed: argparse.Namespace) -> AbstractContextManager[ServerUnderLoad]:
    if parsed.target is None:
        return own_server(parsed.backend, local=parsed.local)
    access = Access(parsed.target, parsed.token_file, parsed.tls_ca, parsed.local)
    return nullcontext(given_server(access, parsed.http, parsed.http_token_file))


def _server_fields(server: ServerUnderLoad) -> Document:
    fields: Document = {"target": server.access.target, "is_own": server.pid is not None}
    if server.service is not None:
        stats = server.service.stats()
        fields |= {
            "version": stats["version"],
            "backend": stats["backend"]["name"],
            "device": stats["backend"]["device"],
        }
    return fields


def _list(_parsed: argparse.Namespace) -> int:
    for scenario in find_scenarios().values():
        print(f"{scenario.name:12} Each session: {scenario.what}.\n{'':12} Shows {scenario.shows}.")
    return 0


def _compare(parsed: argparse.Namespace) -> int:
    try:
        compared = comparing.compare(parsed.first, parsed.second)
    except ValueError as reason:
        raise NotMeasured(str(reason)) from None
    print(comparing.table(compared))
    return 1 if compared.is_worse else 0


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _speed(text: str) -> float:
    return float("inf") if text == "inf" else _positive(text)


def _refuse_for_vanishing(_text: str) -> float:
    raise argparse.ArgumentTypeError("each session vanishes after one step, so there is no rate and no time to choose")


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 0")
    return number


def _address(text: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        host, port = (parts.hostname or "").encode("idna"), parts.port  # encoded as for the look-up of the name
    except ValueError:  # UnicodeError is a subclass of ValueError
        host, port = b"", None
    if not (host and port):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT with a port from 1 to 65535")
    return text


def _certificates(path: str) -> Path:
    try:
        ssl.create_default_context(cafile=Path(path))
    except OSError as reason:  # ssl.SSLError is a subclass of OSError
        raise argparse.ArgumentTypeError(f"{path} holds no certificates that can be read: {reason}") from None
    return Path(path)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as reason:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {reason}") from None


def _bound(text: str) -> bounds.Bound:
    try:
        return bounds.read_bound(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None


def _document(path: str) -> Document:
    """Returns the result in a JSON file that a load test wrote."""
    try:
        document: Document = json.loads(_text(path))
        schema = document["schema"], document["version"]
    except (ValueError, KeyError, TypeError):
        raise argparse.ArgumentTypeError(f"{path} is not the result of a load test") from None
    if schema != (SCHEMA, VERSION):
        raise argparse.ArgumentTypeError(f"{path} has the schema {schema}; this version reads {(SCHEMA, VERSION)}")
    return document
