"""A reload: which changed settings are taken over, which ones are told to need a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusewire_protos.address import Address
from fusewire_server.config.config import SETTINGS, Loaded, load, value_of
from fusewire_server.config.reload import RELOADABLE, reload


def loaded(**flags: str) -> Loaded:
    """The settings with these flags; `__` in a name stands for the dot."""
    return load(None, {}, {name.replace("__", "."): raw for name, raw in flags.items()})


def test_a_setting_that_may_change_in_service_is_taken_over() -> None:
    result = reload(loaded(), loaded(limits__sessions="7", log__level="debug"))
    assert (result.applied, result.needs_restart) == (("limits.sessions", "log.level"), ())
    assert result.loaded.config.limits.sessions == 7
    assert result.loaded.origins["limits.sessions"] == "flag --sessions"


def test_another_setting_keeps_its_value_and_origin_and_is_named() -> None:
    result = reload(loaded(), loaded(listen__grpc="127.0.0.1:9", limits__handles="5"))
    assert (result.applied, result.needs_restart) == ((), ("listen.grpc", "limits.handles"))
    assert result.loaded.config.listen.grpc == Address("127.0.0.1", 7423)
    assert result.loaded.origins["listen.grpc"] == "default"


def test_a_setting_that_is_no_longer_set_gets_its_default() -> None:
    result = reload(loaded(limits__drain_s="3"), loaded())
    assert result.applied == ("limits.drain_s",)
    assert result.loaded == loaded()


def test_an_origin_changes_without_the_value(tmp_path: Path) -> None:
    file = tmp_path / "fusewire.toml"
    file.write_text("[limits]\nhandles = 1048576\n", encoding="utf-8")
    result = reload(loaded(), load(file, {}, {}))
    assert (result.applied, result.needs_restart) == ((), ())
    assert result.loaded.origins["limits.handles"] == f"file {file}"


def test_the_guide_names_each_setting_that_may_change_in_service() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide.md").read_text(encoding="utf-8")
    assert [name for name in sorted(RELOADABLE) if f"`{name}`" not in guide] == []


@pytest.mark.parametrize("name", sorted(RELOADABLE))
def test_each_setting_that_may_change_in_service_can_be_taken_over_alone(name: str) -> None:
    raw = {"log.level": "error", "log.style": "json"}.get(name, "1")
    result = reload(loaded(), load(None, {}, {name: raw}))
    assert result.applied == (name,)
    assert value_of(result.loaded.config, name) == SETTINGS[name].reader(raw)
