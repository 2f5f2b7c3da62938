"""Client processes begin together, are followed, and none outlives a failure. The processes here only talk."""

import os
import sys
from collections.abc import Callable

import pytest

from fusewire.examples import clients
from fusewire.examples.clients import ClientFailed, train_together
from fusewire.examples.figures import ClientRun

SAY_DONE = """
import json, sys
print(json.dumps({"event": "ready"}), flush=True)
assert sys.stdin.readline() == "start\\n"
for epoch in range(2):
    print(json.dumps({"event": "epoch"}), flush=True)
run = {"learning_rate": float(sys.argv[1]), "accuracy": 0.5, "losses": [2.0, 1.0], "duration_s": 0.1}
counts = {"ops": 10, "segments": 3, "fragments": 1, "sent_bytes": 99, "programs": ["aa"]}
print(json.dumps({"event": "done", "run": run, **counts}), flush=True)
"""
DIE_AT_ONCE = "raise SystemExit(3)"
DIE_IN_TRAINING = """
import sys
print('{"event": "ready"}', flush=True)
sys.stdin.readline()
raise SystemExit(4)
"""
NEVER_END = """
import sys
print('{"event": "ready"}', flush=True)
while True:
    sys.stdin.readline()
"""
TELL_THE_GROUP = "import os" + SAY_DONE.replace('"ops": 10', '"ops": os.getpgrp()')
FAIL_AT_THE_END = SAY_DONE + "raise SystemExit(5)"

UseScripts = Callable[..., None]


@pytest.fixture
def use_scripts(monkeypatch: pytest.MonkeyPatch) -> UseScripts:
    """Lets clients run these scripts, one by rate 0, 1, …"""

    def use(*scripts: str) -> None:
        def command(target: str, rate: float, epochs: int) -> list[str]:
            return [sys.executable, "-S", "-c", scripts[int(rate)], str(rate)]

        monkeypatch.setattr(clients, "_command", command)

    return use


def train(rates: int) -> tuple[ClientRun, ...]:
    return train_together("host:1", range(rates), epochs=2, advance=lambda index: None)


def test_what_each_client_tells_comes_in_the_order_of_the_rates(use_scripts: UseScripts) -> None:
    use_scripts(SAY_DONE, SAY_DONE)
    first, second = train(2)
    assert (first.run.learning_rate, second.run.learning_rate) == (0.0, 1.0)
    assert first.run.losses == (2.0, 1.0)
    assert (first.ops, first.segments, first.fragments, first.sent_bytes, first.programs) == (10, 3, 1, 99, ("aa",))


def test_epochs_are_reported_by_client(use_scripts: UseScripts) -> None:
    use_scripts(SAY_DONE, SAY_DONE)
    ended_epochs: list[int] = []
    train_together("host:1", [0, 1], epochs=2, advance=ended_epochs.append)
    assert sorted(ended_epochs) == [0, 0, 1, 1]


def test_ctrl_c_in_a_terminal_does_not_reach_the_clients(use_scripts: UseScripts) -> None:
    use_scripts(TELL_THE_GROUP)
    (client,) = train(1)
    assert client.ops != os.getpgrp()


@pytest.mark.parametrize(("script", "status"), [(DIE_AT_ONCE, 3), (DIE_IN_TRAINING, 4), (FAIL_AT_THE_END, 5)])
def test_a_client_that_fails_is_an_error(use_scripts: UseScripts, script: str, status: int) -> None:
    use_scripts(SAY_DONE, script)
    with pytest.raises(ClientFailed, match=f"status {status}"):
        train(2)


def test_a_failure_ends_the_clients_that_go_on(use_scripts: UseScripts) -> None:
    use_scripts(NEVER_END, DIE_IN_TRAINING, NEVER_END)
    with pytest.raises(ClientFailed, match="status 4"):
        train(3)


def test_a_client_that_takes_too_long_is_an_error(use_scripts: UseScripts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_DONE_WITHIN_S", 0.05)
    use_scripts(NEVER_END)
    with pytest.raises(ClientFailed, match="not done after"):
        train(1)
