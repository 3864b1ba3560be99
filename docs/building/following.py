"""Following a page literally: its blocks are run from top to bottom in a folder of their own."""

import contextlib
import io
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from building.blocks import Block, find_blocks

FROM_CLONE = "from: clone"  # in a page's front matter: its reader stands in a clone, where results/ is
SHORT = {"--max-epochs": "3", "--splits": "2", "--seeds": "1"}


def follow(page: Path, folder: Path, results: Path, *, short: bool = False) -> dict[Block, str]:
    """Run the blocks of a page in an empty folder; returns what each of them prints.

    Args:
        page: The Markdown file.
        folder: Where to run.
        results: The recorded runs, which are put into the folder of a page that is read in a clone.
        short: Give ``propreg run`` settings that take a second, whatever the page says.

    Raises:
        RuntimeError: If a command does not end well. What a Python block raises comes as it is.
    """
    text = page.read_text(encoding="utf-8")
    if FROM_CLONE in text.partition("\n---\n")[0]:
        (folder / results.name).symlink_to(results, target_is_directory=True)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = {}
    with _inside(folder):
        for block in find_blocks(text):
            if not block.reason:
                printed[block] = _run(block, names, page.name, short)
    return printed


def _run(block: Block, names: dict[str, Any], page: str, short: bool) -> str:
    if block.language == "file":
        path = Path(block.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, encoding="utf-8")
        return ""
    if block.language == "sh":
        return "".join(run_command(line, f"{page}, line {block.first}", short) for line in block.commands)
    said = io.StringIO()
    placed = "\n" * (block.first - 1) + block.code  # so that a traceback names the page's own line
    with contextlib.redirect_stdout(said):
        exec(compile(placed, page, "exec"), names)
    return said.getvalue()


def run_command(line: str, where: str, short: bool) -> str:
    """Run one ``propreg`` command in this process; returns what it prints."""
    from typer.testing import CliRunner

    from propreg.cli.app import app

    program, *arguments = shlex.split(line)
    if program != "propreg":
        raise RuntimeError(f"{where}: only propreg commands are run, but {line!r} came: say why it is not run.")
    if short and arguments[0] == "run":
        arguments += [part for setting in SHORT.items() for part in setting]  # of an option given twice the last counts
    result = CliRunner().invoke(app, arguments, prog_name="propreg")
    if result.exit_code:
        raise RuntimeError(f"{where}: {line!r} ended with {result.exit_code}: {result.output}") from result.exception
    return result.stdout


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
