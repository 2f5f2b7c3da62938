"""The picture is a PNG of one curve for each client."""

from pathlib import Path

from fusewire.examples.picture import draw
from tests.client.examples.canned import figures


def test_a_png_is_written(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    draw(figures(), path)
    assert path.read_bytes().startswith(b"\x89PNG")
