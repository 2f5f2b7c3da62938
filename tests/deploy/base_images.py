"""The images of others that ours build on and run beside: pulled, or made of Debian's packages without a registry."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.deploy.engine import Engine, output_of

STAND_IN = "localhost/fusewire-check"
_SUITE = "bookworm"  # that of the Dockerfile's base
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_PULLED_WITHIN_S = 300.0
_MADE_WITHIN_S = 900.0

_PROMETHEUS = """
FROM {base}
RUN apt-get update && apt-get install -y --no-install-recommends prometheus wget
ENTRYPOINT ["prometheus"]
"""


def python_image(engine: Engine, name: str) -> str:
    """Returns the name of the image, or that of a stand-in: Debian's root with Python and its headers."""
    if can_be_had(engine, name):
        return name
    stand_in = f"{STAND_IN}-python:{_SUITE}"
    if not engine.succeeds("image", "inspect", stand_in):
        with TemporaryDirectory() as folder:
            _make_root(Path(folder))
            engine.run("import", _archive(Path(folder)), stand_in, timeout_s=_MADE_WITHIN_S)
    return stand_in


def prometheus_image(engine: Engine, name: str, base: str) -> str:
    """Returns the name of the image, or that of a stand-in: Debian's Prometheus on `base`."""
    if can_be_had(engine, name):
        return name
    stand_in = f"{STAND_IN}-prometheus:{_SUITE}"
    with TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text(_PROMETHEUS.format(base=base), encoding="utf-8")
        engine.run("build", "-t", stand_in, folder, timeout_s=_MADE_WITHIN_S)
    return stand_in


def can_be_had(engine: Engine, name: str) -> bool:
    """Returns whether the image is here or can be pulled."""
    return engine.succeeds("image", "inspect", name) or engine.succeeds("pull", name, timeout_s=_PULLED_WITHIN_S)


def _make_root(folder: Path) -> None:
    """Fills a folder as the root of the stand-in. It trusts the authorities that this machine has been given."""
    packages = "--include=python3-venv,python3-dev,ca-certificates"
    _execute("debootstrap", "--variant=minbase", packages, _SUITE, str(folder))
    for authority in _AUTHORITIES.glob("*.crt"):
        shutil.copy(authority, folder / _AUTHORITIES.relative_to("/"))
    _execute("chroot", str(folder), "update-ca-certificates")
    (folder / "usr" / "local" / "bin" / "python").symlink_to("/usr/bin/python3")


def _archive(root: Path) -> str:
    archive = root / "root.tar"
    _execute("tar", "-C", str(root), "--exclude=./root.tar", "-cf", str(archive), ".")
    return str(archive)


def _execute(*command: str) -> None:
    output_of(command, os.environ, _MADE_WITHIN_S)
