"""Writing a figure as SVG, PNG or PDF: the same figure is the same bytes."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from propreg._lazy import MissingPackageError
from propreg.jsonio import atomic_write
from propreg.store.errors import StudyError, UsageError
from propreg.study.figures.parts import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

SUFFIXES = (".svg", ".png", ".pdf")
DPI = 200


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture of a figure, whole or not at all; its caption is in the file's description.

    Raises:
        StudyError: If the suffix is not one of the three, or the folder is missing.
        ImportError: If Matplotlib is not installed.
    """
    check_path(path)
    written = render(figure, path.suffix.lower())
    with atomic_write(path) as file:
        file.write(written)


def check_path(path: Path) -> None:
    """Raise before any work is done if a figure cannot be written there."""
    if path.suffix.lower() not in SUFFIXES:
        got = repr(path.suffix) if path.suffix else f"{path.name!r} without a suffix"
        raise UsageError(f"A figure's file ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {got}.")
    if not path.parent.is_dir():
        raise StudyError(f"There is no folder {path.parent}: create it, or write elsewhere.")


def sheet_of(figure: Figure) -> "Sheet":
    """A picture as a Matplotlib figure."""
    if find_spec("matplotlib") is None:
        raise MissingPackageError("Figures need Matplotlib: run pip install 'propreg[report]'.")
    from propreg.study.figures.drawing.sheet import draw

    with our_settings():
        return draw(figure)


def render(figure: Figure, suffix: str) -> bytes:
    """The bytes of a picture."""
    out, sheet = io.BytesIO(), sheet_of(figure)
    with our_settings():
        sheet.savefig(out, format=suffix.removeprefix("."), dpi=DPI, metadata=_metadata(figure, suffix))
    return out.getvalue()


@contextmanager
def our_settings() -> Iterator[None]:
    """Use our Matplotlib settings while a figure is drawn, then restore the user's."""
    import matplotlib as mpl

    from propreg.study.figures.drawing.style import SETTINGS

    with mpl.rc_context():
        mpl.rcdefaults()  # the user's own settings would make other bytes
        mpl.rcParams.update(SETTINGS)
        yield


def _metadata(figure: Figure, suffix: str) -> dict[str, Any]:
    """The title and the caption, and neither date nor version."""
    if suffix == ".svg":
        return {"Title": figure.title, "Description": figure.caption, "Creator": "propreg", "Date": None}
    if suffix == ".pdf":
        words = {"Title": figure.title, "Subject": figure.caption, "Creator": "propreg"}
        return {**words, "Producer": None, "CreationDate": None}
    return {"Title": figure.title, "Description": figure.caption, "Software": "propreg"}
