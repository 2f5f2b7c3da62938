"""Reads the path of a file for a result, and refuses what cannot be written before anything is measured."""

from __future__ import annotations

import argparse
from pathlib import Path


def output_file(text: str) -> Path:
    """Returns the path of a file that can be made: its folder exists. Raises ArgumentTypeError for another path."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder; expected the path of a file")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written: there is no folder {path.parent}")
    return path
