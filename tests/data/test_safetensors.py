"""The safetensors format: whole round trips, files of the safetensors package, and one sentence for damage."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counting import Inputs
from damaged_files import SLACK, damaged, peak, rewrite
from propreg.data.errors import DataError
from propreg.data.formats.safetensors import DTYPES, read_safetensors, write_safetensors

RANDOM = np.random.default_rng(0)
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    **{kind: RANDOM.integers(0, 2, (3, 2)).astype(np.dtype(dtype).newbyteorder("=")) for kind, dtype in DTYPES.items()},
    "a.weight": RANDOM.normal(size=(4, 3)).astype(np.float32),
    "scalar": np.array(3.5),
    "nothing": np.zeros((0, 5), np.int64),
    "naïve name": np.array([np.nan, np.inf, -0.0], np.float16),
}
ABOUT = {"settings": '{"a": 1}', "by": "tests – ü"}


def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with this header, JSON or bytes, and a true or false length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(shape: Any, offsets: Any, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_a_round_trip_keeps_types_shapes_bits_and_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, ARRAYS, ABOUT)
    arrays, about = read_safetensors(path)
    assert about == ABOUT
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable


def test_equal_arrays_give_equal_bytes_whatever_their_layout_and_order(tmp_path: Path) -> None:
    other = {name: np.asfortranarray(array).reshape(array.shape) for name, array in reversed(ARRAYS.items())}
    other["a.weight"] = other["a.weight"].astype(">f4")
    write_safetensors(tmp_path / "a", ARRAYS, ABOUT)
    write_safetensors(tmp_path / "b", other, dict(reversed(ABOUT.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_layout_is_that_of_the_specification(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"b": np.array([1, 2], np.uint8), "a": np.array([[1.5]])}, {"k": "v"})
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0, "the tensors are aligned"
    assert json.loads(content[8 : 8 + length]) == {
        "__metadata__": {"k": "v"},
        "a": entry([1, 1], [0, 8], "F64"),
        "b": entry([2], [8, 10], "U8"),
    }
    assert content[8 + length :] == np.array([1.5], "<f8").tobytes() + b"\x01\x02"


def test_the_safetensors_package_reads_and_writes_the_same(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_safetensors(ours, ARRAYS, ABOUT)
    read = package.load_file(ours)
    package.save_file(ARRAYS, theirs, metadata=ABOUT)
    arrays, about = read_safetensors(theirs)
    assert about == ABOUT
    for name, array in ARRAYS.items():
        assert read[name].tobytes() == arrays[name].tobytes() == array.tobytes()
        assert read[name].dtype == arrays[name].dtype == array.dtype


FOUR = b"\0" * 4


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a safetensors file"),
        (b"\x02\0\0", "is not a safetensors file"),
        (file_of({}, length=0), "is not a safetensors file"),
        (file_of({}, length=3), "is not a safetensors file"),
        (file_of({}, length=2**63), "is not a safetensors file"),
        (file_of(b"{" * 100_000), "its header is not JSON"),
        (file_of(b"\xff\xfe{}"), "its header is not JSON"),
        (file_of(b'{"a": 1' + b"0" * 5000 + b"}"), "its header is not JSON"),
        (file_of(b'{"a": {}, "a": {}}'), "its header is not JSON"),
        (file_of([]), "its header is not a JSON object"),
        (file_of({"__metadata__": {"a": 1}}), "its metadata are not texts"),
        (file_of({"__metadata__": []}), "its metadata are not texts"),
        (file_of({"a": 3}), "'a' is not described by dtype, shape and data_offsets"),
        (file_of({"a": entry([1], [0, 4]) | {"more": 1}}, FOUR), "'a' is not described by"),
        (file_of({"a": entry([1], [0, 4], "BF16")}, FOUR), "'a' has dtype 'BF16': only BOOL"),
        (file_of({"a": entry([1], [0, 4], [])}, FOUR), "'a' has dtype"),
        (file_of({"a": entry([-1], [0, 4])}, FOUR), "the shape or the offsets of 'a' are not sizes"),
        (file_of({"a": entry([True], [0, 4])}, FOUR), "are not sizes"),
        (file_of({"a": entry([1.0], [0, 4])}, FOUR), "are not sizes"),
        (file_of({"a": entry(1, [0, 4])}, FOUR), "are not sizes"),
        (file_of({"a": entry([1] * 33, [0, 4])}, FOUR), "are not sizes"),
        (file_of({"a": entry([1], [0])}, FOUR), "are not sizes"),
        (file_of({"a": entry([2**60], [0, 4])}, FOUR), "are not sizes"),
        (file_of({"a": entry([2], [0, 4])}, FOUR), "the offsets of 'a' do not fit its shape or the file"),
        (file_of({"a": entry([2**40] * 3, [0, 4])}, FOUR), "do not fit its shape"),
        (file_of({"a": entry([1], [4, 0])}, FOUR), "do not fit"),
        (file_of({"a": entry([2], [0, 8])}, FOUR), "do not fit its shape or the file"),
        (file_of({"a": entry([1], [0, 4]), "b": entry([1], [0, 4])}, FOUR), "gaps or overlap"),
        (file_of({"a": entry([1], [4, 8])}, FOUR * 2), "gaps or overlap"),
        (file_of({"a": entry([1], [0, 4])}, FOUR * 2), "gaps or overlap"),
        (file_of({}, FOUR), "gaps or overlap"),
        (file_of({"a": entry([2], [0, 2], "BOOL")}, b"\x01\x02"), "a truth value is neither 0 nor 1"),
    ],
)
def test_what_is_wrong_is_one_sentence(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_safetensors(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_files_are_one_sentence_or_arrays_of_the_files_size(tmp_path: Path, inputs: Inputs) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, ARRAYS, ABOUT)
    refused = []
    for copy in damaged(path.read_bytes(), 400, seed=3):
        rewrite(path, copy)
        try:
            (arrays, _), most = peak(lambda: read_safetensors(path))
        except DataError as error:
            refused.append(str(error))
        else:
            assert sum(array.nbytes for array in arrays.values()) <= len(copy)
            assert most < len(copy) + SLACK
    assert len(refused) > 200
    inputs(400)
    assert not any("\n" in sentence for sentence in refused)


def test_a_limit_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, ARRAYS, ABOUT)
    with pytest.raises(DataError, match="more than the limit of 100"):
        read_safetensors(path, max_bytes=100)
    with pytest.raises(DataError, match="there is no such file"):
        read_safetensors(tmp_path / "nothing")
    with pytest.raises(DataError, match="is not an ordinary file"):
        read_safetensors(tmp_path)


@pytest.mark.parametrize("name", ["__metadata__", "a"])
def test_what_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    array = np.zeros(2) if name == "__metadata__" else np.array(["text"])
    with pytest.raises(DataError, match="cannot be written"):
        write_safetensors(tmp_path / "a", {name: array}, {})
    assert not list(tmp_path.iterdir())
