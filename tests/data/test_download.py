"""Downloads from a local HTTPS server: what works, what is refused, and that nothing half-written stays."""

import hashlib
import os
import socket
import ssl
import time
from pathlib import Path

import pytest

from data.server import Reply, Site, serve
from propreg.console import download_bar
from propreg.data.benchmarks import download as module
from propreg.data.benchmarks.catalog import RawFile
from propreg.data.benchmarks.download import download
from propreg.data.errors import DataError
from propreg.store.errors import StudyError

BODY = os.urandom(300_000)


@pytest.fixture(autouse=True)
def body(request: pytest.FixtureRequest) -> None:
    if "site" in request.fixturenames:
        request.getfixturevalue("site").replies["/file"] = Reply(BODY)


def raw(site: Site, path: str = "/file", **more: object) -> RawFile:
    return RawFile("file", site.url + path, **more)  # type: ignore[arg-type]


def test_a_whole_file(site: Site, tmp_path: Path) -> None:
    download(raw(site, sha256=hashlib.sha256(BODY).hexdigest()), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert os.listdir(tmp_path) == ["file"]


def test_a_context_can_be_given(pem: Path, tmp_path: Path) -> None:
    with serve(pem) as site:
        site.replies["/file"] = Reply(b"abc")
        download(raw(site), tmp_path / "file", context=ssl.create_default_context(cafile=str(pem)))
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_a_cut_connection_is_taken_up_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.replies["/file"].cut = [100_000, 50_000]
    download(raw(site, sha256=hashlib.sha256(BODY).hexdigest()), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert [wanted for _, wanted in site.seen] == [None, "bytes=100000-", "bytes=150000-"]


@pytest.mark.parametrize("change", [{"ranges": False}, {"etag": ""}, {"etag": 'W/"weak"'}])
def test_without_ranges_it_starts_again(site: Site, tmp_path: Path, change: dict[str, object]) -> None:
    site.replies["/file"] = Reply(BODY, cut=[100_000], **change)  # type: ignore[arg-type]
    download(raw(site, sha256=hashlib.sha256(BODY).hexdigest()), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY


def test_two_versions_are_not_mixed(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.replies["/file"].cut = [100_000]
    other = os.urandom(200_000)
    monkeypatch.setattr("time.sleep", lambda _: site.replies.update({"/file": Reply(other, etag='"v2"')}))
    download(raw(site), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == other


def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    site.replies["/file"].failures = 2
    download(raw(site), tmp_path / "file")
    assert len(site.seen) == 3


def test_a_secure_redirect_is_followed(site: Site, tmp_path: Path) -> None:
    site.replies["/moved"] = Reply(status=302, location="/file")
    download(raw(site, "/moved"), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY


def refused(file: RawFile, folder: Path, message: str) -> None:
    """The download fails with one sentence, and the folder is as it was."""
    (folder / "file").write_bytes(b"before")
    with pytest.raises(DataError, match=message) as caught:
        download(file, folder / "file")
    assert "\n" not in str(caught.value)
    assert os.listdir(folder) == ["file"]
    assert (folder / "file").read_bytes() == b"before"


def test_a_redirect_to_plain_http_is_refused(site: Site, tmp_path: Path) -> None:
    with serve(None) as plain:
        plain.replies["/file"] = Reply(BODY)
        site.replies["/moved"] = Reply(status=302, location=f"{plain.url}/file")
        refused(raw(site, "/moved"), tmp_path, "redirects to http://localhost:.*, which is not https")
        assert plain.seen == []
    site.replies["/moved"] = Reply(status=302, location="file:///etc/passwd")
    refused(raw(site, "/moved"), tmp_path, "which is not https|answered 302")


def test_plain_http_is_refused(tmp_path: Path) -> None:
    refused(RawFile("file", "http://localhost:9/file"), tmp_path, "not an https address")


def test_a_wrong_digest_is_refused(site: Site, tmp_path: Path) -> None:
    refused(raw(site, sha256="0" * 64), tmp_path, "SHA-256 .*, expected 0000000000000000…: it was changed or damaged")


def test_a_file_that_stays_truncated_is_refused(site: Site, tmp_path: Path) -> None:
    site.replies["/file"].cut = [1000] * 4
    refused(raw(site), tmp_path, r"the connection broke after 4000 of 300000 bytes \(4 attempts\)|broke|Incomplete")


def test_too_large_a_file_is_refused(site: Site, tmp_path: Path) -> None:
    refused(raw(site, max_bytes=1000), tmp_path, "300000 bytes, more than the limit of 1000")
    assert len(site.seen) == 1
    site.replies["/file"].declared = 900  # it declares less than it sends
    download(raw(site, max_bytes=1000), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY[:900]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(site: Site, tmp_path: Path, status: int) -> None:
    site.replies["/file"] = Reply(status=status)
    refused(raw(site), tmp_path, f"the server answered {status}")
    assert len(site.seen) == 1


def test_a_failing_server_is_given_up(site: Site, tmp_path: Path) -> None:
    site.replies["/file"].failures = 9
    refused(raw(site), tmp_path, r"the server answered 503 .*\(4 attempts\)")


def test_a_dead_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.001)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        url = f"https://localhost:{free.getsockname()[1]}/file"
    refused(RawFile("file", url), tmp_path, "Connection refused")


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.001)
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    with socket.create_server(("localhost", 0)) as silent:
        url = f"https://localhost:{silent.getsockname()[1]}/file"
        refused(RawFile("file", url), tmp_path, "did not answer within")


def test_an_untrusted_certificate_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    refused(raw(site), tmp_path, "certificate is not trusted")


def test_a_certificate_of_another_host_is_refused(site: Site, tmp_path: Path) -> None:
    other = site.url.replace("localhost", "127.0.0.1") + "/file"
    refused(RawFile("file", other), tmp_path, "certificate is not trusted")


def test_a_folder_that_is_not_there(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        download(raw(site), tmp_path / "no" / "file")


def test_an_endless_download_is_given_up(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE", -1.0)
    refused(raw(site), tmp_path, "it took more than")


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 900\r\n\r\n" + b"x" * 900,
        HEAD + b"\r\n" + b"x" * 900,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 200,
        HEAD + b"".join(b"X-%d: y\r\n" % k for k in range(90)),
        b"HTTP/1.1 200 " + b"K" * 900,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 40,
        b"HTTP/1.1 302 Found\r\nLocation: /file\r\nX: " + b"y" * 900,
    ],
)
def test_one_byte_at_a_time_is_given_up(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(module, "DEADLINE", 0.6)
    site.replies["/file"] = Reply(raw=answer, drip=0.02)
    start = time.monotonic()
    refused(raw(site), tmp_path, "it took more than")
    assert time.monotonic() - start < 3


def test_a_silent_server_is_left_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE", 0.4)
    with socket.create_server(("localhost", 0)) as silent:
        url = f"https://localhost:{silent.getsockname()[1]}/file"
        start = time.monotonic()
        refused(RawFile("file", url), tmp_path, "it took more than")
        assert time.monotonic() - start < 3


@pytest.mark.parametrize("length", ["\xb2", "-1", "1e3", "0x10", "1_000", "9" * 5000, "9" * 20, "\x1b[2J", "12 13"])
def test_an_odd_length_is_one_sentence(site: Site, tmp_path: Path, length: str) -> None:
    site.replies["/file"].declared = length
    refused(raw(site), tmp_path, "the server declares a length of ")


ESCAPES = b"\x1b]0;owned\x07\x1b[2J\x9b31m\x08\x7f"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 " + ESCAPES + b"\r\n\r\n",
        b"HTTP/1.1 503 " + ESCAPES * 2000 + b"\r\n\r\n",
        ESCAPES + b"\r\n\r\n",
        b"HTTP/1.1 " + ESCAPES + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://" + ESCAPES + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: https://" + ESCAPES + b"/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: https://[\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: https://localhost:99999999/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: https://localhost:" + b"9" * 5000 + b"/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: https://" + b"a" * 70 + b".\xe9/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: " + ESCAPES + b":\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + ESCAPES + b"\r\n",
        HEAD + b"Content-Length: " + ESCAPES + b"\r\n\r\n",
        b"HTTP/1.1 206 Partial\r\nContent-Range: " + ESCAPES + b"\r\n\r\n",
    ],
)
def test_no_control_character_of_a_server_is_shown(site: Site, tmp_path: Path, answer: bytes) -> None:
    site.replies["/file"] = Reply(raw=answer)
    with pytest.raises(DataError) as caught:
        download(raw(site), tmp_path / "file")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("kind", [DataError, StudyError])
def test_no_control_character_of_a_path_is_shown(kind: type[Exception]) -> None:
    name = "a\x1b[2J\x9b\n\u202e\udc80.npz"
    assert str(kind(f"{name}: is damaged.")) == "a?[2J????.npz: is damaged."


def test_the_bar_is_for_terminals_only(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with download_bar("file") as advance:
        advance(1, 2)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with download_bar("file") as advance:
        advance(1, None)
        advance(2, 2)
    assert capfd.readouterr().out == ""
