"""The code blocks of a page: found in its Markdown.

A page is followed from top to bottom in one folder, as a reader would: ``python`` blocks share one namespace, ``sh``
blocks hold one command a line, and a ``{code-block}`` with a caption is a file of that name. A block that begins with a
comment ``not run by the tests: …`` is not run, and says why to the reader.
"""

import re
from dataclasses import dataclass

LANGUAGES = ("python", "sh")
NOT_RUN = "# not run by the tests: "
_FENCE = re.compile(r"^(`{3,})\s*(.*?)\s*$")
_OPTION = re.compile(r"^:([a-z-]+):\s*(.*?)\s*$")


@dataclass(frozen=True)
class Block:
    """A block of code; ``first`` is the number of its first line, ``after`` that of the line below its fence."""

    language: str
    code: str
    first: int
    after: int
    name: str = ""

    @property
    def reason(self) -> str:
        """Why it is not run; empty where it is."""
        first = self.code.partition("\n")[0]
        return first.removeprefix(NOT_RUN) if first.startswith(NOT_RUN) else ""

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, comments left out and continued lines put together."""
        lines = re.sub(r"\\\n\s*", " ", self.code).splitlines()
        return [line for line in (line.partition("  #")[0].strip() for line in lines) if line and line[0] != "#"]


def find_blocks(text: str) -> list[Block]:
    """All blocks of a page that hold code or a file, in order.

    Example:
        >>> [block.code for block in find_blocks("```python\\nx = 1\\n```\\n")]
        ['x = 1']
    """
    found: list[Block] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if not opened:
            at += 1
            continue
        fence, info = opened.groups()
        end = next(i for i in range(at + 1, len(lines)) if lines[i].rstrip() == fence)
        block = _block(info, lines[at + 1 : end], at + 2, end + 2)
        if block is not None:
            found.append(block)
        at = end + 1
    return found


def _block(info: str, lines: list[str], first: int, after: int) -> Block | None:
    if info in LANGUAGES:
        return Block(info, "\n".join(lines), first, after)
    if not info.startswith("{code-block}"):
        return None
    options = {}
    while lines and (option := _OPTION.match(lines[0])):
        options[option[1]] = option[2]
        lines, first = lines[1:], first + 1
    if "caption" not in options:
        return None
    while lines and not lines[0]:
        lines, first = lines[1:], first + 1
    return Block("file", "\n".join(lines) + "\n", first, after, options["caption"])
