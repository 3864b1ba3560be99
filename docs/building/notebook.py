"""The tutorial as a notebook: its prose, its code, and the output that stands below each block."""

import json
import re
from pathlib import Path
from typing import Any

from building.blocks import BEGIN, END, Block, find_blocks

VERSION = {"nbformat": 4, "nbformat_minor": 5}
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
_OUTPUT = re.compile(rf"^{BEGIN}\n```text\n(?P<said>.*?)\n```\n{END}\n", re.M | re.S)


def notebook(text: str) -> str:
    """A page as a notebook in JSON; equal pages give equal bytes."""
    lines, cells, at = text.splitlines(keepends=True), list[dict[str, Any]](), 0
    for block in find_blocks(text):
        fence = block.first - 2
        cells += _prose("".join(lines[at:fence]))
        at = block.after - 1
        said = _OUTPUT.match("".join(lines[at:]))
        if said:
            at += said[0].count("\n")
        cells.append(_code(block, said["said"] if said else ""))
    cells += _prose("".join(lines[at:]))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return json.dumps({"cells": cells, "metadata": KERNEL, **VERSION}, ensure_ascii=False, indent=1) + "\n"


def code_of(block: Block) -> str:
    """A block as a cell runs it: commands behind an exclamation mark, files behind ``%%writefile``."""
    if block.language == "python":
        return block.code
    if block.language == "file":
        folder = Path(block.name).parent.as_posix()
        made = "" if folder == "." else f"import os\n\nos.makedirs({folder!r}, exist_ok=True)\n"
        return f"{made}with open({block.name!r}, 'w') as file:\n    file.write({block.code!r})"
    if block.reason:
        return "\n".join(f"# {line}" for line in block.code.splitlines()[1:])
    return "\n".join(f"!{command}" for command in block.commands)


def _code(block: Block, said: str) -> dict[str, Any]:
    outputs = [{"name": "stdout", "output_type": "stream", "text": _lines(f"{said}\n")}] if said else []
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs}
    return {**cell, "source": _lines(code_of(block))}


def _prose(text: str) -> list[dict[str, Any]]:
    text = text.replace("<!-- no output -->\n", "").strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": _lines(text)}] if text else []


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
