"""Downloads over verified TLS, whole or not at all, and the cache files made from them."""

import hashlib
import http.client
import io
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from propreg.console import Advance, download_bar
from propreg.data.benchmarks.cache import write_molecules, write_nodes, write_splits
from propreg.data.benchmarks.catalog import MoleculeSet, NodeSet, RawFile
from propreg.data.benchmarks.gnn_benchmark import read_benchmark
from propreg.data.benchmarks.locate import dataset_file, download_folder, search_path, splits_file
from propreg.data.benchmarks.masks import read_mask
from propreg.data.benchmarks.ogb import read_ogb
from propreg.data.benchmarks.planetoid import read_planetoid
from propreg.data.benchmarks.verify import verify_molecules, verify_nodes, verify_splits
from propreg.data.errors import DataError
from propreg.data.formats.files import read_bytes
from propreg.jsonio import atomic_write

ATTEMPTS = 4
TIMEOUT = 20.0
PAUSE = 0.5
DEADLINE = 1800.0
_CHUNK = 1 << 16
_AGAIN = {408, 425, 429, 500, 502, 503, 504}

Root = str | os.PathLike[str] | None


def download(raw: RawFile, target: Path, *, context: ssl.SSLContext | None = None) -> None:
    """Download a file to a temporary neighbor of ``target``, check it, then move it into place.

    A broken connection is resumed a few times, for half an hour in all. The server's certificate is verified; redirects
    to anything but https and files larger than expected are refused.

    Args:
        raw: The file: its address, largest size, and SHA-256 if known.
        target: The file to create, in an existing folder.
        context: The TLS settings; by default the system's, with verification.
    """
    if not raw.url.startswith("https://"):
        raise DataError(f"{raw.url}: is not an https address: downloads go over verified TLS only.")
    until = time.monotonic() + DEADLINE
    opener = urllib.request.build_opener(_HttpsOnly, _Https(context, until))
    with atomic_write(target) as file, download_bar(raw.name) as advance:
        _fetch(opener, raw, _Sink(file, raw, advance), until)


class _RefusedError(Exception):
    """An answer that another attempt would not change; its text completes the error message."""


class _State(NamedTuple):
    """Version and length of the file in the answer that the next request continues."""

    etag: str | None
    total: int | None


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except Exception:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise _RefusedError(f"the server redirects to {newurl[:100]}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Https(urllib.request.HTTPSHandler):
    """Connections whose answers end at a time of the monotonic clock."""

    def __init__(self, context: ssl.SSLContext | None, until: float) -> None:
        super().__init__(context=context)
        self._connect = partial(_Connection, until=until)
        self._tls = context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connect, req, context=self._tls)


class _Connection(http.client.HTTPSConnection):
    def __init__(self, host: str, *, until: float, **options: Any) -> None:
        super().__init__(host, **options)
        self.response_class = partial(_Answer, until=until)  # type: ignore[assignment]  # it is only called


class _Answer(http.client.HTTPResponse):
    """An answer whose head and body end in time: a socket's timeout starts again with every byte."""

    def __init__(self, sock: socket.socket, *options: Any, until: float, **more: Any) -> None:
        super().__init__(sock, *options, **more)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, until))


class _Timed(io.RawIOBase):
    def __init__(self, raw: Any, sock: socket.socket, until: float) -> None:
        self._raw, self._sock, self._until = raw, sock, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(min(TIMEOUT, _left(self._until)))
        try:
            count: int | None = self._raw.readinto(buffer)
            return count
        except TimeoutError:
            _left(self._until)
            raise

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left(until: float) -> float:
    """The seconds left."""
    left = until - time.monotonic()
    if left <= 0:
        raise _RefusedError(f"it took more than {DEADLINE:.0f} seconds")
    return left


class _Sink:
    """The temporary file, its length so far and its SHA-256 so far."""

    def __init__(self, file: BinaryIO, raw: RawFile, advance: Advance) -> None:
        self._file, self._raw, self._advance = file, raw, advance
        self.restart()

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.done, self.sha = 0, hashlib.sha256()

    def write(self, chunk: bytes, total: int | None) -> None:
        self.done += len(chunk)
        if self.done > self._raw.max_bytes:
            raise _RefusedError(f"it is larger than {self._raw.max_bytes} bytes, the limit")
        try:
            self._file.write(chunk)
        except OSError as error:  # a full disk is no reason to retry
            raise _RefusedError(f"it cannot be written ({error.strerror or error})") from error
        self.sha.update(chunk)
        self._advance(self.done, total)


def _fetch(opener: urllib.request.OpenerDirector, raw: RawFile, sink: _Sink, until: float) -> None:
    state, reason = _State(None, None), ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            with opener.open(_request(raw.url, sink.done, state), timeout=min(TIMEOUT, _left(until))) as answer:
                state = _start(answer, raw, sink)
                while chunk := answer.read(_CHUNK):
                    sink.write(chunk, state.total)
                    _left(until)
            if state.total is None or sink.done == state.total:
                break
            reason = f"the connection broke after {sink.done} of {state.total} bytes"
        except _RefusedError as refused:
            raise _sentence(raw, str(refused)) from refused
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = _why(raw, error)
        except (ValueError, ArithmeticError) as error:  # of addresses that the server redirects to
            raise _sentence(raw, f"the server's answer cannot be understood ({str(error)[:100]})") from error
    else:
        raise _sentence(raw, f"{reason} ({ATTEMPTS} attempts)")
    _compare(raw, sink.sha.hexdigest())


def _request(url: str, done: int, state: _State) -> urllib.request.Request:
    headers = {"User-Agent": "propreg", "Accept-Encoding": "identity"}
    if done and state.etag:  # without an ETag the parts might be of two versions
        headers |= {"Range": f"bytes={done}-", "If-Range": state.etag}
    return urllib.request.Request(url, headers=headers)


def _start(answer: Any, raw: RawFile, sink: _Sink) -> _State:
    """Put the sink at the place of the answer's first byte, and return the file's version and length."""
    length = answer.headers.get("Content-Length")
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 16):
        raise _RefusedError(f"the server declares a length of {length[:40]!r} bytes")
    total = None if length is None else int(length)
    etag = answer.headers.get("ETag")
    if answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {sink.done}-"):
        total = None if total is None else total + sink.done
    elif answer.status == 200:
        sink.restart()
    else:
        raise _RefusedError(f"the server answered {answer.status} with a part that was not requested")
    if total is not None and total > raw.max_bytes:
        raise _RefusedError(f"it has {total} bytes, more than the limit of {raw.max_bytes}")
    return _State(etag if etag and not etag.startswith("W/") else None, total)


def _compare(raw: RawFile, digest: str) -> None:
    if raw.sha256 is not None and digest != raw.sha256:
        raise DataError(
            f"{raw.url}: the file has SHA-256 {digest[:16]}…, expected {raw.sha256[:16]}…: it was changed or "
            "damaged on its way and was not kept; try again later."
        )


def _why(raw: RawFile, error: Exception) -> str:
    """The reason for another attempt; raises where another attempt would not help."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        reason = f"the server answered {error.code} {str(error.reason)[:100]}"
        if error.code not in _AGAIN:
            raise _sentence(raw, reason) from error
        return reason
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise _sentence(raw, f"the server's certificate is not trusted ({cause.verify_message})") from error
    if isinstance(cause, TimeoutError):
        return f"the server did not answer within {TIMEOUT:.0f} seconds"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause)[:100] or type(cause).__name__


def _sentence(raw: RawFile, reason: str) -> DataError:
    return DataError(
        f"{raw.name} could not be downloaded from {raw.url}: {reason}. Try again later, or fetch the dataset on "
        "another machine and set PROPREG_DATA to the folder that holds it."
    )


def ensure_nodes(entry: NodeSet, root: Root = None) -> Path:
    """The file of a node dataset, downloaded from its publisher if it is not on disk.

    Args:
        entry: The dataset.
        root: The folder to search first, and to download to.
    """

    def make(folder: Path, target: Path) -> None:
        if entry.source == "planetoid":
            graph = read_planetoid(folder, entry.name)
        else:
            graph = read_benchmark(folder / entry.raw[0].name, entry.name)
        write_nodes(target, verify_nodes(graph, entry, str(folder)))

    return dataset_file(entry, root) or _make_from_raw(entry.name, entry.raw, f"{entry.file}.npz", make, root)


def ensure_splits(entry: NodeSet, root: Root = None) -> Path:
    """The file of a dataset's official splits, downloaded from the paper's authors if it is not on disk."""
    if entry.beyond:
        return ensure_nodes(entry, root)

    def make(folder: Path, target: Path) -> None:
        splits = [read_mask(folder / raw.name) for raw in entry.raw_splits]
        write_splits(target, entry.file, verify_splits(splits, entry, str(folder)))

    file = f"{entry.file}_splits.npz"
    return splits_file(entry, root) or _make_from_raw(entry.name, entry.raw_splits, file, make, root)


def ensure_molecules(entry: MoleculeSet, root: Root = None) -> Path:
    """The file of a molecule dataset, downloaded from OGB if it is not on disk."""

    def make(folder: Path, target: Path) -> None:
        data = read_ogb(folder / entry.raw[0].name, entry.name)
        write_molecules(target, verify_molecules(data, entry, str(folder / entry.raw[0].name)))

    return dataset_file(entry, root) or _make_from_raw(entry.name, entry.raw, f"{entry.file}.npz", make, root)


def _make_from_raw(
    name: str, raws: tuple[RawFile, ...], file: str, make: Callable[[Path, Path], None], root: Root
) -> Path:
    """Download the missing files of ``raws`` into the folder ``NAME-raw`` and make ``file`` from them.

    Files that an interrupted call or the user put into the folder are used.
    """
    if not raws:
        folders = " or ".join(map(str, search_path(root)))
        raise DataError(
            f"{name} is read from {file}, which is not in {folders}, and no address to download it from is known: put "
            "it there, or set PROPREG_DATA to the folder that holds it."
        )
    target = download_folder(root) / file
    folder = target.parent / f"{name}-raw"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be created: {error.strerror or error}: pass another root.") from error
    missing = [raw for raw in raws if not (folder / raw.name).exists()]
    try:
        for raw in missing:
            download(raw, folder / raw.name)
        for raw in raws:
            _check_raw(raw, folder / raw.name)
        make(folder, target)
    except DataError:
        _remove([folder / raw.name for raw in missing])  # else the next call would read a damaged file again
        if not target.exists():  # another process may have fetched it meanwhile, and removed the raw files
            raise
    finally:
        if target.exists():
            _remove([folder / raw.name for raw in raws])
        _remove([path for path in folder.glob(".*.tmp") if _is_old(path)])  # of calls that were killed
        with suppress(OSError):  # not empty: the next call uses the files of an interrupted one
            folder.rmdir()
    return target


def _check_raw(raw: RawFile, path: Path) -> None:
    """Compare a file's SHA-256, where it is known, before the file is read: it may have been there before."""
    if raw.sha256 is not None:
        digest = hashlib.sha256(read_bytes(path, raw.max_bytes)).hexdigest()
        if digest != raw.sha256:
            raise DataError(
                f"{path}: has SHA-256 {digest[:16]}…, expected {raw.sha256[:16]}…: remove it, and it is downloaded."
            )


def _is_old(path: Path) -> bool:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > 3600
    return False


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
