"""The page of a run while it trains: what is served, to whom, and that nothing about it touches the training."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import pytest

from communities import communities
from propreg.data.splits import random_split
from propreg.fitting.selection import NothingToChooseError
from propreg.report import run_page
from propreg.report.live import WAITING, Live
from propreg.running.compare import compare, compare_models
from propreg.running.plan import Plan, Source, make_plan
from report.reading import read
from report.samples import run_record

Record = Mapping[str, Any]
REFRESH = '<meta http-equiv="refresh" content="2">'
TRAINING = run_record(finished=False, training=True)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def live(said: list[str]) -> Iterator[Live]:
    """A server that makes pages when it is told to."""
    with Live(said.append, in_thread=False) as found:
        yield found


def fetched(live: Live) -> str:
    with urlopen(live.url, timeout=10) as answer:
        return str(answer.read().decode())


def status(live: Live, path: str = "/", method: str = "GET", host: str | None = None) -> int:
    connection = HTTPConnection("127.0.0.1", urlsplit(live.url).port or 0, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        if host != "":
            connection.putheader("Host", host or urlsplit(live.url).netloc)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def a_plan(model: str = "gcn") -> Plan:
    graph = communities(nodes=120)
    splits = {str(seed): random_split(graph.y, 5, 5, seed) for seed in range(2)}
    return make_plan(Source("mine", graph, splits), model=model, mu=(0.5,), seeds=2, max_epochs=4, device="cpu")


def test_a_page_is_there_after_every_training(live: Live) -> None:
    pages = []

    def look(so_far: Callable[[], Record]) -> None:
        live.update(so_far)
        live.make()
        pages.append(fetched(live))

    whole = compare(a_plan(), watch=look)
    assert len(pages) == 8
    for number, page in enumerate(pages, 1):
        assert (
            f"Training: {number} of 8 are finished; the numbers are from these, and the verdict may change."
            in read(page).text
        )
        assert "interrupted" not in read(page).text
        assert REFRESH in page
    live.end(run_page(whole.record))
    last = fetched(live)
    assert last == run_page(whole.record)
    assert "refresh" not in last.partition("<title>")[0]
    assert "Training:" not in read(last).text
    assert 'id="live"' not in last


def test_watching_changes_no_bit() -> None:
    def look(so_far: Callable[[], Record]) -> None:
        json.dumps(so_far())

    watched, alone = compare(a_plan(), watch=look), compare(a_plan())
    np.testing.assert_array_equal(watched.result.val, alone.result.val)
    np.testing.assert_array_equal(watched.result.test, alone.result.test)
    np.testing.assert_array_equal(watched.result.probabilities, alone.result.probabilities)
    assert "training" not in watched.record


def test_of_several_models_the_page_shows_the_one_that_trains() -> None:
    seen = []

    def look(so_far: Callable[[], Record]) -> None:
        record = so_far()
        seen.append((record["model"], record["notes"][-1]))

    compare_models([a_plan(), a_plan("mlp")], watch=look)
    notes = [f"This is model {n} of 2. All are compared when the last has trained." for n in (1, 2)]
    assert seen == [("gcn", notes[0])] * 8 + [("mlp", notes[1])] * 8


def test_before_the_first_training_it_says_so_and_loads_itself_again(live: Live) -> None:
    with urlopen(live.url, timeout=10) as answer:
        assert answer.read().decode() == WAITING
        assert answer.headers["Refresh"] == "2"
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_only_this_computer_is_answered(live: Live) -> None:
    live.update(lambda: TRAINING)
    port = urlsplit(live.url).port
    assert live.url.startswith("http://127.0.0.1:")
    for host in (None, "127.0.0.1", f"localhost:{port}", "LOCALHOST:9000"):
        assert status(live, host=host) == 200
    for host in (
        "",
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "[::1",
    ):
        assert status(live, host=host) == 403
    assert status(live, "/favicon.ico") == 404
    assert status(live, "//evil.example/") == 404
    assert status(live, "/../run.json") == 404
    assert status(live, method="POST") == 501
    assert status(live, method="HEAD") == 501


def test_a_page_that_cannot_be_made_is_said_once_and_keeps_the_last_one(live: Live, said: list[str]) -> None:
    def broken() -> Record:
        raise ImportError("no Jinja2")

    live.update(lambda: TRAINING)
    for _ in range(3):
        live.update(broken)
        live.make()
    assert said == ["The live page could not be made (no Jinja2): the training continues."]
    assert fetched(live) == run_page(TRAINING)


def test_failed_trainings_alone_make_no_page(live: Live, said: list[str]) -> None:
    def none() -> Record:
        raise NothingToChooseError("all have failed")

    live.update(none)
    assert (fetched(live), said) == (WAITING, [])


def test_pages_take_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of its own: each page takes 0.3 s, of which three percent are 10 s."""
    now, made = 0.0, []
    monkeypatch.setattr("propreg.report.live.monotonic", lambda: now)
    monkeypatch.setattr("propreg.report.live.thread_time", lambda: now)

    def record() -> Record:
        nonlocal now
        made.append(round(now, 1))
        now += 0.3
        return TRAINING

    live = Live(str, in_thread=False)
    with live:
        while now < 40:
            live.update(record)
            now += 0.5
    first, second, *later = made
    assert (first, second) == (0.0, 2.3), "the first imports what the end needs anyway"
    assert all(10 <= later - before <= 11 for before, later in zip([second, *later], later, strict=False))
    assert len(later) == 3


def test_pages_are_made_beside_a_training_on_a_cpu() -> None:
    with Live(str) as live:
        asked = 0
        live.update(lambda: TRAINING)
        while fetched(live) == WAITING:
            asked += 1
        assert fetched(live) == run_page(TRAINING)
        live.end("the last page")
        live.update(lambda: TRAINING)
        live.make()
        assert fetched(live) == "the last page"


def test_a_reader_who_waits_gets_the_last_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stays for a reader of late, until the page is read; without one it ends at once."""
    waited = []

    def wait(live: Live, seconds: float) -> bool:
        waited.append((fetched(live), seconds))
        return True

    for reads in (False, True):
        with Live(str, in_thread=False) as live:
            monkeypatch.setattr(live._read, "wait", lambda seconds, live=live: wait(live, seconds))
            if reads:
                fetched(live)
            live.end("the last page")
        assert waited == [("the last page", 4)] * reads
        assert live._read.is_set() == reads


def test_a_reader_who_goes_away_disturbs_nobody(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    live.update(lambda: TRAINING)
    port = urlsplit(live.url).port or 0
    silent = socket.create_connection(("127.0.0.1", port))
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port)) as gone:
            gone.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closed with a reset
    assert fetched(live) == run_page(TRAINING)
    silent.close()
    assert capfd.readouterr() == ("", "")
