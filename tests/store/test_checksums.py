"""Checksums of exports: no change of a character is read, and nothing without them."""

import base64
import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from counting import Inputs
from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.export import read_export, to_lines, write_export
from propreg.store.merge import take_into
from propreg.store.results import load_results
from propreg.store.rows import row_digest, row_digests
from propreg.store.run import Run
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches

RECORD = Path(__file__).parents[2] / "results" / "runs.jsonl.gz"
CHANGES = 1_500


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "store.sqlite"
    with Store(path) as opened:
        reproduce(batches(), opened, MadeUp)
    return path


@pytest.fixture
def export(tmp_path: Path, store: Path) -> Path:
    with Store(store, "read") as opened:
        write_export(tmp_path / "runs.jsonl", opened.rows())
    return tmp_path / "runs.jsonl"


def propreg(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_no_change_of_a_digit_is_imported(tmp_path: Path, export: Path, inputs: Inputs) -> None:
    """The changes of which 68 in 100 were once imported: one digit of a run becomes another."""
    whole, draw = export.read_text(), random.Random(8)
    digits = [at for at, sign in enumerate(whole) if sign.isdigit()]
    taken, said = 0, list[str]()
    for _ in range(CHANGES):
        at = draw.choice(digits)
        other = draw.choice([digit for digit in "0123456789" if digit != whole[at]])
        export.write_text(whole[:at] + other + whole[at + 1 :])
        try:
            rows = list(read_export(export))
        except StudyError as error:
            said.append(str(error))
        else:
            taken += bool(rows)
    assert (taken, len(said)) == (0, CHANGES)
    inputs(CHANGES)
    assert all(len(sentence.splitlines()) == 1 for sentence in said)
    export.write_text(whole)
    assert take_into(tmp_path / "new.sqlite", export).added == 200


@pytest.mark.parametrize("lost", ["the last line", "a line", "half of it", "the last newline", "a row"])
def test_what_is_cut_off_is_missed(export: Path, lost: str) -> None:
    whole = export.read_text()
    lines = whole.splitlines(keepends=True)
    cut = {
        "the last line": "".join(lines[:-1]),
        "a line": "".join(lines[:3] + lines[4:]),
        "half of it": whole[: len(whole) // 2],
        "the last newline": whole[:-1],
        "a row": whole.replace(whole[whole.index("],[") : whole.index("],[", whole.index("],[") + 1)], "", 1),
    }[lost]
    assert cut != whole
    export.write_text(cut)
    with pytest.raises(StudyError, match=r"is damaged"):
        load_results(export)


def test_a_row_that_does_not_match_its_digest_is_refused_when_it_is_read(export: Path) -> None:
    """Also in a file whose SHA-256 was computed again; the rows of other cells can be read."""
    *lines, _ = export.read_text().splitlines(keepends=True)
    value = json.loads(lines[1])
    value["runs"][0][2] += 1
    lines[1] = json.dumps(value, separators=(",", ":")) + "\n"
    body = "".join(lines)
    end = json.dumps({"runs": 200, "sha256": hashlib.sha256(body.encode()).hexdigest()})
    export.write_text(f"{body}{end}\n")
    results = load_results(export)
    cells = [json.dumps(json.loads(line)["cell"], separators=(",", ":")) for line in lines[1:]]
    assert len(list(results.runs(cells[1]))) > 0
    with pytest.raises(
        StudyError, match=r"is damaged, the run of split .*, seed .*, was changed after it was stored: export"
    ):
        list(results.runs(cells[0]))


@pytest.mark.parametrize(
    "command",
    [
        ["table", "digits-smoke", "--results"],
        ["status", "digits-smoke", "--results"],
        ["status", "--results"],
        ["figure", "fig-depth", "-o", "a.svg", "--results"],
        ["report", "-o", "page", "--results"],
        ["rerun", "59da0f60", "--results"],
        ["store", "import"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_commands_refuse_a_changed_export(
    tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = export.read_text()
    at = text.index(',"runs":[[') + 14
    export.write_text(text[:at] + ("2" if text[at] != "2" else "3") + text[at + 1 :])
    done = propreg(*command, export.name)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.output
    assert (
        "runs.jsonl is damaged, its SHA-256 is not that of its content: export it again, or take a copy" in done.stderr
    )
    assert not Path("propreg-study.sqlite").exists()


def test_digests_are_those_of_the_store(store: Path, export: Path) -> None:
    with Store(store, "read") as opened:
        known = opened.digests()
    seen = 0
    for line in export.read_text().splitlines()[1:-1]:
        value = json.loads(line)
        text, raw = json.dumps(value["cell"], separators=(",", ":")), base64.b64decode(value["digests"])
        for place, row in enumerate(value["runs"]):
            assert raw[8 * place : 8 * place + 8] == known[Run.key_of(text, *row[:2])] == row_digest((text, *row))
            seen += 1
    assert seen == 200


def test_an_export_without_checksums_is_refused(export: Path) -> None:
    lines = ['{"format":"propreg runs","version":1}']
    for line in export.read_text().splitlines()[1:-1]:
        value = json.loads(line)
        lines.append(json.dumps({"cell": value["cell"], "runs": value["runs"]}, separators=(",", ":")))
    export.write_text("\n".join(lines) + "\n")
    with pytest.raises(StudyError, match=r"runs.jsonl is damaged"):
        load_results(export)


def test_many_digests_are_those_of_one_row_at_a_time() -> None:
    rows = [(0, 1, 90, 100, 0.5, "b"), (0, 2, None, "é\ud800", b"\xff", 2.0)]
    assert list(row_digests('{"a":"ü"}', rows)) == [row_digest(('{"a":"ü"}', *row)) for row in rows]
    text = json.dumps(['{"a":"ü"}', *rows[0]], separators=(",", ":"))
    assert row_digest(('{"a":"ü"}', *rows[0])) == hashlib.sha256(text.encode()).digest()[:8]
    runs = [(0, 1), (12, 3)]
    assert list(Run.keys_of("{}", runs)) == [Run.key_of("{}", *run) for run in runs]


def test_the_record_has_checksums() -> None:
    """And is small: base64 of digests is all that they add to it."""
    first, *_, last = gzip.decompress(RECORD.read_bytes()).splitlines()
    assert json.loads(first) == {"format": "propreg runs", "version": 3}
    assert json.loads(last)["runs"] == 141_891
    assert RECORD.stat().st_size < 18.9 * 141_891  # bytes a run


def test_an_export_of_nothing_is_whole(tmp_path: Path) -> None:
    assert len(list(to_lines([]))) == 2
    write_export(tmp_path / "runs.jsonl", [])
    assert len(load_results(tmp_path / "runs.jsonl")) == 0
