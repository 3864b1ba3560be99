"""The reference of the command line, from the commands themselves."""

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from propreg.cli.app import app as cli
from propreg.cli.guard import EPILOG


def reference() -> str:
    """Markdown of all commands."""
    top = get_command(cli)
    parts = [_section("propreg", top, top.make_context("propreg", [], resilient_parsing=True), 2)]
    for name, command in walk(top, ""):
        context = command.make_context(f"propreg {name}", [], resilient_parsing=True)
        parts.append(_section(f"propreg {name}", command, context, 2))
    return "\n\n".join(parts)


def walk(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    """Every command that runs, with its full name."""
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
            lines += [f"| {title} | meaning |", "| --- | --- |"]
            lines += [f"| {_flags(record[0])} | {_plain(record[1])}{_choices(record[0])} |" for record in mine]
            lines.append("")
    return "\n".join(lines)


def exit_codes() -> str:
    """Markdown of the exit codes, from the epilog of ``propreg --help``."""
    words = " ".join(EPILOG.partition("Exit codes: ")[2].split()).removesuffix(".")
    rows = [part.partition(" ") for part in re.split(r"; (?=\d)", words)]
    return "\n".join(["| code | meaning |", "| --- | --- |", *(f"| {code} | {what} |" for code, _, what in rows)])


def _flags(text: str) -> str:
    """``-m, --model <gcn|gat>`` without its values, each name as code."""
    return ", ".join(f"`{flag}`" for flag in re.split(r", | / ", text.partition(" <")[0]))


def _choices(text: str) -> str:
    """The values of an option that has a few."""
    values = text.partition(" <")[2].removesuffix(">").split("|")
    return "" if len(values) < 2 else " One of " + ", ".join(f"`{value}`" for value in values) + "."


def _plain(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<", "`", "[", "{"):
        text = text.replace(sign, "\\" + sign)
    return _as_code(text)


def _as_code(text: str) -> str:
    """Options in running text as code: two hyphens would turn into a dash."""
    return re.sub(r"(?<!\S)--[a-z][a-z-]*", lambda option: f"`{option[0]}`", text)
