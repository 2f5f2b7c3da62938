"""Runs the suites one after another against one server, and prints what became of them.

    python -m tests.conformance --packages FOLDER [--suites FOLDER] [--backend cpu] [NAME …]

Ends with status 1 if a test failed that skips.toml does not explain, or if a suite was missing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fusewire.testing import serve_subprocess
from tests.conformance import outcome
from tests.conformance.company import in_company
from tests.conformance.outcome import Outcome
from tests.conformance.suites import HERE, SUITES, Suite

_BY_NAME = {suite.name: suite for suite in SUITES}


def main() -> int:
    """Returns the exit status."""
    options = _options()
    with serve_subprocess(options.backend) as server:
        outcomes = [_outcome(_BY_NAME[name], server.grpc, options) for name in options.names or _BY_NAME]
    for line in outcome.lines(outcomes):
        print(line)
    return 0 if all(each.is_good for each in outcomes) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--packages", type=Path, required=True, help="the folder of the packages in requirements.txt")
    parser.add_argument("--suites", type=Path, help="the folder of the suites that are not packages, each by its name")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of {', '.join(_BY_NAME)}; all, if none is named"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(_BY_NAME):
        parser.error(f"no suite is called {', '.join(sorted(unknown))}; there are {', '.join(_BY_NAME)}")
    return options


def _outcome(suite: Suite, target: str, options: argparse.Namespace) -> Outcome:
    folder = options.packages
    if suite.address is not None:
        folder = (options.suites or Path()) / suite.folder_name
        if options.suites is None or not folder.is_dir():
            return Outcome(suite.name, trouble=f"get {suite.address} and name the folder it is in by SUITES=FOLDER")
    with TemporaryDirectory() as reports:
        report = Path(reports, "report.xml")
        environment = _environment(suite, target, [options.packages, folder / suite.import_path])
        command = _command(suite)
        with in_company(command, folder, environment, suite.companions) as together:
            subprocess.run([*command, f"--junitxml={report}"], cwd=folder, env=together, check=False)
        return outcome.read(suite.name, report)


def _command(suite: Suite) -> list[str]:
    common = ("-q", "--tb=short", "-p", "no:cacheprovider", "-p", "listed_skips")
    return [sys.executable, "-m", "pytest", *common, *suite.arguments]


def _environment(suite: Suite, target: str, folders: Sequence[Path]) -> dict[str, str]:
    paths = [
        str(HERE / "plugins"),
        str(HERE.parents[1]),
        *(str(folder.resolve()) for folder in folders),
        os.environ.get("PYTHONPATH", ""),
    ]
    named = {"FUSEWIRE_TARGET": target, "FUSEWIRE_CONFORMANCE_SUITE": suite.folder_name}
    return {**os.environ, **named, **suite.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


if __name__ == "__main__":
    sys.exit(main())
