"""Every code block of every page: run from top to bottom in an empty folder, as a reader would."""

import re
from pathlib import Path

import pytest

from building.blocks import BEGIN, END, LONGEST, find_blocks, outputs, with_outputs
from building.following import FROM_CLONE, follow

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page.name for page in sorted(DOCS.glob("*.md")) if any(not b.reason for b in find_blocks(page.read_text()))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed_and_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    """Up to the digits: rounding, and with it an accuracy, differs between machines."""
    text = (DOCS / page).read_text(encoding="utf-8")
    printed = with_outputs(text, follow(DOCS / page, tmp_path, DOCS.parent / "results"))
    assert [without_digits(each) for each in outputs(printed)] == [without_digits(each) for each in outputs(text)]


def without_digits(text: str) -> str:
    """What an output says apart from its numbers, their signs and the space around them."""
    return re.sub(r"[-+]?\d[\d.,]*|[\s\[\]]+|nan", " ", text).strip()


def test_there_are_pages_to_follow() -> None:
    teaching = {
        "index.md",
        "tutorial.md",
        "choosing-mu.md",
        "paper-or-reference.md",
        "theory.md",
        "engine.md",
        "study.md",
    }
    assert teaching <= set(PAGES)


def page_of(folder: Path, text: str) -> tuple[Path, Path]:
    page, empty = folder / "page.md", folder / "empty"
    page.write_text(text)
    empty.mkdir()
    return page, empty


def test_blocks_share_a_namespace_a_folder_and_their_files(tmp_path: Path) -> None:
    text = """\
`sub/a.txt`:

```text
hello
```

```python
from pathlib import Path
x = Path("sub/a.txt").read_text()
```

```python
print(x + x, end="")
```
"""
    printed = follow(*page_of(tmp_path, text), tmp_path)
    assert [said for block, said in printed.items() if block.language == "python"] == ["", "hello\nhello\n"]
    assert Path.cwd() != tmp_path / "empty"


def test_what_a_python_block_raises_names_the_line_of_the_page(tmp_path: Path) -> None:
    page, empty = page_of(tmp_path, "Words.\n\n```python\nx = 1\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        follow(page, empty, tmp_path)
    assert caught.traceback[-1].lineno + 1 == 5
    assert caught.traceback[-1].path == page.name or str(caught.traceback[-1].path).endswith(page.name)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("propreg table nonesuch", "nonesuch"),
        ("propreg data list --nonesuch", "nonesuch"),
        ("ls", "only propreg commands are run"),
    ],
)
def test_a_command_that_fails_fails_the_page(command: str, said: str, tmp_path: Path) -> None:
    page, empty = page_of(tmp_path, f"```sh\n{command}\n```\n")
    with pytest.raises(RuntimeError, match=said):
        follow(page, empty, tmp_path)


def test_only_a_page_read_in_a_clone_has_results(tmp_path: Path) -> None:
    look = '```python\nimport os\nprint(os.path.exists("results"))\n```\n'
    (tmp_path / "results").mkdir()
    for number, (front, there) in enumerate(((f"{FROM_CLONE}\n\n", "True\n"), ("", "False\n"))):
        (tmp_path / str(number)).mkdir()
        page, empty = page_of(tmp_path / str(number), front + look)
        assert list(follow(page, empty, tmp_path / "results").values()) == [there]


def test_what_a_block_prints_stands_below_it(tmp_path: Path) -> None:
    text = (
        '```python\nprint("one")\n```\n\nBetween.\n\n```python\nprint("two")\n```\n<!-- no output -->\n\n'
        "```python\nprint(*range(99), sep='\\n')\n```\n"
    )
    page, empty = page_of(tmp_path, text)
    written = with_outputs(text, follow(page, empty, tmp_path))
    lines = written.splitlines()
    first = lines.index("one")
    assert lines[first - 3 : first + 3] == ["```", BEGIN, "```text", "one", "```", END]
    assert first < lines.index("Between.")
    assert "two" not in lines
    assert f"… and {99 - LONGEST + 1} more lines" in lines
    assert lines.count(END) == 2
    assert outputs(written)[0] == "one"
    page.write_text(written)
    assert with_outputs(written, follow(page, empty, tmp_path)) == written, "what was there is replaced"
