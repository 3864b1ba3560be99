"""The npz reader takes what NumPy writes, and nothing that lies about itself."""

import io
import os
import stat
import struct
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from counting import Inputs
from damaged_files import SLACK, damaged_npz, peak, rewrite
from propreg import DataError
from propreg.data.formats.npz import npy_header, read_npy, read_npz, write_npz

Arrays = dict[str, NDArray[Any]]
SAMPLE: Arrays = {
    "whole": np.arange(6, dtype=np.int32).reshape(2, 3),
    "text": np.array(["a", "çé", ""]),
    "none": np.zeros((0, 3), np.float32),
    "one": np.array(2.5),
    "truth": np.array([True, False]),
}


def npz(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def headed(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def assert_equal(found: Arrays, expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], array)


numbers = hnp.arrays(
    st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes()),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
texts = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=4).map(
    lambda words: np.array(words, dtype=f"U{max([1, *map(len, words)])}")
)
names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)


@settings(deadline=None, max_examples=50)
@given(arrays=st.dictionaries(names, st.one_of(numbers, texts), max_size=4))
def test_what_is_written_is_read_by_us_and_by_numpy(arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, arrays)
    assert_equal(read_npz(path), arrays)
    with np.load(path, allow_pickle=False) as loaded:
        assert_equal(dict(loaded), arrays)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_s_archives_are_read(tmp_path: Path, save: Any) -> None:
    arrays = SAMPLE | {
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "swapped": np.arange(4, dtype=">i4"),
        "swapped_fortran": np.asfortranarray(np.arange(6, dtype=">f8").reshape(3, 2)),
        "swapped_text": np.array(["ab", "c"], dtype=">U2"),
        "bytes": np.array([b"ab", b"c"]),
        "half": np.array([1, 2], np.float16),
    }
    save(tmp_path / "a.npz", **arrays)
    assert_equal(read_npz(tmp_path / "a.npz"), arrays)


def test_zip64_archives_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 50)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    write_npz(tmp_path / "a.npz", SAMPLE)
    assert b"PK\x06\x06" in (tmp_path / "a.npz").read_bytes()
    assert_equal(read_npz(tmp_path / "a.npz"), SAMPLE)


def test_only_the_named_members_are_looked_at(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", {"x.npy": npy(np.arange(2)), "odd.npy": b"pickle", "readme.txt": b"?"})
    assert_equal(read_npz(path, only=["x", "absent"]), {"x": np.arange(2)})
    with pytest.raises(DataError, match=r"readme\.txt"):
        read_npz(path)


OBJECT = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"
NEGATIVE = "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"
DEEP = "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 5000 + ")" * 5000 + ", }"
EMPTY_BUT_VAST = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 999999999999999999, 999999999), }"


@pytest.mark.parametrize(
    ("member", "says"),
    [
        (b"", "too short"),
        (b"not an array at all", "not an npy array"),
        (b"\x93NUMPY\x04\x00" + bytes(20), "version 1 to 3"),
        (b"\x93NUMPY\x02\x00\x01\x01", "ends within its npy header"),
        (headed("x" * 20)[:-1], "declares an npy header of 20 bytes"),
        (headed(OBJECT, bytes(8)), "no pickled objects"),
        (headed(HUGE, bytes(80)), "declares an array of shape"),
        (headed(NEGATIVE), "not that of a plain array"),
        (headed(DEEP), "declares an npy header of 10"),
        (headed(DEEP[:9000]), "not that of a plain array"),
        (headed(EMPTY_BUT_VAST), "cannot be held"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % ("1, " * 40), bytes(8)), "dimensions"),
        (headed("{'descr': '<U9999', 'fortran_order': False, 'shape': (0,), }"), "at most 4096 characters"),
        (headed("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", b"\x02"), "truth value"),
        (headed("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\0\0\x11\0"), "no text"),
        (headed("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\0\xd8\0\0"), "no text"),
        (npy(np.zeros(2, complex)), "type '<c16'"),
        (npy(np.zeros(2, "M8[s]")), "not that of a plain array"),
        (npy(np.zeros(2, [("a", int)])), "not that of a plain array"),
        (npy(np.arange(3)) + b"\0", "but holds 25 bytes"),
        (npy(np.arange(3))[:-1], "but holds 23 bytes"),
    ],
)
def test_members_that_are_not_what_they_declare_are_refused(tmp_path: Path, member: bytes, says: str) -> None:
    with pytest.raises(DataError, match="member 'x.npy'.*" + says):
        read_npz(npz(tmp_path / "a.npz", {"x.npy": member}))
    (tmp_path / "a.npy").write_bytes(member)
    with pytest.raises(DataError, match=r"a\.npy.*" + says):
        read_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["../x.npy", "/x.npy", "a/x.npy", "a\\x.npy", "c:x.npy", ".npy", "x", "x\n.npy"])
def test_odd_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"a\.npz"):
        read_npz(npz(tmp_path / "a.npz", {name: npy(np.arange(2))}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", npy(np.arange(2)))
        archive.writestr("x.npy", npy(np.arange(3)))
    with pytest.raises(DataError, match="same name"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path: Path, method: int) -> None:
    with pytest.raises(DataError, match="only deflate is read"):
        read_npz(npz(tmp_path / "a.npz", {"x.npy": npy(np.arange(2))}, method))


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", {"x.npy": npy(np.arange(2))})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="encrypted"):
        read_npz(path)


def test_zip_bombs_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(10 << 20))
    with pytest.raises(DataError, match="zip bomb"):
        peak(lambda: read_npz(path))
    with pytest.raises(DataError, match="limit of 1000"):
        read_npz(path, max_bytes=1000)


def test_members_may_not_overlap(tmp_path: Path) -> None:
    """Many entries over one packed stream unfold a small file to any size."""
    path = npz(tmp_path / "a.npz", {"x.npy": npy(np.zeros(1 << 16)), "y.npy": npy(np.zeros(1 << 16))})
    content = bytearray(path.read_bytes())
    second = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    content[second + 42 : second + 46] = bytes(4)
    path.write_bytes(content)
    with pytest.raises(DataError, match="overlaps"):
        read_npz(path)


def test_a_declared_size_beyond_deflate_is_refused(tmp_path: Path) -> None:
    header = npy_header(np.broadcast_to(np.float64(0), (1 << 30,)))
    path = npz(tmp_path / "a.npz", {"x.npy": header + bytes(100)})
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<L", 0xFFFFFF00)
    path.write_bytes(content)
    with pytest.raises(DataError, match="declares 4294967040 bytes"):
        peak(lambda: read_npz(path))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_cut_and_every_flipped_bit_is_refused_or_harmless(tmp_path: Path, save: Any, inputs: Inputs) -> None:
    path = tmp_path / "a.npz"
    arrays = {"x": np.arange(20, dtype=np.int16), "t": np.array(["ab"])}
    save(path, **arrays)
    content = path.read_bytes()
    for length in range(len(content)):
        rewrite(path, content[:length])
        with pytest.raises(DataError):
            read_npz(path)
    for bit in range(8 * len(content)):
        copy = bytearray(content)
        copy[bit // 8] ^= 1 << bit % 8
        rewrite(path, bytes(copy))
        with suppress(DataError):
            assert_equal(read_npz(path), arrays)
    inputs(9 * len(content))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_copies_never_yield_other_bytes_or_take_memory(tmp_path: Path, save: Any, inputs: Inputs) -> None:
    path = tmp_path / "a.npz"
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(500, 50)), "y": rng.integers(0, 9, 30_000), "t": np.array(["one", "three"])}
    save(path, **arrays)
    size = sum(array.nbytes for array in arrays.values())
    refused = 0
    inputs(200)
    for number, copy in enumerate(damaged_npz(path.read_bytes(), 200, seed=1)):
        rewrite(path, copy)

        def read() -> Arrays | None:
            try:
                return read_npz(path)
            except DataError:
                return None

        found, most = peak(read)
        assert most <= 2 * size + SLACK
        if found is None:
            refused += 1
        elif number % 2:  # well-formed, of another type: what the file says
            with np.load(path, allow_pickle=False) as loaded:
                assert_equal(found, dict(loaded))
        else:
            assert_equal(found, arrays)
    assert refused > 100


def test_reading_takes_the_size_of_the_arrays(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 3, (1 << 18, 4))
    np.savez_compressed(tmp_path / "a.npz", x=x)
    found, most = peak(lambda: read_npz(tmp_path / "a.npz"))
    np.testing.assert_array_equal(found["x"], x)
    assert most < x.nbytes + SLACK


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_npz(tmp_path / "absent.npz")
    with pytest.raises(DataError, match="ordinary file"):
        read_npz(tmp_path)
    with pytest.raises(DataError, match="cannot be opened"):
        read_npz("a\0b.npz")
    with pytest.raises(DataError, match="cannot be opened"):
        read_npz(tmp_path / ("x" * 5000))
    (tmp_path / "empty.npz").touch()
    with pytest.raises(DataError, match="not a whole npz"):
        read_npz(tmp_path / "empty.npz")
    np.save(tmp_path / "array.npy", np.arange(9))
    with pytest.raises(DataError, match="single npy array"):
        read_npz(tmp_path / "array.npy")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_does_not_make_it_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match="ordinary file"):
        read_npz(tmp_path / "pipe.npz")


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", SAMPLE)
    again = {name: np.asfortranarray(SAMPLE[name]).reshape(SAMPLE[name].shape) for name in reversed(SAMPLE)}
    write_npz(tmp_path / "b.npz", again | {"whole": SAMPLE["whole"].astype(">i4")})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, {"x": np.arange(2)})
    before = path.read_bytes()
    for bad in ({"x": np.array([object()])}, {"a/b": np.arange(2)}, {"x": np.zeros(2, complex)}):
        with pytest.raises(DataError):
            write_npz(path, bad)
    with pytest.raises(DataError, match="no text"):
        write_npz(path, {"x": np.array(["\udcff"])})
    with pytest.raises(DataError, match="cannot be written"):
        write_npz(tmp_path / "absent" / "a.npz", {"x": np.arange(2)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]


def test_written_files_have_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    write_npz(tmp_path / "a.npz", {})
    assert stat.S_IMODE((tmp_path / "a.npz").stat().st_mode) == stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)
