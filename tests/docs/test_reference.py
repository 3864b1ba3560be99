"""The pages to look things up in: nothing public is missing, and what they name exists."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import propreg
import propreg.engine
from building.commands import exit_codes, reference, walk
from building.reference import directive, entry, summary
from propreg.cli import guard
from propreg.cli.app import app

ROOT = Path(__file__).parents[2]


def test_every_public_name_is_in_the_reference(texts: dict[str, str]) -> None:
    found = set(re.findall(r"^<!-- begin: api (\S+)", texts["api.md"], re.M))
    public = {f"propreg.{name}" for name in propreg.__all__ if name != "__version__"}
    public |= {f"propreg.engine.{name}" for name in propreg.engine.__all__}
    assert public <= found
    assert "__version__" in texts["api.md"]


def test_every_option_that_help_knows_is_on_the_commands_page() -> None:
    sections = dict(zip(*[iter(re.split(r"^## `propreg ?(.*)`$", reference(), flags=re.M)[1:])] * 2, strict=True))
    names = [name for name, _ in walk(get_command(app), "")]
    assert {"run", "doctor", "reproduce", "table", "figure", "report", "store export", "data fetch"} <= set(names)
    assert set(sections) == {"", *names}
    for name in names:
        shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
        options = set(re.findall(r"(?<!\S)--[a-z][a-z-]+", shown)) - {"--help"}
        assert options, name
        for option in options:
            assert option in sections[name], f"{name} {option}"


def test_options_are_code_wherever_they_stand() -> None:
    """In running text two hyphens become a dash, which nobody can copy."""
    outside = re.sub(r"```.*?```|`[^`]*`", "", reference(), flags=re.S)
    assert re.findall(r"--[a-z][a-z-]*", outside) == []
    assert "with `--runs`" in reference()
    assert "| `-o`, `--output` |" in reference()


def test_an_entry_is_a_signature_a_sentence_and_its_members() -> None:
    text = entry("api propreg.PReg preset forward")
    assert text.startswith("```py\npropreg.PReg(\n    phi='cross_entropy', norm='rw', add_self_loops=False, *,")
    assert "\n- `.preset(name, **changes)`: " in text
    assert "propreg.FitResult(" not in entry("api propreg.FitResult plain")
    assert directive("api propreg.FitResult plain at").splitlines()[1:-1] == [
        ".. autoclass:: propreg.FitResult",
        "   :members: plain, at",
        "   :exclude-members: __init__, __new__",
    ]
    assert ".. autoexception:: propreg.DataError" in directive("api propreg.DataError")
    assert ":no-members:" in directive("api propreg.data.own.npz")


def test_docstrings_become_markdown() -> None:
    def thing() -> None:
        """The ``x`` of `a page <https://example.org>`_, see :func:`~propreg.preg`, with :math:`a_b`,

        .. math::

            a + b

        in words.
        """

    assert summary(thing) == (
        "The `x` of [a page](https://example.org), see `propreg.preg`, with $a_b$,\n\n$$\na + b\n$$"
    )


def test_exit_codes_are_those_of_the_program() -> None:
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", exit_codes(), re.M)]
    assert codes == [0, guard.FAILED, 2, guard.MISSING, guard.INTERRUPTED, guard.UNREAD]


def test_every_test_that_the_theory_names_exists(texts: dict[str, str]) -> None:
    named = re.findall(r"`(theory/\w+\.py)::(\w+)`", texts["theory.md"])
    assert len(named) >= 10
    for file, name in named:
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"


def test_the_citation_is_that_of_the_citation_file(texts: dict[str, str]) -> None:
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8").partition("preferred-citation:")[2]
    bib = dict(re.findall(r"^  (\w+)\s+= \{(.*)\}", texts["cite.md"], re.M))
    assert f'title: "{bib["title"]}"' in cff
    assert f'collection-title: "{bib["booktitle"]}"' in cff
    assert f"year: {bib['year']}" in cff
    names = zip(re.findall(r"family-names: (\w+)", cff), re.findall(r"given-names: (\w+)", cff), strict=True)
    assert bib["author"] == " and ".join(f"{family}, {given}" for family, given in names)


@pytest.mark.parametrize("page", ["choosing-mu.md", "tutorial.md"])
def test_the_grid_of_auto_is_the_one_described(page: str, texts: dict[str, str]) -> None:
    from propreg.engine.regularizers import REGULARIZERS

    grid = REGULARIZERS["preg"].grid
    if page == "choosing-mu.md":
        assert grid[:3] == (0.05, 0.1, 0.2)
        assert grid[-1] == 1.0
        assert "tries 0.05, 0.1, 0.2, … 1" in texts[page]
    else:
        assert len(grid) == 11
        assert "eleven strengths" in texts[page]
