"""Every reader of files from others, with honest files, and damage that suits them.

A target writes its honest files into a folder and returns them with a function that reads them. ``exact`` ones have
checksums: what they accept must be what was written. Of the others a CSV folder must be what a plain reader makes of
the same text, and the rest only has to end in a value or a sentence.
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import propreg
from damaged_files import damaged, damaged_npz, damaged_text
from data.corruption import NPZ, PICKLE, TABLES
from data.test_corrupted import archive, benchmark, masks, plain, planetoid, stored_nodes
from data.test_own_corrupted import PLAIN_IDS, matches, sample, write_sample
from fitting.own_modules import DATA, GRAPH, QUICK
from plain_csv import read_plain
from propreg.data.errors import DataError
from propreg.data.own.load import read_graph
from propreg.data.own.npz import write_graph
from propreg.fitting.fit import fit
from propreg.fitting.kept import KeptRuns
from propreg.report import run_figures, run_page
from propreg.running.compare import compare
from propreg.running.plan import Source, make_plan
from propreg.running.record import read_record
from propreg.store.export import read_export, read_sidecar, sidecar, write_export
from propreg.store.integrity import check_store
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.figures.tsne_record import read_tsne, write_tsne
from study.figures.test_tsne import made_up_record
from study.sweeping import batches, made_up

Made = tuple[list[Path], Callable[[], Any]]
Damage = Callable[[bytes, Random], bytes]
NUMBERS = (b"1e999", b"-1", b"9" * 400, b"0.1", b"null", b"NaN", b'"x"', b"[]", b"{}", b"true", b"9007199254740993")
_DIGITS = b"0123456789"


@dataclass(frozen=True)
class Target:
    """A reader.

    Args:
        make: Writes honest files into a folder; returns them, and what reads them.
        damages: What is done to one of them.
        exact: Whether whatever is accepted must be the honest content.
    """

    make: Callable[[Path], Made]
    damages: tuple[Damage, ...]
    exact: bool = True


def any_damage(data: bytes, random: Random) -> bytes:
    """Flipped bits, cut ends, lost, added, cleared or moved pieces."""
    return list(damaged(data, 8, random.getrandbits(32)))[random.randrange(8)]


def text_damage(data: bytes, random: Random) -> bytes:
    """Signs that mean something in CSV."""
    return list(damaged_text(data, 2, random.getrandbits(32)))[1]


def npz_damage(data: bytes, random: Random) -> bytes:
    """A well-formed archive in which a member declares another array."""
    return list(damaged_npz(data, 2, random.getrandbits(32)))[1]


def other_number(data: bytes, random: Random) -> bytes:
    """Another value in place of a number of a JSON text, compressed or not."""
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    places = [at for at in range(1, len(text)) if text[at] in _DIGITS and text[at - 1 : at] in (b":", b",", b"[", b" ")]
    if not places:
        return any_damage(data, random)
    at = end = random.choice(places)
    while end < len(text) and text[end : end + 1] in (b".", b"e", b"-", *(bytes([digit]) for digit in _DIGITS)):
        end += 1
    changed = text[:at] + random.choice(NUMBERS) + text[end:]
    return gzip.compress(changed, mtime=0) if data[:2] == b"\x1f\x8b" else changed


def of_numpy(damage: Callable[[bytes, np.random.Generator], bytes]) -> Damage:
    """A damage that draws from NumPy."""
    return lambda data, random: damage(data, np.random.default_rng(random.getrandbits(32)))


def own_npz(folder: Path) -> Made:
    write_graph(folder / "graph.npz", sample(sparse=True))
    return [folder / "graph.npz"], lambda: read_graph(folder / "graph.npz")


def own_folder(folder: Path) -> Made:
    write_sample(folder, weights=True, features=True, ids=PLAIN_IDS)

    def read() -> Any:
        """The graph; whoever reads the same text plainly must get the same, or nothing as well."""
        try:
            expected = read_plain(folder)
        except ValueError:
            expected = None
        try:
            graph = read_graph(folder)
        except DataError:
            if expected is not None:
                raise RuntimeError("it is refused, and a plain reader reads it") from None
            raise
        if expected is None or not matches(graph, expected):
            raise RuntimeError("a plain reader makes something else of it")
        return graph

    return [folder / "edges.csv", folder / "nodes.csv"], read


def model(folder: Path, name: str) -> Made:
    path = folder / name
    fit(DATA, "gcn", **QUICK).save(path)

    def read() -> Any:
        found = propreg.load_model(path)
        return {key: t.numpy() for key, t in found.state_dict().items()}

    return [path], read


def export(folder: Path, name: str) -> Made:
    path = folder / name
    with Store(folder / "store.sqlite") as store:
        session = store.begin_session({"device": "cpu", "started": "then"})
        for run in batches()[0].runs[:12]:
            store.add(Record(run, made_up(run), "b"), session)
        write_export(path, store.rows())
    return [path], lambda: list(read_export(path))


def notes(folder: Path) -> Made:
    path = folder / "runs.jsonl"
    about = {"device": "cpu", "runs": 3, "batches": ["a"], "seconds": 1.5, "torch": "2"}
    sidecar(path).write_text(json.dumps([about, about | {"runs": 5}], indent=1))

    def read() -> Any:
        found = read_sidecar(path)
        if not found:
            raise DataError("it is left out: runs are worth having without")
        return found

    return [sidecar(path)], read


def store(folder: Path) -> Made:
    export(folder, "runs.jsonl")

    def read() -> Any:
        if not (folder / "store.sqlite").stat().st_size:
            raise DataError("it is empty, as one that was cut off while it was made, and the check says so")
        checked = check_store(folder / "store.sqlite")
        if checked.wrong:
            raise DataError(checked.wrong[0])
        with Store(folder / "store.sqlite", "read") as opened:
            return list(opened.rows())

    return [folder / "store.sqlite"], read


def run_record(folder: Path) -> Made:
    assert GRAPH.split is not None
    plan = make_plan(Source("a graph", GRAPH, {"own": GRAPH.split}), mu=[0.5], seeds=2, max_epochs=4, device="cpu")
    path = folder / "run.json"
    path.write_text(json.dumps(compare(plan, progress=False).record))

    def read() -> Any:
        record = read_record(path)
        return run_page(record), run_figures(record)

    return [path], read


def tsne(folder: Path) -> Made:
    path = folder / "tsne.json.gz"
    write_tsne(path, made_up_record())
    return [path], lambda: read_tsne(path)


def kept(folder: Path) -> Made:
    result = fit(DATA, "gcn", resume=folder / "runs", **QUICK)
    run, split = result.runs[0], GRAPH.split
    assert result.kept is not None
    assert split is not None
    runs = KeptRuns(folder / "kept", {}, {"own": split})
    runs.keep(run)

    def read() -> Any:
        found = runs.find(run.replica)
        if found is None:
            raise DataError("it is refused with a warning")
        return vars(found) | {"weights": {name: w.numpy() for name, w in found.weights.items()}, "replica": 0}

    return sorted(runs.folder.iterdir()), read


ANY = (any_damage,)
JSON = (any_damage, other_number)
TARGETS = {
    "own-npz": Target(own_npz, (any_damage, npz_damage)),
    "own-folder": Target(own_folder, (any_damage, text_damage), exact=False),
    "dataset": Target(stored_nodes, tuple(map(of_numpy, NPZ))),
    "planetoid": Target(planetoid, tuple(map(of_numpy, PICKLE))),
    "gnn-benchmark": Target(benchmark, tuple(map(of_numpy, NPZ))),
    "masks": Target(masks, tuple(map(of_numpy, PICKLE))),
    "ogb-archive": Target(archive, tuple(map(of_numpy, TABLES))),
    "model": Target(lambda folder: model(folder, "model.safetensors"), ANY),
    "model-npz": Target(lambda folder: model(folder, "model.npz"), (any_damage, npz_damage)),
    "export": Target(lambda folder: export(folder, "runs.jsonl"), JSON),
    "export-gz": Target(lambda folder: export(folder, "runs.jsonl.gz"), JSON),
    "provenance": Target(notes, JSON, exact=False),
    "store": Target(store, ANY),
    "run-record": Target(run_record, JSON, exact=False),
    "tsne-record": Target(tsne, JSON, exact=False),
    "kept-run": Target(kept, ANY),
}


def content(value: Any) -> Any:
    """What was read as something that == compares."""
    return plain(value)
