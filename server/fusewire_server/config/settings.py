"""Defines a setting: its help text, and the reader that turns text or TOML into its value.

A reader takes a value from a file, the environment or a flag. It returns the setting's value, or raises ValueError with
the reason. It returns a value of the right type unchanged, so the same reader also checks values set from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

from fusewire_protos.address import Address, read_address
from fusewire_protos.errors import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ALL_DEVICES = "all"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

Reader = Callable[[object], object]

_UNIT_BYTES = {"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1 << 40}
_MOST_COUNT = 1 << 50  # more than any machine has of anything; sums of such numbers still fit where they are sent
_MOST_FEW = 64
_MOST_DIGITS = len(str(_MOST_COUNT))
_MOST_SECONDS = 1e6  # 11 days; the system waits for at most 24
_FLAG_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def read_one_of(*words: str) -> Reader:
    """Returns the reader of a setting that is one of a few words."""

    def read_word(raw: object) -> object:
        if raw in words:
            return raw
        raise ValueError(f"expected one of {', '.join(words)}")

    return read_word


def read_count(raw: object) -> int:
    """Reads a whole number from 1 to `_MOST_COUNT`."""
    return _whole(raw, range(1, _MOST_COUNT + 1))


def read_few(raw: object) -> int:
    """Reads a whole number from 0 to `_MOST_FEW`."""
    return _whole(raw, range(_MOST_FEW + 1))


def read_bytes(raw: object) -> int:
    """Reads a whole number of bytes from 1 up, or one with a binary unit: `64 MiB`."""
    if isinstance(raw, str):
        number, unit = raw.strip()[:-3].rstrip(), raw.strip()[-3:]
        if unit in _UNIT_BYTES and number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
            raw = str(int(number) * _UNIT_BYTES[unit])
    try:
        return read_count(raw)
    except ValueError:
        text = f"expected a number of bytes from 1 to {_MOST_COUNT}, such as 4194304 or '4 MiB'"
        raise ValueError(text) from None


def read_seconds(raw: object) -> float:
    """Reads a number of seconds above 0, at most `_MOST_SECONDS`."""
    try:
        seconds = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else 0.0
    except (OverflowError, ValueError):
        seconds = 0.0
    if not 0.0 < seconds <= _MOST_SECONDS:
        raise ValueError(f"expected a number of seconds above 0, at most {_MOST_SECONDS:.0f}")
    return seconds


def read_fraction(raw: object) -> float:
    """Reads a number from 0 to below 1."""
    try:
        fraction = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else -1.0
    except (OverflowError, ValueError):
        fraction = -1.0
    if not 0.0 <= fraction < 1.0:
        raise ValueError("expected a number from 0 to below 1")
    return fraction


def read_flag(raw: object) -> bool:
    """Reads true or false."""
    value = _FLAG_WORDS.get(raw.lower()) if isinstance(raw, str) else raw
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def read_path(raw: object) -> Path:
    """Reads the path of a file; a relative path starts from the working directory."""
    if isinstance(raw, Path):
        return raw
    try:
        if isinstance(raw, str) and raw and "\0" not in raw:
            return Path(raw).expanduser()
    except RuntimeError:  # the path begins with ~ and no user's name
        pass
    raise ValueError("expected a path")


def read_devices(raw: object) -> str:
    """Reads "all", or the numbers of devices: `0,2` in text, and a list in TOML. Returns them as text."""
    words = raw if isinstance(raw, list) else [raw] if isinstance(raw, int) else str(raw).replace(" ", "").split(",")
    if raw == ALL_DEVICES:
        return ALL_DEVICES
    try:
        numbers = tuple([_whole(word, range(_MOST_FEW)) for word in words])
    except ValueError:
        numbers = ()
    if not numbers:
        raise ValueError(f"expected all, or numbers of devices from 0 to {_MOST_FEW - 1}, such as 0,2")
    if len({*numbers}) < len(numbers):
        raise ValueError("a device is named twice")
    return devices_text(numbers)


def numbers_in(devices: str | None) -> tuple[int, ...]:
    """Returns the numbers in a setting of devices that has been read. Without numbers it is device 0."""
    return (0,) if devices in {None, ALL_DEVICES} else tuple(map(int, str(devices).split(",")))


def devices_text(numbers: Iterable[int]) -> str:
    """Returns numbers of devices as the setting has them."""
    return ",".join(map(str, numbers))


def _whole(raw: object, allowed: range) -> int:
    if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) <= _MOST_DIGITS:
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int) or raw not in allowed:
        raise ValueError(f"expected a whole number from {allowed[0]} to {allowed[-1]}")
    return raw


# The types with which a section declares its settings.
Endpoint = Annotated[Address, read_address]
Count = Annotated[int, read_count]
Bytes = Annotated[int, read_bytes]
OptionalFew = Annotated[int | None, read_few]
OptionalBytes = Annotated[int | None, read_bytes]
Seconds = Annotated[float, read_seconds]
OptionalFraction = Annotated[float | None, read_fraction]
OptionalDevices = Annotated[str | None, read_devices]
Flag = Annotated[bool, read_flag]
OptionalFile = Annotated[Path | None, read_path]


class Setting(NamedTuple):
    """The reader and help of a field, declared as `Annotated[Annotated[type, reader], about]`, joined by Python."""

    reader: Reader
    about: str

    @property
    def is_switch(self) -> bool:
        """Tells whether the flag alone turns the setting on, without a value."""
        return self.reader is read_flag


def settings_of(section: type[Any]) -> Mapping[str, Setting]:
    """Returns the settings of a section by field name."""
    hints = get_type_hints(section, include_extras=True)
    return {declared.name: Setting(*hints[declared.name].__metadata__) for declared in fields(section)}


def read(name: str, setting: Setting, raw: object, origin: str) -> object:
    """Returns the value of a setting. Raises ConfigurationError with its name, its origin and the reason."""
    try:
        return setting.reader(raw)
    except ValueError as reason:
        raise ConfigurationError(f"{name} = {raw!r} ({origin}): {reason}") from None


def check_section(name: str, section: DataclassInstance) -> None:
    """Raises ConfigurationError for the first value of a section that its reader does not return unchanged.

    A value equal to its default passes, because an unset setting keeps its default.
    """
    settings = settings_of(type(section))
    for declared in fields(section):
        full_name, value = f"{name}.{declared.name}", getattr(section, declared.name)
        if value is declared.default:
            continue
        if read(full_name, settings[declared.name], value, "set in Python") != value:
            raise ConfigurationError(f"{full_name} = {value!r} has the wrong type {type(value).__name__}")
