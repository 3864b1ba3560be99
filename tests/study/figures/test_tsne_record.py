"""The record behind figure 3: there and back, and one sentence for whatever is wrong with a file."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from propreg.data.errors import DataError
from propreg.store.errors import StudyError
from propreg.study.figures.tsne_record import read_tsne, write_tsne
from study.figures.test_tsne import made_up_record


@pytest.mark.parametrize("name", ["a.json.gz", "a.json"])
def test_there_and_back(tmp_path: Path, name: str) -> None:
    record = made_up_record()
    write_tsne(tmp_path / name, record)
    assert read_tsne(tmp_path / name) == record
    first = (tmp_path / name).read_bytes()
    write_tsne(tmp_path / name, read_tsne(tmp_path / name))
    assert (tmp_path / name).read_bytes() == first


def test_the_compressed_file_has_no_time_and_no_name(tmp_path: Path) -> None:
    write_tsne(tmp_path / "a.json.gz", made_up_record())
    head = (tmp_path / "a.json.gz").read_bytes()[:10]
    assert head[3] == 0, "no name"
    assert head[4:8] == b"\0\0\0\0", "no time"


def test_nan_is_never_written(tmp_path: Path) -> None:
    record = made_up_record()
    cloud = replace(record.clouds[0], runs=(replace(record.clouds[0].runs[0], omega=float("nan")),))
    with pytest.raises(ValueError, match="JSON"):
        write_tsne(tmp_path / "a.json", replace(record, clouds=(cloud,)))
    assert not list(tmp_path.iterdir())


def _value() -> dict[str, Any]:
    run = {"seed": 0, "key": "k", "test": 1, "test_of": 2, "epoch": 3, "silhouette": 0.1, "omega": 1.0, "length": 2.0}
    cloud = {"method": "plain", "strength": 0.0, "xy": [[0.0, 1.0], [1, 2]], "runs": [run]}
    return {
        "format": "propreg tsne",
        "version": 1,
        "dataset": "citeseer",
        "model": "gcn",
        "split": 0,
        "perplexity": 30.0,
        "labels": [0, 1],
        "clouds": [cloud],
        "versions": {"numpy": "2"},
    }


def _broken(*path: str | int, to: Any) -> dict[str, Any]:
    value: Any = _value()
    place = value
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return value  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "value",
    [
        _broken("labels", to=[0]),
        _broken("labels", to=[0, "1"]),
        _broken("labels", to=[0, True]),
        _broken("labels", to="01"),
        _broken("clouds", to={}),
        _broken("clouds", 0, to=None),
        _broken("clouds", 0, "xy", to=[[0.0, 1.0]]),
        _broken("clouds", 0, "xy", to=[[0.0], [1.0]]),
        _broken("clouds", 0, "xy", to=[[0.0, "x"], [1.0, 2.0]]),
        _broken("clouds", 0, "xy", to=[[0.0, float("nan")], [1.0, 2.0]]),
        _broken("clouds", 0, "xy", 0, to=5),
        _broken("clouds", 0, "runs", to=[]),
        _broken("clouds", 0, "runs", to=[[]]),
        _broken("clouds", 0, "runs", 0, "test_of", to=0),
        _broken("clouds", 0, "runs", 0, "length", to=0.0),
        _broken("clouds", 0, "runs", 0, "omega", to=float("inf")),
        _broken("clouds", 0, "runs", 0, "seed", to=0.5),
        _broken("versions", to=[]),
        _broken("versions", to={"numpy": 2}),
        _broken("perplexity", to=None),
        {key: value for key, value in _value().items() if key != "model"},
    ],
)
def test_a_damaged_record_is_one_sentence(tmp_path: Path, value: dict[str, Any]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    with pytest.raises(StudyError, match="is damaged") as error:
        read_tsne(path)
    assert len(str(error.value)) < 400


def test_the_undamaged_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(_value()))
    assert read_tsne(path).labels == (0, 1)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is damaged"),
        (b"{", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b"[]", "is not a t-SNE record"),
        (b'{"format":"propreg runs","version":1}', "is not a t-SNE record"),
        (b'{"format":"propreg tsne"}', "format version None"),
        (b'{"format":"propreg tsne","version":2}', "install the newer propreg"),
        (b'{"format":"propreg tsne","version":"1"}', "format version 1"),
        (gzip.compress(b"{}" * 100, mtime=0)[:-12], "is damaged"),
        (b"\x1f\x8b garbage", "is damaged"),
        (gzip.compress(b" " * 70_000_000, mtime=0), "unpacks to more than 64 MB"),
    ],
    ids=range(12),
)
def test_other_files_are_one_sentence(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(raw)
    with pytest.raises(StudyError, match=says):
        read_tsne(path)


def test_a_file_that_is_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read as a t-SNE record"):
        read_tsne(tmp_path / "none.json.gz")
    with pytest.raises(StudyError, match="cannot be read as a t-SNE record"):
        read_tsne(tmp_path)
    with pytest.raises(DataError, match="cannot be written"):
        write_tsne(tmp_path / "none" / "a.json", made_up_record())
