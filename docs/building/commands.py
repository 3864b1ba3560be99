"""The reference of the command line, from the commands themselves: ``{commands}`` in a page."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from propreg.cli.app import app as cli
from propreg.cli.guard import EPILOG

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: "Sphinx") -> dict[str, bool]:
    """Name the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("exit-codes", ExitCodes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(SphinxDirective):
    """A section for each command, with its arguments and options."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(reference(), allow_section_headings=True)


class ExitCodes(SphinxDirective):
    """What ``propreg --help`` says of them, as a table."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(exit_codes())


def reference() -> str:
    """Markdown of all commands."""
    top = get_command(cli)
    parts = [_section("propreg", top, top.make_context("propreg", [], resilient_parsing=True), 2)]
    for name, command in walk(top, ""):
        context = command.make_context(f"propreg {name}", [], resilient_parsing=True)
        parts.append(_section(f"propreg {name}", command, context, 2))
    return "\n\n".join(parts)


def walk(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its name."""
    for name, command in group.commands.items():
        full = f"{before} {name}".strip()
        if hasattr(command, "commands"):
            yield from walk(command, full)
        else:
            yield full, command


def _section(name: str, command: Any, context: Any, level: int) -> str:
    lines = [f"{'#' * level} `{name}`", "", _as_code(command.help.strip()), ""]
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines += ["```text", " ".join(usage.split()), "```", ""]
    records = [(p.get_help_record(context), p.param_type_name) for p in command.params]
    known = [(found, kind) for found, kind in records if found is not None]
    for title, kind in (("argument", "argument"), ("option", "option")):
        mine = [record for record, of in known if of == kind]
        if mine:
            lines += [f"| {title} | what it is |", "| --- | --- |"]
            lines += [f"| {_flags(record[0])} | {_plain(record[1])}{_choices(record[0])} |" for record in mine]
            lines.append("")
    return "\n".join(lines)


def exit_codes() -> str:
    """Markdown of the exit codes, taken apart from the words of the help."""
    words = " ".join(EPILOG.partition("Exit codes: ")[2].split()).removesuffix(".")
    rows = [part.strip().partition(" ") for part in words.split(";")]
    return "\n".join(["| code | meaning |", "| --- | --- |", *(f"| {code} | {what} |" for code, _, what in rows)])


def _flags(text: str) -> str:
    """``-m, --model <gcn|gat>`` without what it may be, each name by itself."""
    return ", ".join(f"`{flag}`" for flag in re.split(r", | / ", text.partition(" <")[0]))


def _choices(text: str) -> str:
    """The values that an option may have, where it has a few."""
    values = text.partition(" <")[2].removesuffix(">").split("|")
    return "" if len(values) < 2 else " One of " + ", ".join(f"`{value}`" for value in values) + "."


def _plain(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<", "`", "[", "{"):
        text = text.replace(sign, "\\" + sign)
    return _as_code(text)


def _as_code(text: str) -> str:
    """Options in running text as code: two hyphens would become a dash."""
    return re.sub(r"(?<!\S)--[a-z][a-z-]*", lambda option: f"`{option[0]}`", text)
