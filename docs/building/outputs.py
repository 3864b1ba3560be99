"""What the blocks of a page print, shown under them: computed when the site is built, never typed."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from building.following import follow

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LONGEST = 22  # lines; a table of the whole study is no example
SILENT = "% no output shown"  # on the line below a block, for what differs from machine to machine


def setup(app: "Sphinx") -> dict[str, bool]:
    """Ask Sphinx for every page's text before it is parsed."""
    app.add_config_value("show_outputs", True, "env")
    app.connect("source-read", _read)
    return {"parallel_read_safe": False, "parallel_write_safe": True}  # pages are run in the current folder


def _read(app: "Sphinx", name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if app.config.show_outputs and "```" in source[0]:
        with tempfile.TemporaryDirectory() as folder:
            source[0] = with_outputs(source[0], page, Path(folder), page.parent.parent / "results")


def with_outputs(text: str, page: Path, folder: Path, results: Path) -> str:
    """The page's text with a block of output below each block that prints something."""
    lines = text.splitlines()
    printed = follow(page, folder, results)
    for block in sorted(printed, key=lambda b: b.after, reverse=True):  # from below: earlier places stay right
        said = printed[block].rstrip()
        below = lines[block.after - 1] if block.after <= len(lines) else ""
        if said and below != SILENT:
            lines[block.after - 1 : block.after - 1] = [
                "",
                "`````{code-block} text",
                ":class: printed",
                "",
                *_cut(said),
            ]
            lines.insert(block.after + 3 + len(_cut(said)), "`````")
    return "\n".join(lines) + "\n"


def _cut(text: str) -> list[str]:
    lines = text.splitlines()
    if len(lines) <= LONGEST:
        return lines
    return [*lines[: LONGEST - 1], f"… and {len(lines) - LONGEST + 1} lines more"]
