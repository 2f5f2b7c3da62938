"""`fusewire demo`: what may be typed, what is printed, and which status it ends with."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fusewire._errors import ConfigurationError
from fusewire.examples import digits
from fusewire.examples.figures import Figures
from fusewire_cli.main import command_line
from tests.client.examples.canned import figures

Demo = Callable[..., int]


def parse(*typed: str) -> argparse.Namespace:
    return command_line(is_of_server=False).parse_args(["demo", *typed])


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Demo:
    """Runs the demo with figures that were measured elsewhere."""

    def run(measured: Figures, *typed: str) -> int:
        monkeypatch.setattr(digits, "measure_started", lambda backend, *, clients, epochs: measured)
        return digits.run(parse("--output", str(tmp_path / "curves.png"), *typed))

    return run


def test_eight_clients_train_by_default() -> None:
    parsed = parse()
    assert (parsed.clients, parsed.backend, parsed.json, parsed.target) == (8, "auto", False, None)
    assert parsed.output == Path("fusewire-demo.png")


@pytest.mark.parametrize("typed", [("--clients", "0"), ("--epochs", "-1"), ("--epochs", "x"), ("--backend", "null")])
def test_arguments_that_make_no_sense_are_refused(typed: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(*typed)
    assert ended.value.code == 2


@pytest.mark.parametrize("count", ["x", "1.5", "0", "²"])
def test_a_count_that_is_none_is_told_what_was_expected(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--clients", count)
    assert f"argument --clients: expected a whole number, at least 1, not {count!r}\n" in capsys.readouterr().err


def test_a_picture_without_a_folder_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(digits, "measure_started")
    with pytest.raises(ConfigurationError, match="there is no folder"):
        digits.run(parse("--output", str(tmp_path / "absent" / "curves.png")))


def test_the_report_ends_with_the_verdict_and_names_the_picture(
    demo: Demo, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert demo(figures()) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith("PASSED")
    assert str(tmp_path / "curves.png") in printed
    assert (tmp_path / "curves.png").exists()


def test_a_demo_that_fails_ends_with_status_1(demo: Demo) -> None:
    assert demo(figures(accuracies=(0.94, 0.9))) == 1


def test_json_is_all_that_is_printed_if_asked_for(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    demo(figures(), "--json")
    assert json.loads(capsys.readouterr().out)["passed"] is True
