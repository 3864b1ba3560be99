"""``propreg data convert``."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from propreg.cli.app import app
from propreg.data.own.load import read_graph


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["data", "convert", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.mkdir()
    (path / "nodes.csv").write_text("id,label,split,f\na,x,train,1\nb,y,test,0\nc,,,2\n")
    (path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    return path


def test_a_folder_becomes_a_file(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path / "mine.npz")
    assert result.exit_code == 0, result.output
    assert "3 nodes, 4 directed edges, 1 features, 2 classes; 1 train, 0 val, 1 test" in result.output
    found, expected = read_graph(tmp_path / "mine.npz"), read_graph(folder)
    assert found.digests == expected.digests
    assert found.node_ids == expected.node_ids
    first = (tmp_path / "mine.npz").read_bytes()
    assert run(tmp_path / "mine.npz", tmp_path / "mine.npz").exit_code == 0
    assert (tmp_path / "mine.npz").read_bytes() == first


def test_json_for_scripts(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path / "mine.npz", "--directed", "--json")
    facts = json.loads(result.stdout)
    assert facts["directed_edges"] == 2
    assert facts["split"] == {"train": 1, "val": 0, "test": 1}
    assert facts["unlabeled"] == 1
    assert facts["digests"] == read_graph(tmp_path / "mine.npz").digests


def test_mistakes_are_one_sentence_and_leave_nothing(folder: Path, tmp_path: Path) -> None:
    for target, says in [
        (tmp_path / "mine.csv", "does not end in .npz"),
        (tmp_path / "absent" / "mine.npz", "cannot be written"),
    ]:
        result = run(folder, target)
        assert result.exit_code == 1
        assert says in result.stderr
    (folder / "edges.csv").write_text("source,target\na,z\n")
    (tmp_path / "mine.npz").write_bytes(b"what was there")
    result = run(folder, tmp_path / "mine.npz")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "edges.csv, line 2: target 'z' is not an id" in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "mine.npz").read_bytes() == b"what was there"
    assert sorted(os.listdir(tmp_path)) == ["mine", "mine.npz"]


def test_features_beside_the_nodes_come_along(folder: Path, tmp_path: Path) -> None:
    (folder / "nodes.csv").write_text("id,label\na,x\nb,y\nc,\n")
    np.save(folder / "features.npy", np.arange(6).reshape(3, 2))
    result = run(folder, tmp_path / "mine.npz")
    assert "2 features, 2 classes; no split" in result.stdout


def test_a_name_without_an_ending_is_a_folder_to_create(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path / "stored")
    assert result.exit_code == 0, result.output
    assert "3 nodes, 4 directed edges, 1 features, 2 classes; 1 train, 0 val, 1 test" in result.output
    found, expected = read_graph(tmp_path / "stored"), read_graph(folder)
    assert found.digests == expected.digests
    assert found.node_ids == expected.node_ids
    again = run(folder, tmp_path / "stored")
    assert again.exit_code == 1
    assert again.stderr == f"{tmp_path / 'stored'}: already exists: choose another name, or remove it first.\n"
    assert run(tmp_path / "stored", tmp_path / "back.npz").exit_code == 0
    assert read_graph(tmp_path / "back.npz").digests == expected.digests
