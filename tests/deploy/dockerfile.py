"""Reads the instructions of the Dockerfile, stage by stage."""

from __future__ import annotations

import json
import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]


class Stage:
    """The instructions of one stage."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def copied(self) -> list[str]:
        """The files and folders of the project that the stage copies."""
        lines = re.findall(r"^COPY (?!--from)(.*) \S+$", self.text, re.MULTILINE)
        return [name for line in lines for name in line.split()]

    @property
    def environment(self) -> dict[str, str]:
        (line,) = re.findall(r"^ENV (.*)$", self.text, re.MULTILINE)
        return dict(pair.split("=", 1) for pair in line.split())

    @property
    def user(self) -> tuple[str, str]:
        """The ids of user and group."""
        (line,) = re.findall(r"^USER (.*)$", self.text, re.MULTILINE)
        user, _, group = line.partition(":")
        return user, group

    def words(self, instruction: str) -> list[str]:
        """Returns the words of an instruction that has a JSON array, for example CMD."""
        (text,) = re.findall(rf"^{instruction}.*?(\[.*\])$", self.text, re.MULTILINE)
        words: list[str] = json.loads(text)
        return words


def read_stages() -> dict[str, Stage]:
    """Returns name -> stage, in the order of the Dockerfile."""
    text = (PROJECT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    _, *parts = re.split(r"^FROM \S+ AS (\w+)$", text, flags=re.MULTILINE)
    return {name: Stage(stage) for name, stage in zip(parts[::2], parts[1::2], strict=True)}
