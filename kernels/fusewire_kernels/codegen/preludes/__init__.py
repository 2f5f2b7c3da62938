"""The text that every generated kernel starts with: a target's primitives, then the math common to all targets."""

from functools import cache
from importlib.resources import files

_TARGET_FILES = {"c": "c.h", "cuda": "cuda.h"}


@cache
def prelude(dialect: str) -> str:
    """The prelude's source for `dialect`, "c" or "cuda"; ValueError for any other."""
    if dialect not in _TARGET_FILES:
        raise ValueError(f"no prelude for dialect {dialect!r}; there is one for {', '.join(_TARGET_FILES)}")
    return _read(_TARGET_FILES[dialect]) + "\n" + _read("math.h")


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
