"""From a publisher's server to the loaded dataset, through the command line; and every way in which that fails."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import propreg
from data.raw_files import (
    HOSTILE_PICKLE,
    entry_of,
    molecule_entry,
    ogb_tables,
    sample_graph,
    sample_molecules,
    write_benchmark,
    write_mask,
    write_ogb,
    write_planetoid,
)
from data.server import Reply, Site, serve
from propreg.cli.app import app
from propreg.data.benchmarks import catalog
from propreg.data.benchmarks import download as fetch
from propreg.data.benchmarks.catalog import RawFile
from propreg.data.benchmarks.download import download
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.graph import SparseFeatures
from propreg.data.splits import random_split

Publisher = Callable[[str, Path], None]


@pytest.fixture
def publish(site: Site, nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    """Put small datasets of every kind on the server, and addresses on it into the catalog."""
    graph, molecules = sample_graph(gaps=2), sample_molecules()
    photo = replace(sample_graph(1), name="photo", split=None)
    splits = [random_split(graph.y, 5, 5, seed) for seed in range(10)]
    folder = tmp_path / "publisher"
    write_planetoid(folder, graph)
    write_benchmark(folder / "photo.npz", photo)
    write_ogb(folder / "esol.zip", ogb_tables(molecules))
    for i, split in enumerate(splits):
        write_mask(folder / f"cora_{i}.mask", split)
        write_mask(folder / f"photo_{i}.mask", split)
    assert not nowhere.exists()

    def raws(*patterns: str) -> tuple[RawFile, ...]:
        files = sorted(path.name for pattern in patterns for path in folder.glob(pattern))
        return tuple(RawFile(name, f"{site.url}/{name}", 1 << 20) for name in files if not name.endswith("cora.x"))

    cora = entry_of(graph, "planetoid", splits=splits, raw=raws("ind.*"), raw_splits=raws("cora_*"))
    amazon = entry_of(photo, "gnn-benchmark", splits=splits, raw=raws("photo.npz"), raw_splits=raws("photo_*"))
    monkeypatch.setitem(catalog.NODE_SETS, "cora", cora)
    monkeypatch.setitem(catalog.NODE_SETS, "photo", amazon)
    entry = molecule_entry(molecules, raw=raws("esol.zip"))
    monkeypatch.setitem(catalog.MOLECULE_SETS, "ogbg-molesol", entry)
    for path in folder.iterdir():
        site.replies[f"/{path.name}"] = Reply(path.read_bytes())

    def change(name: str, path: Path) -> None:
        site.replies[f"/{name}"] = Reply(path.read_bytes())

    return change


def propreg_command(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) if folder.exists() else []


@pytest.mark.usefixtures("publish")
def test_fetching_each_kind(nowhere: Path) -> None:
    result = propreg_command("data", "fetch", "cora", "photo", "molesol", "digits", "--json")
    assert result.exit_code == 0, result.stderr
    assert [row["name"] for row in json.loads(result.stdout)] == ["cora", "photo", "ogbg-molesol", "digits"]
    expected = ["cora.npz", "cora_splits.npz", "ogbg_molesol.npz", "photo.npz", "photo_splits.npz"]
    assert files(nowhere) == expected
    honest = sample_graph(gaps=2)
    data = propreg.load_dataset("cora")
    assert isinstance(honest.x, SparseFeatures)
    assert torch.equal(data.x, torch.from_numpy(honest.x.to_dense()))
    assert len(propreg.load_dataset("molesol")) == 12
    assert load_node_graph("photo", split=3).split is not None


@pytest.mark.usefixtures("publish")
def test_loading_downloads_once(site: Site, tmp_path: Path) -> None:
    propreg.load_dataset("cora", root=tmp_path / "root")
    assert files(tmp_path / "root") == ["cora.npz"]
    seen = len(site.seen)
    propreg.load_dataset("cora", root=tmp_path / "root")
    assert len(site.seen) == seen == 7


@pytest.mark.usefixtures("publish")
def test_files_of_an_interrupted_call_are_used(site: Site, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(raw: RawFile, target: Path, **options: Any) -> None:
        if raw.name.endswith("graph"):
            raise KeyboardInterrupt
        download(raw, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "download", interrupted)
        with pytest.raises(KeyboardInterrupt):
            propreg.load_dataset("cora")
    before = len(site.seen)
    assert "cora.npz" not in files(nowhere)
    propreg.load_dataset("cora")
    assert len(site.seen) - before == 7 - before
    assert files(nowhere) == ["cora.npz"]


@pytest.mark.usefixtures("publish")
def test_a_file_that_was_there_is_compared_before_it_is_read(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = catalog.NODE_SETS["photo"]
    known = replace(entry, raw=(replace(entry.raw[0], sha256="0" * 64),))
    monkeypatch.setitem(catalog.NODE_SETS, "photo", known)
    (nowhere / "photo-raw").mkdir(parents=True)
    (nowhere / "photo-raw" / "photo.npz").write_bytes(b"not read")
    one_sentence(propreg_command("data", "fetch", "photo"), "photo.npz: has SHA-256 ")
    assert (nowhere / "photo-raw" / "photo.npz").read_bytes() == b"not read", "a user's file stays"


def bad_planetoid(folder: Path) -> Path:
    (folder / "bad").write_bytes(HOSTILE_PICKLE)
    return folder / "bad"


def bad_benchmark(folder: Path) -> Path:
    graph = replace(sample_graph(1), name="photo")
    assert isinstance(graph.x, SparseFeatures)
    indices = graph.x.indices.copy()
    indices[7] = 4000
    write_benchmark(folder / "bad.npz", replace(graph, x=replace(graph.x, indices=indices)))
    return folder / "bad.npz"


def other_benchmark(folder: Path) -> Path:
    write_benchmark(folder / "bad.npz", replace(sample_graph(2), name="photo"))
    return folder / "bad.npz"


def bomb(folder: Path) -> Path:
    tables = ogb_tables(sample_molecules())
    tables["raw/edge"] = "0,1\n" * (20 << 20)
    write_ogb(folder / "bad.zip", tables)
    return folder / "bad.zip"


def outside(folder: Path) -> Path:
    write_ogb(folder / "bad.zip", ogb_tables(sample_molecules()), extra={"../../evil": b"x"})
    return folder / "bad.zip"


def truncated(folder: Path) -> Path:
    write_ogb(folder / "bad.zip", ogb_tables(sample_molecules()))
    (folder / "bad.zip").write_bytes((folder / "bad.zip").read_bytes()[:-200])
    return folder / "bad.zip"


def web_page(folder: Path) -> Path:
    (folder / "bad").write_bytes(b"<html><body>Sign in to this network</body></html>")
    return folder / "bad"


@pytest.mark.parametrize(
    ("dataset", "file", "make", "message"),
    [
        ("cora", "ind.cora.allx", bad_planetoid, "names os.system"),
        ("cora", "ind.cora.graph", web_page, "its pickle is damaged"),
        ("cora", "cora_3.mask", bad_planetoid, "names os.system"),
        ("cora", "cora_3.mask", web_page, "its pickle is damaged"),
        ("photo", "photo.npz", bad_benchmark, "column 4000 is out of range"),
        ("photo", "photo.npz", other_benchmark, "got"),
        ("photo", "photo.npz", web_page, "not a whole npz archive"),
        ("molesol", "esol.zip", bomb, "as a zip bomb does"),
        ("molesol", "esol.zip", outside, "points outside the archive"),
        ("molesol", "esol.zip", truncated, "not a whole zip archive"),
        ("molesol", "esol.zip", web_page, "not a whole zip archive"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(
    publish: Publisher, nowhere: Path, tmp_path: Path, dataset: str, file: str, make: Any, message: str
) -> None:
    publish(file, make(tmp_path))
    result = propreg_command("data", "fetch", dataset)
    one_sentence(result, message)
    assert [name for name in files(nowhere) if name != "cora.npz"] == []


def one_sentence(result: Any, message: str) -> None:
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize("case", ["404", "dead", "digest", "truncated", "http", "large"])
def test_bad_servers_are_refused_in_one_sentence(
    site: Site, publish: Publisher, nowhere: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    assert callable(publish)
    entry = catalog.NODE_SETS["photo"]
    raw, message = entry.raw[0], ""
    if case == "404":
        del site.replies["/photo.npz"]
        message = "the server answered 404"
    elif case == "dead":
        with socket.socket() as free:
            free.bind(("localhost", 0))
            raw = replace(raw, url=f"https://localhost:{free.getsockname()[1]}/photo.npz")
        message = "Connection refused"
    elif case == "digest":
        raw, message = replace(raw, sha256="0" * 64), "it was changed or damaged"
    elif case == "truncated":
        site.replies["/photo.npz"].cut = [100] * 4
        message = "the connection broke"
    elif case == "large":
        raw, message = replace(raw, max_bytes=1000), "more than the limit of 1000"
    else:
        with serve(None) as plain:
            site.replies["/photo.npz"] = Reply(status=301, location=f"{plain.url}/photo.npz")
        message = "which is not https"
    monkeypatch.setitem(catalog.NODE_SETS, "photo", replace(entry, raw=(raw,)))
    one_sentence(propreg_command("data", "fetch", "photo"), message)
    assert files(nowhere) == []


def test_a_good_call_follows_a_bad_one(site: Site, publish: Publisher, nowhere: Path, tmp_path: Path) -> None:
    good = site.replies["/ind.cora.graph"]
    publish("ind.cora.graph", web_page(tmp_path))
    assert propreg_command("data", "fetch", "cora").exit_code == 1
    site.replies["/ind.cora.graph"] = good
    assert propreg_command("data", "fetch", "cora").exit_code == 0
    assert files(nowhere) == ["cora.npz", "cora_splits.npz"]


@pytest.mark.usefixtures("publish")
def test_what_another_process_fetched_meanwhile_is_used(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    propreg.load_dataset("cora", root=nowhere)
    stored = (nowhere / "cora.npz").read_bytes()
    (nowhere / "cora.npz").unlink()

    def overtaken(*_: object, **__: object) -> None:
        (nowhere / "cora.npz").write_bytes(stored)
        raise propreg.DataError("the folder is gone")

    monkeypatch.setattr(fetch, "download", overtaken)
    assert propreg.load_dataset("cora").num_nodes == 640


@pytest.mark.usefixtures("publish")
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    one_sentence(propreg_command("data", "fetch", "cora", "--root", str(tmp_path / "file")), "cannot be")


def test_the_real_command_has_exit_status_1(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "propreg", "data", "verify", "cora", "--root", str(tmp_path)],
        capture_output=True, text=True, check=False, env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin"},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "cora is not on disk: run propreg data fetch cora.\n"
