"""One file over verified TLS, whole or not at all."""

import hashlib
import http.client
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from propreg.data._atomic import atomic_write
from propreg.data._progress import Advance, progress_bar
from propreg.data.catalog import RawFile
from propreg.data.errors import DataError

ATTEMPTS = 4
TIMEOUT = 20.0
PAUSE = 0.5
DEADLINE = 1800.0
_CHUNK = 1 << 16
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


def download(raw: RawFile, target: Path, *, context: ssl.SSLContext | None = None) -> None:
    """Download a file to a temporary neighbour of ``target``, check it, then move it into place.

    A connection that breaks is taken up again where it broke, a few times. The server's certificate is verified; a
    redirect to anything but https is refused, and so is a file that is larger than it may be.

    Args:
        raw: The file: its address, largest size, and SHA-256 where that is known.
        target: Where it goes. Its folder must exist.
        context: The TLS settings; by default the system's, with verification.

    Raises:
        DataError: In one sentence, whatever went wrong; ``target`` is then as it was before.
    """
    if not raw.url.startswith("https://"):
        raise DataError(f"{raw.url}: is not an https address: downloads go over verified TLS only.")
    opener = urllib.request.build_opener(_HttpsOnly, urllib.request.HTTPSHandler(context=context))
    with atomic_write(target) as file, progress_bar(raw.name) as advance:
        _fetch(opener, raw, _Sink(file, raw, advance))


class _RefusedError(Exception):
    """An answer that another attempt would not change; its text completes the sentence."""


class _State(NamedTuple):
    """What the server said of the file in the answer that the next one has to continue."""

    etag: str | None
    total: int | None


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            fp.close()
            raise _RefusedError(f"the server redirects to {newurl[:100]}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


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
            raise _RefusedError(f"it is larger than the {self._raw.max_bytes} bytes that it may have")
        try:
            self._file.write(chunk)
        except OSError as error:  # a full disk is no reason to try the network again
            raise _RefusedError(f"it cannot be written ({error.strerror or error})") from error
        self.sha.update(chunk)
        self._advance(self.done, total)


def _fetch(opener: urllib.request.OpenerDirector, raw: RawFile, sink: _Sink) -> None:
    state, until, reason = _State(None, None), time.monotonic() + DEADLINE, ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            with opener.open(_request(raw.url, sink.done, state), timeout=TIMEOUT) as answer:
                state = _start(answer, raw, sink)
                while chunk := answer.read(_CHUNK):
                    sink.write(chunk, state.total)
                    if time.monotonic() > until:
                        raise _RefusedError(f"it took more than {DEADLINE:.0f} seconds")
            if state.total is None or sink.done == state.total:
                return _compare(raw, sink.sha.hexdigest())
            reason = f"the connection broke after {sink.done} of {state.total} bytes"
        except _RefusedError as refused:
            raise _sentence(raw, str(refused)) from refused
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = _why(raw, error)
    raise _sentence(raw, f"{reason} ({ATTEMPTS} attempts)")


def _request(url: str, done: int, state: _State) -> urllib.request.Request:
    headers = {"User-Agent": "propreg", "Accept-Encoding": "identity"}
    if done and state.etag:  # without an ETag the parts might be of two versions
        headers |= {"Range": f"bytes={done}-", "If-Range": state.etag}
    return urllib.request.Request(url, headers=headers)


def _start(answer: Any, raw: RawFile, sink: _Sink) -> _State:
    """Place the sink where the answer's first byte belongs, and note how long the whole will be."""
    length = answer.headers.get("Content-Length")
    total = int(length) if length is not None and length.isdigit() else None
    etag = answer.headers.get("ETag")
    if answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {sink.done}-"):
        total = None if total is None else total + sink.done
    elif answer.status == 200:
        sink.restart()
    else:
        raise _RefusedError(f"the server answered {answer.status} with a part that was not asked for")
    if total is not None and total > raw.max_bytes:
        raise _RefusedError(f"it has {total} bytes, more than the {raw.max_bytes} that it may have")
    return _State(etag if etag and not etag.startswith("W/") else None, total)


def _compare(raw: RawFile, digest: str) -> None:
    if raw.sha256 is not None and digest != raw.sha256:
        raise DataError(
            f"{raw.url}: the file has SHA-256 {digest[:16]}…, but {raw.sha256[:16]}… is the right one: "
            "it was changed or damaged on its way and was not kept; try again later."
        )


def _why(raw: RawFile, error: Exception) -> str:
    """The reason for another attempt; raises where another attempt would not help."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        reason = f"the server answered {error.code} {error.reason}"
        if error.code not in _AGAIN:
            raise _sentence(raw, reason) from error
        return reason
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise _sentence(raw, f"the server's certificate is not to be trusted ({cause.verify_message})") from error
    if isinstance(cause, TimeoutError):
        return f"the server did not answer within {TIMEOUT:.0f} seconds"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__


def _sentence(raw: RawFile, reason: str) -> DataError:
    return DataError(
        f"{raw.name} could not be downloaded from {raw.url}: {reason}. Try again later, or fetch the dataset on "
        "another machine and set PROPREG_DATA to the folder that holds it."
    )
