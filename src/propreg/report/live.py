"""The page of a run that trains, served on the loopback device: ``propreg run --live``.

The page is that of :mod:`propreg.report.run_html`, made again as trainings finish, and loads itself again. Whatever
happens to it or to its reader, the training continues: an error costs one line, and pages a few percent of the time.
"""

import re
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from time import monotonic, thread_time
from types import TracebackType
from typing import Any

from propreg.console import unread
from propreg.fitting.selection import NothingToChooseError
from propreg.report.run_html import REFRESH, run_page

ADDRESS = "127.0.0.1"
SHARE = 0.03  # of the time, at most, is for making pages
WAITING = "No training is finished yet. This page loads itself again.\n"
# A port forwarded by ssh has another number; a name that someone else's DNS points here is refused.
_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?", re.IGNORECASE)

Record = Mapping[str, Any]


class Live:
    """Serves the latest page while the block runs, and at its end until a reader who waits for it has the last one.

    Args:
        say: Prints a line.
        in_thread: Make pages in a thread of their own, so that the training never waits. Not for CUDA, which forbids
            calls of other threads while it records an epoch.
    """

    def __init__(self, say: Callable[[str], object], *, in_thread: bool = True) -> None:
        self._say, self._in_thread = say, in_thread
        self._so_far: Callable[[], Record] | None = None
        self._next = 0.0
        self._page, self._last = "", False
        self._failed = False
        self._asked = -float("inf")
        self._over, self._read = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(self)
        self.url = f"http://{ADDRESS}:{self._server.server_address[1]}/"
        loops = (self._serve, self._make_pages) if in_thread else (self._serve,)
        self._threads = [threading.Thread(target=loop, daemon=True) for loop in loops]

    def __enter__(self) -> "Live":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._last and monotonic() - self._asked < 2 * REFRESH:
            with suppress(KeyboardInterrupt):
                self._read.wait(2 * REFRESH)
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()

    def update(self, so_far: Callable[[], Record]) -> None:
        """Show the trainings so far, if it is time for another page.

        Args:
            so_far: Makes their record.
        """
        self._so_far = so_far
        if not self._in_thread and monotonic() >= self._next:
            self.make()

    def make(self) -> None:
        """Make the page of the latest update, unless there is none that is new."""
        so_far, self._so_far = self._so_far, None
        if so_far is None:
            return
        start, first = thread_time(), not self._next  # the first page imports what the end of the run needs anyway
        try:
            self._show(run_page(so_far()))
        except NothingToChooseError:
            pass  # all that finished have failed
        except Exception as error:
            if not self._failed:
                with unread():
                    self._say(f"The live page could not be made ({error}): the training continues.")
            self._failed = True
        self._next = monotonic() + (REFRESH if first else max(REFRESH, (thread_time() - start) / SHARE))

    def end(self, page: str) -> None:
        """Show the page of the whole run."""
        self._over.set()
        self._show(page, last=True)

    def read(self) -> str:
        """The latest page, for a reader; empty before the first."""
        with self._lock:
            self._asked = monotonic()
            return self._page

    def sent(self, page: str) -> None:
        """A reader has the page."""
        if self._last and page is self._page:
            self._read.set()

    def _show(self, page: str, *, last: bool = False) -> None:
        with self._lock:  # a page in the making must not replace the last one
            if last or not self._last:
                self._page, self._last = page, last

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.1)

    def _make_pages(self) -> None:
        while not self._over.wait(0.2):
            if monotonic() >= self._next:
                self.make()


class _Server(socketserver.ThreadingTCPServer):
    """A thread for each request: one that hangs must not hold up the others."""

    daemon_threads = True

    def __init__(self, live: Live) -> None:
        super().__init__((ADDRESS, 0), _Handler)
        self.live = live

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader who went away is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0  # seconds that a silent reader is kept

    def do_GET(self) -> None:
        """The page at ``/``, and nothing else."""
        if not _HOST.fullmatch(self.headers.get("Host", "")):
            return self._answer(403, "This page is for the browser of this computer: open it at 127.0.0.1.\n")
        if self.path != "/":
            return self._answer(404, "There is only one page here: /\n")
        page = self.server.live.read()
        self._answer(200, page or WAITING, "html" if page else "plain")
        self.server.live.sent(page)

    def _answer(self, status: int, text: str, kind: str = "plain") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        if text is WAITING:
            self.send_header("Refresh", str(REFRESH))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """The name of the server, without its version."""
        return "propreg"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not printed: the terminal is the training's."""
