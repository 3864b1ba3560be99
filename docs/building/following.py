"""Following a page to the letter: its blocks are run from top to bottom in an empty folder."""

import contextlib
import io
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from building.blocks import NOT_RUN, Block, find_blocks

FROM_CLONE = "<!-- from: clone -->"  # first line of a page whose reader works in a clone, next to results/


def follow(page: Path, folder: Path, results: Path, only: Callable[[Block], bool] = lambda _: True) -> dict[Block, str]:
    """Run the blocks of a page in an empty folder and return what each of them prints.

    Args:
        page: The Markdown file.
        folder: Where to run.
        results: The recorded runs, linked into the folder if the page is read in a clone.
        only: Which blocks to run.

    Raises:
        RuntimeError: If a command fails. What a Python block raises is passed on.
    """
    text = page.read_text(encoding="utf-8")
    if text.startswith(FROM_CLONE):
        (folder / results.name).symlink_to(results, target_is_directory=True)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = {}
    with _inside(folder):
        for block in find_blocks(text):
            if not block.reason and only(block):
                printed[block] = _run(block, names, page.name)
    return printed


def _run(block: Block, names: dict[str, Any], page: str) -> str:
    if block.language == "file":
        path = Path(block.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, encoding="utf-8")
        return ""
    if block.language == "sh":
        return "".join(run_command(line, f"{page}, line {block.first}") for line in block.commands)
    said = io.StringIO()
    placed = "\n" * (block.first - 1) + block.code  # so that a traceback names the page's own line
    with contextlib.redirect_stdout(said):
        exec(compile(placed, page, "exec"), names)
    return said.getvalue()


def run_command(line: str, where: str) -> str:
    """Run one ``propreg`` command in this process and return what it prints."""
    from typer.testing import CliRunner

    from propreg.cli.app import app

    program, *arguments = shlex.split(line)
    if program != "propreg":
        fix = f"begin the block with {NOT_RUN!r} and a reason."
        raise RuntimeError(f"{where}: only propreg commands are run, got {line!r}: {fix}")
    result = CliRunner().invoke(app, arguments, prog_name="propreg")
    if result.exit_code:
        raise RuntimeError(f"{where}: {line!r} exited with {result.exit_code}: {result.output}") from result.exception
    return result.stdout


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
