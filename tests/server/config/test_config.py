"""Configuration: which source wins, what is refused, and what the refusal says."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError
from fusewire_server.config.config import SETTINGS, Config, Device, Limits, Listen, Planner, load, value_of


@pytest.fixture
def toml(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "fusewire.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_without_sources_every_value_is_the_default_and_says_so() -> None:
    loaded = load(None, {}, {})
    assert loaded.config == Config()
    assert dict(loaded.origins) == dict.fromkeys(SETTINGS, "default")


def test_a_flag_wins_over_the_environment_and_that_over_the_file(toml: Callable[[str], Path]) -> None:
    path = toml("[limits]\nhandles = 1\nprograms = 1\nprogram_ops = 1\n")
    environment = {"FUSEWIRE_LIMITS__PROGRAMS": "2", "FUSEWIRE_LIMITS__PROGRAM_OPS": "2"}
    config, origins = load(path, environment, {"limits.program_ops": "3"})
    assert (config.limits.handles, config.limits.programs, config.limits.program_ops) == (1, 2, 3)
    assert origins["limits.handles"] == f"file {path}"
    assert origins["limits.programs"] == "environment FUSEWIRE_LIMITS__PROGRAMS"
    assert origins["limits.program_ops"] == "flag --program-ops"


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("listen.grpc", "[::1]:9", Address("::1", 9)),
        ("listen.http", "localhost:0", Address("localhost", 0)),
        ("listen.tls_cert", "chain.pem", Path("chain.pem")),
        ("listen.insecure_allow_remote", "TRUE", True),
        ("listen.front_ends", "0", 0),
        ("listen.front_ends", "64", 64),
        ("listen.front_ends", 3, 3),
        ("listen.local", "no", False),
        ("device.backend", "null", "null"),
        ("device.memory_bytes", "8GiB", 8 << 30),
        ("limits.tenant_reserve", "0.25", 0.25),
        ("limits.tenant_reserve", "0", 0.0),
        ("limits.handles", "17", 17),
        ("limits.live_bytes", "2 GiB", 2 << 30),
        ("limits.upload_stall_s", "1.5", 1.5),
        ("limits.resume_grace_s", "3", 3.0),
    ],
)
def test_text_becomes_the_value_of_its_setting(name: str, raw: str, value: object) -> None:
    key = name.partition(".")[2]
    flags = {name: raw} | ({"listen.tls_key": "key.pem"} if key == "tls_cert" else {})
    assert value_of(load(None, {}, flags).config, name) == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("listen.grpc", "7423"),
        ("listen.grpc", "127.0.0.1:"),
        ("listen.grpc", ":7423"),
        ("listen.grpc", "127.0.0.1:65536"),
        ("listen.grpc", 7423),
        ("listen.token_file", ""),
        ("listen.token_file", "to\0kens"),
        ("listen.token_file", "~no-such-user/tokens"),
        ("listen.insecure_allow_remote", "perhaps"),
        ("listen.insecure_allow_remote", 1),
        ("listen.front_ends", "65"),
        ("listen.front_ends", "-1"),
        ("listen.front_ends", ""),
        ("listen.front_ends", "1.0"),
        ("listen.front_ends", "²"),
        ("listen.front_ends", True),
        ("listen.front_ends", 1.0),
        ("listen.local", "unix"),
        ("listen.busy_poll_s", "-0.001"),
        ("listen.busy_poll_s", "1"),
        ("listen.busy_poll_s", "soon"),
        ("device.backend", "tpu"),
        ("device.backend", ["cpu"]),
        ("device.devices", ""),
        ("device.devices", "0,"),
        ("device.devices", "0,64"),
        ("device.devices", "-1"),
        ("device.devices", "every"),
        ("device.devices", []),
        ("device.devices", [0, "all"]),
        ("device.devices", True),
        ("device.devices", 1.5),
        ("limits.handles", "0"),
        ("limits.handles", "-1"),
        ("limits.handles", "1.5"),
        ("limits.handles", "1_000"),
        ("limits.handles", "²"),
        ("limits.handles", 10**20),
        pytest.param("limits.handles", "9" * 5000, id="limits.handles-of-many-digits"),
        ("limits.live_bytes", "99999999999999999 GiB"),
        ("limits.handles", True),
        ("limits.live_bytes", "4 GB"),
        ("limits.live_bytes", "GiB"),
        ("limits.tenant_reserve", "1"),
        ("limits.tenant_reserve", "nan"),
        ("limits.tenant_reserve", -0.1),
        ("limits.upload_stall_s", "0"),
        ("limits.upload_stall_s", "nan"),
        ("limits.upload_stall_s", "inf"),
        ("limits.drain_s", "1e300"),
        ("limits.upload_stall_s", "soon"),
        pytest.param("limits.upload_stall_s", 10**400, id="limits.upload_stall_s-huge"),
        ("limits.upload_stall_s", True),
        ("planner.cached_plans", {}),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_origin(name: str, raw: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name} = .*\(flag --.*\): expected") as refused:
        load(None, {}, {name: raw})
    assert repr(raw) in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("all", "all"), ("0", "0"), ("2, 0", "2,0"), (3, "3"), ([1, 0], "1,0"), (["1", "0"], "1,0"), ("00", "0")],
)
def test_devices_are_all_or_numbers_in_their_order(raw: object, expected: str) -> None:
    assert load(None, {}, {"device.devices": raw}).config.device.devices == expected


@pytest.mark.parametrize("raw", ["0,0", [1, 0, 1], "1,01"])
def test_a_device_that_is_named_twice_is_refused(raw: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^device\.devices = .*: a device is named twice$"):
        load(None, {}, {"device.devices": raw})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[limits]\nhandels = 1\n", r"no setting limits\.handels .*did you mean limits\.handles\?"),
        ("[limit]\nhandles = 1\n", r"no setting limit .*did you mean limits\?"),
        ("[limit]\n", r"no setting limit .*did you mean limits\?"),
        ("[limits]\nfoo = 1\n", r"no setting limits\.foo \([^)]*\)$"),
        ("limits = 1\n", r"no setting limits \([^)]*\): limits is a section, a table of settings$"),
        ("handles = 1\n", r"no setting handles .*did you mean limits\.handles\?"),
        ("[limits]\nhandles = {x = 1}\n", r"limits\.handles = .* whole number"),
        ("[limits\n", "is not valid TOML"),
        pytest.param("limits = " + "[" * 5000, "cannot read .*: it is nested too deeply", id="deeply nested"),
    ],
)
def test_a_wrong_key_in_a_file_is_refused_with_a_suggestion(
    toml: Callable[[str], Path], text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(toml(text), {}, {})


def test_a_wrong_key_in_the_environment_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigurationError, match=r"FUSEWIRE_DEVICE__BACKENDS\); did you mean device\.backend\?"):
        load(None, {"FUSEWIRE_DEVICE__BACKENDS": "cpu"}, {})


def test_variables_that_name_no_section_are_not_ours() -> None:
    environment = {"FUSEWIRE_TARGET": "127.0.0.1:7423", "OTHER_LIMITS__HANDLES": "x"}
    assert load(None, environment, {}).config == Config()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read"):
        load(tmp_path / "absent.toml", {}, {})


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fusewire.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        load(path, {}, {})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Limits(handles=0), r"limits\.handles = 0"),
        (lambda: Limits(live_bytes=4.5), r"limits\.live_bytes = 4\.5"),  # type: ignore[arg-type]
        (lambda: Limits(handles="5"), r"limits\.handles = '5' has the wrong type str"),  # type: ignore[arg-type]
        (lambda: Limits(array_bytes=2, live_bytes=1), r"limits\.array_bytes = 2 exceed limits\.live_bytes = 1"),
        (lambda: Limits(chunk_bytes=4 << 20), r"limits\.chunk_bytes = .* exceed limits\.message_bytes"),
        (lambda: Limits(program_bytes=4 << 20), r"limits\.program_bytes = .* exceed limits\.message_bytes"),
        (lambda: Limits(message_bytes=1 << 31), r"limits\.message_bytes = 2147483648; the most is"),
        (lambda: Listen(tls_key=Path("key.pem")), r"set both listen\.tls_cert and listen\.tls_key, or neither"),
        (lambda: Listen(grpc=Address("a", 1), http=Address("a", 1)), r"listen\.grpc and listen\.http are both a:1"),
        (lambda: Listen(grpc="127.0.0.1:1"), r"listen\.grpc = '127\.0\.0\.1:1' has the wrong type str"),  # type: ignore[arg-type]
        (lambda: Device(backend="tpu"), r"device\.backend = 'tpu'"),
        (lambda: Planner(deadline_s=0.0), r"planner\.deadline_s = 0\.0"),
    ],
)
def test_a_section_checks_itself_at_construction(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build()


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().limits.handles = 1  # type: ignore[misc]


def test_memory_is_kept_for_other_tenants_if_there_are_tokens_or_it_is_set(tmp_path: Path) -> None:
    tokens = Listen(token_file=tmp_path / "tokens")
    assert (Config().tenant_reserve, Config(listen=tokens).tenant_reserve) == (0.0, 1 / 8)
    assert Config(listen=tokens, limits=Limits(tenant_reserve=0.5)).tenant_reserve == 0.5
