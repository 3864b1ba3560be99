"""OGB's zip archives of gzipped tables."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.raw_files import ogb_tables, sample_molecules, write_ogb
from propreg.data.benchmarks.molecules import digest_molecules
from propreg.data.benchmarks.ogb import read_ogb
from propreg.data.errors import DataError


@pytest.mark.parametrize("tasks", [1, 3])
def test_round_trip(tmp_path: Path, tasks: int) -> None:
    data = sample_molecules(tasks=tasks)
    write_ogb(tmp_path / "esol.zip", ogb_tables(data))
    read = read_ogb(tmp_path / "esol.zip", data.name)
    assert digest_molecules(read) == digest_molecules(data)
    assert read.smiles == data.smiles
    assert read.task_names == data.task_names
    assert np.isnan(read.y).sum() == np.isnan(data.y).sum() > 0


def test_bonds_are_followed_by_their_inverse(tmp_path: Path) -> None:
    data = sample_molecules()
    write_ogb(tmp_path / "esol.zip", ogb_tables(data))
    edges, features = read_ogb(tmp_path / "esol.zip", data.name).edges(0)
    assert edges[:, :2].tolist() == [[0, 1], [1, 0]]
    assert features[0].tolist() == features[1].tolist()


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("raw/edge", lambda t: t.replace("0,1", "0,99", 1), "an atom that its molecule does not have"),
        ("raw/edge", lambda t: t.replace("0,1", "0,1,2", 1), "numbers in|does not have"),
        ("raw/edge", lambda t: t.replace("0,1\n1,2\n", "0,1,1\n2\n", 1), "does not have 2 numbers"),
        ("raw/edge", lambda t: t.replace("0,1", "0,-1", 1), "does not hold integers only"),
        ("raw/edge", lambda t: t.replace("0,1", "0,1e9", 1), "does not hold integers only"),
        ("raw/num-node-list", lambda t: "9" * 18 + "\n" + t.split("\n", 1)[1], "atoms, but"),
        ("raw/num-node-list", lambda t: "9" * 30 + "\n" + t.split("\n", 1)[1], "damaged"),
        ("raw/num-node-list", lambda _: "", "do not fit"),
        ("raw/graph-label", lambda t: "x" + t, "damaged"),
        ("raw/graph-label", lambda t: "1e400,1,1\n" + t.split("\n", 1)[1], "infinite"),
        ("raw/graph-label", lambda t: "1,1\n" + t, "same number of labels"),
        ("raw/graph-label", lambda _: "", "same number of labels"),
        ("mapping/mol", lambda t: t.replace("smiles", "smile"), "no column 'smiles'"),
        ("mapping/mol", lambda t: t + "a,b\n", "different length"),
        ("mapping/mol", lambda t: t.replace("id1", '"id1'), "damaged|different length"),
        ("mapping/mol", lambda t: t.replace("CC", "Cé"), "damaged"),
        ("split/scaffold/train", lambda t: t + "0\n", "exactly once"),
        ("split/scaffold/train", lambda t: t + "999\n", "exactly once"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, table: str, change: Any, message: str) -> None:
    tables = ogb_tables(sample_molecules())
    tables[table] = change(tables[table])
    write_ogb(tmp_path / "esol.zip", tables)
    with pytest.raises(DataError, match=message):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol")


@pytest.mark.parametrize("name", ["../../evil.txt", "/etc/evil", "esol/../../evil", "..\\evil", "C:evil"])
def test_a_member_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    write_ogb(tmp_path / "esol.zip", ogb_tables(sample_molecules()), extra={name: b"x"})
    with pytest.raises(DataError, match="points outside the archive"):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol")
    assert [path.name for path in tmp_path.iterdir()] == ["esol.zip"]


@pytest.mark.parametrize("layer", ["zip", "gzip"])
def test_a_bomb_is_refused(tmp_path: Path, layer: str) -> None:
    tables = ogb_tables(sample_molecules())
    del tables["raw/edge"]
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb") as packed:
        for _ in range(40):
            packed.write(b"0" * (1 << 18))
    bomb = buffer.getvalue() if layer == "gzip" else bytes(10 << 20)
    write_ogb(tmp_path / "esol.zip", tables, extra={"esol/raw/edge.csv.gz": bomb})
    assert (tmp_path / "esol.zip").stat().st_size < 100_000
    with pytest.raises(DataError, match="as a zip bomb does"):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol", max_bytes=1 << 20)


def test_a_missing_or_doubled_table_is_refused(tmp_path: Path) -> None:
    tables = ogb_tables(sample_molecules())
    write_ogb(tmp_path / "esol.zip", tables, extra={"other/raw/edge.csv.gz": b""})
    with pytest.raises(DataError, match="2 members end in 'raw/edge"):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol")
    del tables["raw/edge"]
    write_ogb(tmp_path / "esol.zip", tables)
    with pytest.raises(DataError, match="0 members end in 'raw/edge"):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol")


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "esol.zip").write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match="not a whole zip archive"):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol")
    with zipfile.ZipFile(tmp_path / "esol.zip", "w") as archive:
        for i in range(10_001):
            archive.writestr(str(i), b"")
    with pytest.raises(DataError, match="10001 members"):
        read_ogb(tmp_path / "esol.zip", "ogbg-molesol")
