"""Compiles the Python modules through which every row of a client goes in the server, by mypyc.

`python build_server.py` writes each extension module beside its source, and one more that holds the code of them all.
It compiles again if a source is newer. Python takes an extension module before the source of the same name; where
nothing is compiled, the same sources run, only slower. `python build_server.py remove` goes back to that, and
`python build_server.py sources` lists the sources.

It needs mypy besides what `build_recorder.py` needs. It checks types less strictly than `make check`, because packages
whose types are missing, such as gRPC's, may be absent where a wheel is built.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import chdir
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory

from build_recorder import CannotCompileError, check_tools

# By folder. Not among them are modules with coroutines and generators of asyncio, which spend their time elsewhere.
MODULES = {
    "protos/fusewire_protos": ("credit", "frames", "unpacking", "local_calls/part_socket", "local_calls/parts"),
    "kernels/fusewire_kernels/devices": (
        "block_pool",
        "graph_cache",
        "loop_parts",
        "page_ring",
        "retirement",
    ),
    "kernels/fusewire_kernels/plan": ("slots",),
    "server/fusewire_server/device": (
        "device_thread",
        "device_time",
        "executor",
        "joined_reports",
        "memory/allocation",
        "memory/device_memory",
        "orders",
        "slots_of_rows",
    ),
    "server/fusewire_server/engine": (
        "backlog",
        "device_orders",
        "engine",
        "reads",
        "registry",
        "row_effects",
        "submissions",
    ),
    "server/fusewire_server/programs": ("counters", "row_cost"),
    "server/fusewire_server/scheduling": (
        "accounts",
        "coalescer",
        "lanes",
        "time_shares",
        "turns",
        "unfinished_orders",
    ),
    "server/fusewire_server/sessions": (
        "effects",
        "entries/fetch",
        "entries/frame",
        "entries/loop",
        "entries/segment",
        "entries/upload",
        "entries/validation",
        "host_bytes",
        "intake",
        "iterations",
        "rows",
        "session",
        "tables/answers",
        "tables/failed_handles",
        "tables/packed_values",
        "tables/salted_table",
        "tenant_usage",
        "values",
    ),
    "server/fusewire_server/transport": ("frame_parsing", "session_frames"),
}
# The folders of sources, and the one that every part of Fusewire has, where the code of all modules lies.
_ROOTS = ("protos", "kernels", "server")
_CODE_FOLDER = "protos"
_GROUP = "fusewire"  # mypyc appends "__mypyc" to this for the module that holds the code
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def sources_of(root: Path) -> list[Path]:
    """Returns the sources below `root` that are compiled."""
    return [root / folder / f"{name}.py" for folder, names in MODULES.items() for name in names]


def modules_of(root: Path) -> list[Path]:
    """Returns the paths of the extension modules. The last one holds the code of all."""
    modules = [source.with_suffix(_SUFFIX) for source in sources_of(root)]
    return [*modules, root / _CODE_FOLDER / f"{_GROUP}__mypyc{_SUFFIX}"]


def are_outdated(root: Path) -> bool:
    """Returns whether some modules are missing, or older than a source."""
    modules = modules_of(root)
    if not all(module.exists() for module in modules):
        return True
    changed = max(source.stat().st_mtime for source in (*sources_of(root), Path(__file__)))
    return min(module.stat().st_mtime for module in modules) < changed


def bring_up_to_date(root: Path) -> None:
    """Compiles all modules if some are outdated. Raises CannotCompileError, or what the compilers raise.

    If they cannot be compiled, old ones are removed.
    """
    if not are_outdated(root):
        return
    try:
        check_tools({"mypyc": "mypy", "setuptools": "setuptools"})
        _compile(root)
    except BaseException:
        remove(root)
        raise


def remove(root: Path) -> None:
    """Removes the modules, so that the sources run, and those of sources that are compiled no longer."""
    for folder in {source.relative_to(root).parts[0] for source in sources_of(root)}:
        for module in (root / folder).rglob(f"*{_SUFFIX}"):
            module.unlink()


def _compile(root: Path) -> None:
    # Imported here, so that a build that compiles nothing does not need them.
    from mypyc.build import mypycify  # noqa: PLC0415
    from setuptools import Distribution  # noqa: PLC0415

    os.environ["MYPYPATH"] = os.pathsep.join(_ROOTS)
    options = ["--config-file=", "--ignore-missing-imports", "--explicit-package-bases", "--no-error-summary"]
    with TemporaryDirectory() as name, chdir(root):
        folder = Path(name)
        sources = [str(source.relative_to(root)) for source in sources_of(root)]
        extensions = mypycify(
            [*options, f"--cache-dir={folder / 'cache'}", *sources],
            opt_level="2",
            debug_level="0",
            multi_file=True,
            group_name=_GROUP,
            target_dir=str(folder / "c"),
        )
        command = Distribution({"name": "fusewire", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
        remove(root)
        for module in modules_of(root):
            built = module.relative_to(root)
            copy2(folder / "lib" / Path(*built.parts[1:]), module)


if __name__ == "__main__":
    here = Path(__file__).parent.resolve()
    try:
        if sys.argv[1:] == ["remove"]:
            remove(here)
        elif sys.argv[1:] == ["sources"]:
            names = [str(source.relative_to(here)) for source in sources_of(here)]
            sys.stdout.write(" ".join(["build_server.py", *names]))
        else:
            bring_up_to_date(here)
    except CannotCompileError as reason:
        sys.exit(f"The server cannot be compiled: {reason}")
