"""What a package index shows, and what an installation without the checkout finds."""

import re
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli import shared
from propreg.cli.app import app

ROOT = Path(__file__).parent.parent


def test_every_link_of_the_readme_is_an_address_on_a_package_index() -> None:
    text = metadata.metadata("propreg").json["description"]
    targets = re.findall(r"\]\(([^)\s]+)\)", str(text))
    assert len(targets) > 5
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_the_host_of_the_repository_is_named_once() -> None:
    host = metadata.metadata("propreg")["Project-URL"].split("//")[1].split("/")[0]
    files = [
        *(file for file in ROOT.glob("*.*") if file.is_file()),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
    ]
    assert [file.name for file in files if host in file.read_text(encoding="utf-8")] == ["pyproject.toml"]


def test_extras_named_in_messages_and_pages_exist() -> None:
    known = set(metadata.metadata("propreg").get_all("Provides-Extra") or [])
    files = [ROOT / "README.md", *(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    named = [
        extra
        for file in files
        for extras in re.findall(r"pip install (?:--upgrade )?'(?:propreg|\.)\[([a-z,]+)\]'", file.read_text("utf-8"))
        for extra in extras.split(",")
    ]
    assert named
    assert set(named) <= known


def test_the_study_is_readable_after_pip_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from a checkout the commands read the record that came with the package."""
    monkeypatch.chdir(tmp_path)
    without = CliRunner().invoke(app, ["table", "figure-mask"])
    record = tmp_path / "package" / "record"
    record.mkdir(parents=True)
    for file in ("runs.jsonl.gz", "runs.provenance.json"):
        (record / file).symlink_to(ROOT / "results" / file)
    monkeypatch.setattr(shared, "PACKAGED", record)
    done = CliRunner().invoke(app, ["table", "table1", "--only", "dataset=cora,model=gcn,method=plain"])
    assert without.exit_code == 1
    assert done.exit_code == 0, done.output
    assert "79.9" in done.output
