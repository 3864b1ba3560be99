"""``propreg data list|info|verify``."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from data.raw_files import entry_of, sample_graph
from propreg.cli.app import app
from propreg.data.benchmarks import catalog
from propreg.data.benchmarks.cache import write_nodes
from propreg.data.benchmarks.catalog import Part


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["data", *arguments])


@pytest.fixture
def cora(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    nowhere.mkdir(parents=True)
    graph = sample_graph()
    monkeypatch.setitem(catalog.NODE_SETS, "cora", entry_of(graph, "planetoid"))
    write_nodes(nowhere / "cora.npz", graph)
    return nowhere / "cora.npz"


@pytest.mark.usefixtures("cora")
def test_list() -> None:
    rows = json.loads(command("list", "--json").stdout)
    assert [row["name"] for row in rows] == catalog.names()
    where = {row["name"]: row["on_disk"] for row in rows}
    assert where["digits"] == "scikit-learn"
    assert where["cora"].endswith("cora.npz")
    assert where["ogbg-molhiv"] is None
    text = command("list").stdout.splitlines()
    assert len(text) == 22
    assert text[0].split()[:3] == ["name", "graphs", "nodes"]


@pytest.mark.parametrize("name", [*catalog.NODE_SETS, *catalog.MOLECULE_SETS])
def test_info(name: str) -> None:
    facts = json.loads(command("info", name, "--json").stdout)
    assert facts["name"] == name
    assert facts["parts"]["labels"]["accepted"]
    assert all(url.startswith("https://") for url in facts["raw"] + facts["raw_splits"])
    text = command("info", name).stdout
    assert f"nodes          {facts['nodes']}" in text
    assert facts["parts"]["labels"]["accepted"][0] in text


@pytest.mark.usefixtures("nowhere")
def test_verify_without_names_describes_what_is_there() -> None:
    result = command("verify", "--json")
    assert result.exit_code == 0
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["cora"] == {"name": "cora", "error": "not on disk"}
    assert rows["digits"]["edges"] == 6309
    assert set(rows["digits"]["status"].values()) == {"enforced"}
    text = command("verify").stdout
    assert "content digests" in text
    assert rows["digits"]["digests"]["edges"] in text


@pytest.mark.usefixtures("nowhere")
def test_verify_of_what_is_not_there() -> None:
    result = command("verify", "cora")
    assert result.exit_code == 1
    assert result.stderr == "cora is not on disk: run propreg data fetch cora.\n"


@pytest.mark.parametrize("name", ["info", "fetch", "verify"])
def test_unknown_datasets(name: str) -> None:
    result = command(name, "corra")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("There is no dataset 'corra'. Did you mean 'cora'?")
    assert result.stderr.count("\n") == 1


def test_verify_refuses_damage_and_goes_on(cora: Path) -> None:
    data = bytearray(cora.read_bytes())
    data[len(data) // 2] ^= 1
    cora.write_bytes(data)
    result = command("verify", "cora", "digits", "--json")
    assert result.exit_code == 1
    assert "cora.npz" in result.stderr
    assert result.stderr.count("\n") == 1
    assert [row.get("nodes") for row in json.loads(result.stdout)] == [None, 1797]


@pytest.mark.parametrize("published", [True, False])
def test_verify_refuses_other_versions(cora: Path, monkeypatch: pytest.MonkeyPatch, published: bool) -> None:
    entry = catalog.NODE_SETS["cora"]
    parts = {**entry.parts, "edges": Part(("0" * 64,), published)}
    monkeypatch.setitem(catalog.NODE_SETS, "cora", replace(entry, parts=parts))
    result = command("verify", "cora")
    assert result.exit_code == 1
    assert "refused" in result.stdout
    assert result.stderr.startswith(f"{cora}: the edges are not those of cora")
    assert result.stderr.count("\n") == 1


def test_info_says_which_files_have_no_known_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = catalog.NODE_SETS["cora"].raw
    raw = (replace(first, sha256="ab" * 32), *(replace(file, sha256=None) for file in others))
    monkeypatch.setitem(catalog.NODE_SETS, "cora", replace(catalog.NODE_SETS["cora"], raw=raw))
    lines = command("info", "cora").stdout.splitlines()
    assert f"source         {first.url}, SHA-256 {'ab' * 32}" in lines
    assert f"source         {others[0].url}, SHA-256 not known: its content is compared" in lines


def test_verify_prints_what_was_asked_for(cora: Path) -> None:
    assert cora.exists()
    row = json.loads(command("verify", "cora", "--json").stdout)[0]
    graph = sample_graph()
    degree = np.bincount(graph.edge_index[0], minlength=640)
    assert row["nodes"] == 640
    assert row["edges"] == graph.edge_index.shape[1] // 2
    assert row["isolated"] == (degree == 0).sum()
    assert 0 < row["homophily"] < 1
    assert row["components"] >= 1
    assert set(row["digests"]) == {"edges", "features", "labels", "authors_labels", "public_split"}


@pytest.mark.parametrize("name", [*catalog.NODE_SETS, *catalog.MOLECULE_SETS])
def test_every_part_is_in_the_catalog(name: str) -> None:
    entry = catalog.find(name)
    expected = {"edges", "features", "labels", "official_splits"}
    if isinstance(entry, catalog.MoleculeSet):
        expected = {"smiles", "labels", "splits", "bonds", "atom_features", "bond_features"}
    elif entry.public_split:
        expected |= {"public_split", "authors_labels"}
    assert set(entry.parts) == expected


def test_help_does_not_load_numpy() -> None:
    code = "import sys, propreg.cli.app; print([m for m in ('numpy', 'torch', 'rich.progress') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
