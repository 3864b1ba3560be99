"""The authors' mask files, read without PyTorch."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.raw_files import Mask, write_mask
from propreg.data.benchmarks.masks import read_mask
from propreg.data.errors import DataError
from propreg.data.graph import Split


def sample(nodes: int = 50) -> Split:
    index = np.arange(nodes)
    return Split(index % 5 == 0, index % 5 == 1, index % 5 > 1)


def test_round_trip_through_torch_save(tmp_path: Path) -> None:
    split = sample()
    write_mask(tmp_path / "a.mask", split)
    read = read_mask(tmp_path / "a.mask")
    for which in ("train", "val", "test"):
        assert np.array_equal(getattr(read, which), getattr(split, which))


def test_views_of_one_storage_are_understood(tmp_path: Path) -> None:
    table = torch.stack([torch.from_numpy(m) for m in (sample().train, sample().val, sample().test)])
    mask: Any = Mask()
    mask.train_mask, mask.val_mask, mask.test_mask = table
    torch.save(mask, tmp_path / "a.mask", _use_new_zipfile_serialization=False)
    assert np.array_equal(read_mask(tmp_path / "a.mask").val, sample().val)


def save(path: Path, **masks: Any) -> None:
    mask = Mask()
    for name, value in masks.items():
        setattr(mask, name, value)
    torch.save(mask, path, _use_new_zipfile_serialization=False)


class Other:
    """A class that is not the authors'."""


@pytest.mark.parametrize("kind", ["overlap", "length", "float", "missing", "zip", "pickle", "class", "strided"])
def test_other_content_is_refused(tmp_path: Path, kind: str) -> None:
    path, split = tmp_path / "a.mask", sample()
    train, val, test = (torch.from_numpy(m) for m in (split.train, split.val, split.test))
    if kind == "overlap":
        save(path, train_mask=train, val_mask=train, test_mask=test)
    elif kind == "length":
        save(path, train_mask=train[:-1], val_mask=val, test_mask=test)
    elif kind == "float":
        save(path, train_mask=train.float(), val_mask=val, test_mask=test)
    elif kind == "missing":
        save(path, train_mask=train, val_mask=val)
    elif kind == "strided":
        save(path, train_mask=train[::2], val_mask=val[::2], test_mask=test[::2])
    elif kind == "zip":
        torch.save({"train_mask": train}, path)
    elif kind == "class":
        torch.save(Other(), path, _use_new_zipfile_serialization=False)
    else:
        path.write_bytes(pickle.dumps({"a": 1}, 2))
    with pytest.raises(DataError):
        read_mask(path)


@pytest.mark.parametrize("nested", [b"]", b"(]t", b")" + b"".join(b"q%ch%c\x86" % (k, k) for k in range(60, 149))])
def test_no_value_of_a_mask_file_is_hashed(tmp_path: Path, nested: bytes) -> None:
    write_mask(tmp_path / "a.mask", sample())
    data = (tmp_path / "a.mask").read_bytes()
    assert b"ctorch\nBoolStorage\n" in data
    (tmp_path / "a.mask").write_bytes(data.replace(b"ctorch\nBoolStorage\n", nested))
    with pytest.raises(DataError):
        read_mask(tmp_path / "a.mask")


def test_code_in_a_mask_file_is_refused(tmp_path: Path) -> None:
    write_mask(tmp_path / "a.mask", sample())
    data = (tmp_path / "a.mask").read_bytes()
    (tmp_path / "a.mask").write_bytes(data.replace(b"ctorch._utils\n_rebuild_tensor_v2\n", b"cos\nsystem\n"))
    with pytest.raises(DataError, match=r"names os\.system"):
        read_mask(tmp_path / "a.mask")
