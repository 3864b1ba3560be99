"""The code blocks of a page, and the output below them.

A page is followed from top to bottom in one folder, as a reader would: ``python`` blocks share one namespace, ``sh``
blocks hold one command per line, and a block below a line that ends with a file name in backticks and a colon is a file
of that name. A block that begins with ``# not run by the tests: …`` is not run, and gives the reason to the reader.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NOT_RUN = "# not run by the tests: "
HIDDEN = "<!-- no output -->"  # below a block whose output differs between machines
BEGIN, END = "<!-- begin: output -->", "<!-- end: output -->"
LONGEST = 25  # lines of output: a table of the whole study is no example
_FENCE = re.compile(r"^(`{3,})\s*(\w*)\s*$")
_TIME = re.compile(r"(?<= in )[\d.]+ s\b")  # differs each time
_FILE = re.compile(r"(?:^|\s)`([\w/.-]+\.\w+)`:$")


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
        """Why it is not run; empty if it is."""
        first = self.code.partition("\n")[0]
        return first.removeprefix(NOT_RUN) if first.startswith(NOT_RUN) else ""

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, without comments and with continued lines joined."""
        lines = re.sub(r"\\\n\s*", " ", self.code).splitlines()
        return [line for line in (line.partition("  #")[0].strip() for line in lines) if line and line[0] != "#"]


def find_blocks(text: str) -> list[Block]:
    """All blocks of a page that hold code or a file, in order.

    Example:
        >>> [block.code for block in find_blocks("```python\\nx = 1\\n```\\n")]
        ['x = 1']
    """
    return list(_blocks(text.splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    at, above = 0, ""
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if not opened:
            above = lines[at] or above
            at += 1
            continue
        fence, language = opened.groups()
        end = next(i for i in range(at + 1, len(lines)) if lines[i].rstrip() == fence)
        code, named = "\n".join(lines[at + 1 : end]), _FILE.search(above)
        if language in ("python", "sh"):
            yield Block(language, code, at + 2, end + 2)
        elif named:
            yield Block("file", code + "\n", at + 2, end + 2, named[1])
        at, above = end + 1, ""


def with_outputs(text: str, printed: Mapping[Block, str]) -> str:
    """The page with the output of each block below it, in place of what stands there."""
    lines = text.splitlines()
    for block in sorted(printed, key=lambda each: each.after, reverse=True):  # bottom up: line numbers stay valid
        at, after = block.after - 1, block.after - 1
        if lines[at : at + 1] == [BEGIN]:
            after = lines.index(END, at) + 1
        said = printed[block].rstrip()
        show = said and lines[at : at + 1] != [HIDDEN]
        lines[at:after] = [BEGIN, "```text", *_cut(said), "```", END] if show else []
    return "\n".join(lines) + "\n"


def outputs(text: str) -> list[str]:
    """What stands below the blocks, in order."""
    return re.findall(rf"^{BEGIN}\n```text\n(.*?)\n```\n{END}$", text, re.M | re.S)


def _cut(text: str) -> list[str]:
    lines = [_TIME.sub("… s", line.rstrip()) for line in text.splitlines()]
    if len(lines) <= LONGEST:
        return lines
    return [*lines[: LONGEST - 1], f"… and {len(lines) - LONGEST + 1} more lines"]
