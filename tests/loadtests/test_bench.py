"""The bench: every figure has a name and a place in the table, and the peers compute what they should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from loadtests import bench
from loadtests.command_line import main
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.figure import Figure, Limit, Peer, Spread, Subject, Verdict, at_least, at_most
from loadtests.measuring.timing import percentile, take_turns
from loadtests.microbenchmarks import limits
from loadtests.microbenchmarks.catalogue import MICROBENCHMARKS, choose
from loadtests.microbenchmarks.process import measure_in_process
from loadtests.reports import figure_table
from loadtests.workloads.loops import NUMPY, check_close, draw_chain, draw_rnn, run_chain, run_rnn


def _figure(**changes: object) -> Figure:
    fields: dict[str, object] = {"name": "speed", "what": "how fast", "value": 2.0, "unit": "µs"}
    return Figure(**{**fields, **changes})  # type: ignore[arg-type]  # each test says what it changes


@pytest.mark.parametrize("backend", sorted(MICROBENCHMARKS))
def test_every_figure_is_measured_by_one_microbenchmark(backend: str) -> None:
    names = [name for microbenchmark in MICROBENCHMARKS[backend] for name in microbenchmark.names]
    assert len(set(names)) == len(names)


def test_only_microbenchmarks_with_a_chosen_figure_are_run() -> None:
    assert [microbenchmark.names for microbenchmark in choose("cpu", frozenset({"download"}))] == [
        ("upload", "download")
    ]


def test_an_unknown_figure_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown figure nothing; known are .*record_op"):
        choose("cpu", frozenset({"nothing"}))


def test_a_value_at_its_limit_is_ok() -> None:
    assert _figure(limit=at_most(2.0)).verdict is Verdict.OK


def test_a_value_beyond_its_limit_is_missed() -> None:
    assert _figure(limit=at_most(1.9)).verdict is Verdict.MISSED


def test_a_ratio_is_held_to_its_limit_and_the_value_is_not() -> None:
    peer = Peer("another", 8.0, ratio=4.0)
    assert _figure(peer=peer, limit=at_least(5, Subject.RATIO)).verdict is Verdict.MISSED


def test_a_figure_without_a_limit_is_information() -> None:
    assert _figure().verdict is Verdict.INFORMATION


def test_a_limited_ratio_needs_a_peer() -> None:
    with pytest.raises(ValueError, match="has no peer"):
        _figure(limit=at_most(1.0, Subject.RATIO))


def test_the_table_says_value_spread_peer_ratio_limit_verdict_and_notes() -> None:
    figure = _figure(
        limit=at_most(1.5, Subject.RATIO), peer=Peer("another", 1.0, 2.0), spread=Spread(1.9, 2.15), notes=("why",)
    )
    heading, rule, line, note = figure_table.table([figure]).splitlines()
    assert heading.split() == ["figure", "value", "8", "of", "10", "within", "peer", "ratio", "limit"]
    assert set(rule) == {"─", " "}
    cells = re.split(r" {2,}", line)
    assert cells == ["how fast [speed]", "2.00 µs", "1.90 … 2.15", "another: 1.00 µs", "2.00", "≤ 1.5 ×", "missed"]
    assert note == "    why"


def test_the_document_holds_every_measurement_and_survives_json() -> None:
    figure = _figure(limit=at_most(1.5), raw={"ours": [1.0, 2.0]})
    answer = json.loads(json.dumps(figure_table.document("cpu", {"cores": 2}, [figure], {"other": "broken"})))
    assert answer["figures"][0]["raw"] == {"ours": [1.0, 2.0]}
    assert answer["figures"][0]["limit"] == {"subject": "value", "bound": "≤", "number": 1.5}
    assert answer["figures"][0]["verdict"] == "missed"
    assert answer["failures"] == {"other": "broken"}


def _hold_to(monkeypatch: pytest.MonkeyPatch, limit: Limit | None) -> None:
    """Measuring anything gives one figure, which on the CPU must be as `limit` says."""
    monkeypatch.setattr(bench, "measure_in_process", lambda backend, names: iter([_figure()]))
    monkeypatch.setattr(limits, "LIMITS", {"cpu": {"speed": limit} if limit else {}, "cuda": {}})


def test_a_limit_on_one_backend_judges_nothing_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIMITS", {"cpu": {"speed": at_most(1.0)}, "cuda": {}})
    assert limits.held_to_limit(_figure(), "cpu").verdict is Verdict.MISSED
    assert limits.held_to_limit(_figure(), "cuda").verdict is Verdict.INFORMATION


@pytest.mark.parametrize("backend", sorted(MICROBENCHMARKS))
def test_every_limit_is_of_a_figure_that_its_backend_measures(backend: str) -> None:
    measured = {name for microbenchmark in MICROBENCHMARKS[backend] for name in microbenchmark.names}
    assert set(limits.LIMITS[backend]) <= measured


@pytest.mark.parametrize(("limit", "status"), [(at_most(2.0), 0), (at_most(1.0), 1), (None, 0)])
def test_told_to_be_strict_a_missed_figure_fails_the_bench(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: Limit | None, status: int
) -> None:
    _hold_to(monkeypatch, limit)
    assert main(["bench", "--strict", "--only", "record_op", "--json", str(tmp_path / "bench.json")]) == status


def test_a_missed_figure_does_not_fail_the_bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _hold_to(monkeypatch, at_most(1.0))
    path = tmp_path / "bench.json"
    assert main(["bench", "--only", "record_op", "--json", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["figures"][0]["value"] == 2.0


def test_without_a_path_the_raw_numbers_are_printed_in_place_of_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _hold_to(monkeypatch, None)
    monkeypatch.setattr(bench, "_RESULTS", tmp_path)
    assert main(["bench", "--only", "record_op", "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["figures"][0]["value"] == 2.0


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ([], ["bench-cpu.json"]),
        (["--only", "record_op"], []),
        (["--json"], []),
        (["--only", "record_op", "--json"], []),
    ],
)
def test_only_all_figures_replace_the_full_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], written: list[str]
) -> None:
    _hold_to(monkeypatch, None)
    monkeypatch.setattr(bench, "_RESULTS", tmp_path)
    assert main(["bench", *arguments]) == 0
    assert [path.name for path in tmp_path.iterdir()] == written


def test_a_wrong_result_fails_the_bench_and_all_other_figures_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(backend: str, names: tuple[str, ...]) -> Iterator[Figure]:
        yield _figure(name=names[0])
        if "record_op" in names:
            raise WrongResult("1 instead of 2")

    monkeypatch.setattr(bench, "measure_in_process", measure)
    path = tmp_path / "bench.json"
    assert main(["bench", "--only", "record_op", "wire_op", "--json", str(path)]) == 1
    answer = json.loads(path.read_text(encoding="utf-8"))
    assert [figure["name"] for figure in answer["figures"]] == ["record_op", "wire_op"]
    names = "record_op_alone, record_op_stencil, record_call"
    assert answer["failures"] == {names: "WrongResult: 1 instead of 2"}
    assert f"{names} failed: WrongResult: 1 instead of 2" in capsys.readouterr().err


def test_a_figure_is_told_and_written_before_the_next_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench.json"
    written: list[list[str]] = []

    def measure(backend: str, names: tuple[str, ...]) -> Iterator[Figure]:
        for name in names:
            yield _figure(name=name)
            assert f"[{name}]" in capsys.readouterr().err
            written.append([figure["name"] for figure in json.loads(path.read_text(encoding="utf-8"))["figures"]])

    monkeypatch.setattr(bench, "measure_in_process", measure)
    assert main(["bench", "--only", "wire_op", "--json", str(path)]) == 0
    assert written == [["wire_op"], ["wire_op", "wire_segment"]]


@pytest.mark.slow
def test_a_microbenchmark_gives_its_figures_one_by_one_from_a_process_of_its_own() -> None:
    figures = measure_in_process("cpu", ("wire_op", "wire_segment"))
    assert [figure.name for figure in figures] == ["wire_op", "wire_segment"]


def test_ways_take_turns_in_alternating_order() -> None:
    calls: list[str] = []

    def way(name: str) -> list[float]:
        calls.append(name)
        return [float(len(calls))]

    measured = take_turns(2, {"a": lambda: way("a"), "b": lambda: way("b")})
    assert calls == ["a", "b", "b", "a"]
    assert measured == {"a": [1.0, 4.0], "b": [2.0, 3.0]}


def test_a_percentile_is_a_measurement() -> None:
    assert percentile([5, 1, 4, 2, 3], 99) == 5
    assert percentile([5, 1, 4, 2, 3], 50) == 3
    assert percentile([5, 1, 4, 2, 3], 0) == 1


def test_the_recurrent_loop_in_numpy_is_its_formula() -> None:
    operands = draw_rnn(batch=2, hidden=8, seed=1)
    h, weights, bias, scale, residual = (operand.astype(np.float64) for operand in operands)
    for _ in range(20):
        h = 1 / (1 + np.exp((h @ weights + bias) * scale)) + residual
    check_close(run_rnn(operands, range(20), NUMPY), h.astype(np.float32), "the recurrent loop")


def test_the_pointwise_loop_in_numpy_is_its_formula() -> None:
    operands = draw_chain(elements=100, seed=1)
    x, b, z = (operand.astype(np.float64) for operand in operands)
    for _ in range(5):
        x = np.maximum(np.tanh(1 / (1 + np.exp(-((x + b) * z)))), 0)
    check_close(run_chain(operands, range(5), NUMPY), x.astype(np.float32), "five pointwise ops")


def test_random_operands_stay_float32_through_both_loops() -> None:
    assert run_rnn(draw_rnn(1, 4, seed=0), range(3), NUMPY).dtype == np.float32
    assert run_chain(draw_chain(4, seed=0), range(3), NUMPY).dtype == np.float32


def test_a_result_that_differs_is_named_and_raised() -> None:
    with pytest.raises(WrongResult, match="a sum"):
        check_close(np.ones(3, np.float32), np.zeros(3, np.float32), "a sum")
