"""What all pictures share: the study's look, a sheet, and files that are the same bytes each time."""

import io
from typing import TYPE_CHECKING

from propreg.data._atomic import atomic_write
from propreg.study.figures.save import our_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.figure import Figure as Sheet


def new_sheet(width: float, height: float) -> "Sheet":
    """An empty sheet, sizes in inches; its parts make room for each other."""
    from matplotlib.figure import Figure as Sheet

    return Sheet(figsize=(width, height), layout="constrained")


def save(draw: "Callable[[], Sheet]", path: "Path", title: str) -> None:
    """Draw with our settings and write the SVG, whole or not at all."""
    out = io.BytesIO()
    with our_settings():
        draw().savefig(out, format="svg", metadata={"Title": title, "Creator": "propreg", "Date": None})
    with atomic_write(path) as file:
        file.write(out.getvalue())
