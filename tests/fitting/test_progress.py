"""The bar: quiet where there is no terminal, and what it says where there is one."""

import errno
import io
from typing import Any

import pytest

from propreg.engine import Replica, Result
from propreg.fitting.progress import Progress


def finished(strength: float, val: float, failed: bool = False) -> Result:
    return Result(Replica(strength=strength), val, 0.5, 1, 1, failed_at=1 if failed else None)


def test_it_says_plain_and_the_best_strength_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(6, None) as bar:
        assert bar.so_far() == ""
        bar.advance(finished(0.0, 0.8))
        assert bar.so_far() == "; validation 80.0 %"
        bar.advance(finished(0.0, 0.9))
        bar.advance(finished(0.5, 0.99))
        assert bar.so_far() == "; validation 85.0 %", "one run of 0.5 says little beside two plain ones"
        bar.advance(finished(0.5, 0.81))
        assert bar.so_far() == "; validation 85.0 %, with mu 0.5 90.0 %"
        bar.advance(finished(0.5, 0.0, failed=True))
        assert bar.so_far() == "; validation 85.0 %, with mu 0.5 90.0 %"
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_it_can_be_asked_for_and_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(2, True) as bar:
        bar.advance(finished(0.0, 0.8))
    said = capsys.readouterr()
    assert said.out == ""
    assert "1/2" in said.err


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
@pytest.mark.parametrize("wanted", [None, "lines"])
def test_a_log_is_no_terminal_whatever_rich_is_told(
    name: str, wanted: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "1")
    with Progress(2, wanted) as bar:
        bar.advance(finished(0.0, 0.8))
    assert capsys.readouterr().err == ""


class Full(io.StringIO):
    """A file on a full disk."""

    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("wanted", [True, "lines"])
@pytest.mark.parametrize("gone", [False, True])
def test_nobody_reading_ends_no_training(wanted: Any, gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None if gone else Full())
    monkeypatch.setattr("propreg.console.EVERY", 0.0)
    with Progress(2, wanted) as bar:
        bar.say("it takes a while")
        bar.advance(finished(0.0, 0.8))
    assert bar.so_far() == "; validation 80.0 %"
