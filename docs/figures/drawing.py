"""What all pictures share: the study's look, a sheet, and the same bytes each time."""

import io
from typing import TYPE_CHECKING

from propreg.study.figures.drawing.save import our_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure as Sheet


def new_sheet(width: float, height: float) -> "Sheet":
    """An empty sheet, sizes in inches; its parts make room for each other."""
    from matplotlib.figure import Figure as Sheet

    return Sheet(figsize=(width, height), layout="constrained")


def drawn(draw: "Callable[[], Sheet]", title: str) -> bytes:
    """An SVG with our settings."""
    out = io.BytesIO()
    with our_settings():
        draw().savefig(out, format="svg", metadata={"Title": title, "Creator": "propreg", "Date": None})
    return out.getvalue()
