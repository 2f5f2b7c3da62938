"""Decides which changed settings a running server takes over, and which ones need a restart. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fusewire_server.config.config import SECTIONS, SETTINGS, Config, Loaded, value_of

# Settings that the server reads each time it needs them. The server tells clients the other limits when they connect,
# or uses them when it starts.
RELOADABLE = frozenset(
    {
        "limits.sessions",
        "limits.tenant_sessions",
        "limits.credit_ops",  # this and the next three settings: for new sessions
        "limits.credit_bytes",
        "limits.credit_segments",
        "limits.unread_bytes",
        "limits.unread_s",  # for new connections
        "limits.upload_stall_s",
        "limits.drain_s",
        "limits.resume_grace_s",
        "log.level",
        "log.style",
    }
)


class Reloaded(NamedTuple):
    """The settings after a reload, and the names of the changed settings: those in force, and those that are not."""

    loaded: Loaded
    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


def reload(old: Loaded, new: Loaded) -> Reloaded:
    """Returns the old settings with the values of `new` for the settings that may change in service."""
    changed = [name for name in SETTINGS if value_of(old.config, name) != value_of(new.config, name)]
    applied = tuple([name for name in changed if name in RELOADABLE])
    needs_restart = tuple([name for name in changed if name not in RELOADABLE])
    origins = {name: (old if name in needs_restart else new).origins[name] for name in SETTINGS}
    return Reloaded(Loaded(_with(old.config, new.config, applied), origins), applied, needs_restart)


def _with(config: Config, source: Config, names: tuple[str, ...]) -> Config:
    """Returns the configuration with the values of `source` for these names."""
    values: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    for name in names:
        section, _, key = name.partition(".")
        values[section][key] = value_of(source, name)
    return replace(config, **{section: replace(getattr(config, section), **keys) for section, keys in values.items()})
