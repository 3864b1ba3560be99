"""A local HTTPS server that serves what a test gives it, and misbehaves when told to."""

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Reply:
    """What to answer: a body, a status or a redirect; ``cut`` lists after how many bytes the next answers break.

    ``raw`` replaces the whole answer; with ``drip`` its bytes are sent one by one, with so many seconds between them.
    """

    body: bytes = b""
    status: int = 200
    location: str = ""
    etag: str = '"v1"'
    ranges: bool = True
    declared: int | str | None = None
    raw: bytes = b""
    drip: float = 0.0
    cut: list[int] = field(default_factory=list)
    failures: int = 0


@dataclass
class Site:
    """A running server: its address, its replies by path, and the requests it saw (path and Range header)."""

    url: str
    replies: dict[str, Reply] = field(default_factory=dict)
    seen: list[tuple[str, str | None]] = field(default_factory=list)


def certificate(folder: Path) -> Path:
    """A self-signed certificate for localhost, with its key in the same file."""
    target = folder / "server.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"),
        "-out", str(folder / "cert.pem"),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    target.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return target


@contextmanager
def serve(pem: Path | None) -> Iterator[Site]:
    """Run a server on a free port; over TLS if there is a certificate."""
    site = Site("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.seen.append((self.path, wanted))
            reply = site.replies.get(self.path, Reply(status=404))
            if reply.failures:
                reply.failures -= 1
                reply = Reply(status=503)
            self._answer(reply, wanted)

        def _answer(self, reply: Reply, wanted: str | None) -> None:
            if reply.raw:
                for k in range(0, len(reply.raw), 1 if reply.drip else len(reply.raw)):
                    self.wfile.write(reply.raw[k : k + 1] if reply.drip else reply.raw)
                    self.wfile.flush()
                    time.sleep(reply.drip)
                return
            body, start = reply.body, 0
            if reply.ranges and wanted and self.headers.get("If-Range") == reply.etag:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
            self.send_response(206 if start else reply.status)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if reply.location:
                self.send_header("Location", reply.location)
            if reply.etag:
                self.send_header("ETag", reply.etag)
            rest = body[start:]
            self.send_header("Content-Length", str(len(rest) if reply.declared is None else reply.declared))
            self.end_headers()
            self.wfile.write(rest[: reply.cut.pop(0)] if reply.cut else rest)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    if pem is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that hangs up is no news
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    site.url = f"{'https' if pem else 'http'}://localhost:{server.server_address[1]}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
