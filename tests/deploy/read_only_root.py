"""Runs programs in a root of their own, made by bubblewrap: that of this machine, read-only, with some folders added.

It stands for a container of the image, whose base is then this machine's system.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.deploy.dockerfile import Stage

_BUBBLEWRAP = shutil.which("bwrap") or "bwrap"
_HIDDEN = {Path(path) for path in ("/dev", "/proc", "/tmp", "/var", "/opt/fusewire")}  # noqa: S108
_OPENED = (Path("/"), Path("/opt"), Path("/etc"))  # folders are added to these, so only what is in them is read-only


def within_root(
    *, writable: Mapping[str, Path], readable: Mapping[str, Path] | None = None, folder: str = "/"
) -> list[str]:
    """Returns the command that runs another in such a root, in `folder`.

    `writable` and `readable` map paths in this root to folders or files of this machine.
    """
    command = [_BUBBLEWRAP, "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
    for opened in _OPENED:
        command += _bound(sorted(set(opened.iterdir()) - _HIDDEN - set(_OPENED)))
    for path, source in writable.items():
        command += ["--bind", str(source), path]
    for path, source in (readable or {}).items():
        command += ["--ro-bind", str(source), path]
    return [*command, "--chdir", folder]


def without_rights(stage: Stage) -> list[str]:
    """Returns the options of bubblewrap for a process that runs as the stage's user and has no capabilities."""
    user, group = stage.user
    return ["--unshare-user", "--uid", user, "--gid", group, "--cap-drop", "ALL"]


def _bound(paths: Sequence[Path]) -> list[str]:
    options = []
    for path in paths:
        kind, source = ("--symlink", path.readlink()) if path.is_symlink() else ("--ro-bind", path)
        options += [kind, str(source), str(path)]
    return options
