"""The code blocks of the page deploy/README.md, and what each of them needs."""

from __future__ import annotations

import re
import shlex

from tests.deploy.dockerfile import PROJECT

PAGE = (PROJECT / "deploy" / "README.md").read_text(encoding="utf-8")
# A block needs something that is not here, or a server: one without tokens, one with them, or the one that it starts.
NEEDS = ("needs=container-engine", "needs=systemd", "server=open", "server=guarded", "server=own")


def kinds_of_blocks() -> list[str]:
    return re.findall(r"^```(\S.*)$", PAGE, re.MULTILINE)


def blocks(needs: str) -> list[str]:
    """Returns the code blocks that need this."""
    return re.findall(rf"^```sh {re.escape(needs)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands(needs: str) -> list[list[str]]:
    """Returns the words of each line of these blocks, without assignments before them."""
    lines = [shlex.split(line) for block in blocks(needs) for line in block.splitlines()]
    return [[word for at, word in enumerate(words) if at or "=" not in word] for words in lines]
