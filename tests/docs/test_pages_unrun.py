"""What is not run is still checked: blocks with a reason not to, and commands that stand in the text."""

import ast
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from building.blocks import Block, find_blocks
from building.commands import walk
from propreg.cli.app import app

ROOT = Path(__file__).parents[2]
WIDEST = 88  # columns of a block that the page shows without scrolling
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
BLOCKS = [pytest.param(b, id=f"{name}:{b.first}") for name, text in TEXTS.items() for b in find_blocks(text)]
SPANS = sorted({span for text in TEXTS.values() for span in re.findall(r"`(propreg [a-z][^`]*)`", text)})


def parse(arguments: list[str]) -> str:
    """Parse a command line without running it; returns the command's name."""
    top = get_command(app)
    context: Any = top.make_context("propreg", list(arguments))
    name, command, rest = top.resolve_command(context, [*context._protected_args, *context.args])  # type: ignore[attr-defined]
    if hasattr(command, "commands"):
        inner = command.make_context(name, rest, parent=context)
        name, command, rest = command.resolve_command(inner, [*inner._protected_args, *inner.args])
    command.make_context(name, rest, parent=context)
    return str(name)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.values[0].language == "sh"])  # type: ignore[union-attr]
def test_commands_and_their_options_exist(block: Block) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for line in block.commands:
        program, *arguments = shlex.split(line)
        if program == "propreg" and arguments[0].startswith("--"):
            assert arguments[0] in top_options(), line
        elif program == "propreg":
            parse(arguments)
        elif program == "make":
            assert set(arguments) <= targets, line
        else:
            assert block.reason, f"{line!r} is not run and must say why"


def top_options() -> set[str]:
    return {option for parameter in get_command(app).params for option in parameter.opts}


def test_parse_refuses_what_does_not_exist() -> None:
    assert parse(["store", "check"]) == "check"
    for wrong in (["table", "table1", "--nonesuch"], ["nonesuch"], ["store", "nonesuch"], ["run", "--model", "cnn"]):
        with pytest.raises(Exception, match=r"(?i)no such|not one of|must be one of|invalid"):
            parse(wrong)


@pytest.mark.parametrize("span", SPANS)
def test_commands_in_the_text_exist(span: str) -> None:
    """In running text an argument may be left out or be a word like KEY, but command and options are real."""
    commands = dict(walk(get_command(app), ""))
    words = span.removeprefix("propreg ").split()
    name = max((known for known in commands if words[: len(known.split())] == known.split()), key=len, default=None)
    assert name is not None or words[0] == "COMMAND", f"there is no {span!r}"
    if name is not None:
        known = {flag for parameter in commands[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_are_narrow(block: Block) -> None:
    assert max(map(len, block.code.splitlines())) <= WIDEST


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.values[0].reason])  # type: ignore[union-attr]
def test_a_reason_is_a_sentence_for_the_reader(block: Block) -> None:
    assert len(block.reason.split()) >= 4
    if block.language == "python":
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "propreg":
                assert hasattr(importlib.import_module("propreg"), node.attr)
