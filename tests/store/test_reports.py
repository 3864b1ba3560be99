"""Reports and measures of a run: stored with it, exported compactly, and no part of its identity."""

import gzip
import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from propreg.engine.spec import Measures, PartMeasures, Replica, Report, Result
from propreg.metrics import METRICS
from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.export import to_lines, write_export
from propreg.store.integrity import check_store
from propreg.store.merge import take_into
from propreg.store.reports import merge_reports, read_reports, write_reports
from propreg.store.results import Results, load_results
from propreg.store.rows import implausible
from propreg.store.run import Outcome, Record, Run
from propreg.store.store import Store
from study.sweeping import batches, exported, made_up

RUNS = batches()[0].runs
VAL, TEST = 210, 1000


def part(nodes: int, right: int, seed: int = 0, classes: int = 7) -> PartMeasures:
    """Measures that add up, of random predictions."""
    rng = np.random.default_rng(seed)
    y, guesses = rng.integers(0, classes, nodes), rng.integers(0, classes - 1, nodes)
    correct = np.arange(nodes) < right
    predicted = np.where(correct, y, (y + 1 + guesses) % classes)
    confidence = rng.beta(6, 2, nodes) * (1 - 1 / classes) + 1 / classes
    of_bin = np.minimum((confidence * 15).astype(int), 14)
    count, hits, guessed = (np.bincount(each, minlength=classes).tolist() for each in (y, y[correct], predicted))
    bins = [np.bincount(of_bin, each, minlength=15) for each in (None, correct, confidence)]
    triples = tuple((int(n), int(r), float(c)) for n, r, c in zip(*bins, strict=True))
    nll, brier = float(-np.log(confidence).sum()), float(((1 - confidence) ** 2).sum())
    area = 0.875123 if classes == 2 else None
    return PartMeasures(tuple(count), tuple(hits), tuple(guessed), nll, brier, triples, area)


def measures(val: int = 180, test: int = 800, seed: int = 0) -> Measures:
    return Measures(part(VAL, val, seed), part(TEST, test, seed + 1))


def outcome(run: Run = RUNS[0], rules: tuple[str, ...] = ("official",), measured: bool = True) -> Outcome:
    """An outcome with a report of each rule, the run's own first."""
    val, test = run.seed + 150, run.split + 800
    reports = [
        Report(rule, 7, val / VAL, test / TEST, measures(val, test, run.seed) if measured else None) for rule in rules
    ]
    return Outcome.of(Result(Replica(), val / VAL, test / TEST, 7, 40, reports=tuple(reports)), VAL, TEST)


def test_reports_are_read_as_they_were_written_up_to_rounding() -> None:
    reports = (
        Report("official", 7, 180 / VAL, 0.8, measures()),
        Report("last", 40, 170 / VAL, 0.7),
        Report("strict", 5, 180 / VAL, 0.75, measures(180, 750, 3)),
    )
    text = write_reports(reports, VAL, TEST)
    assert text is not None
    found = read_reports(text, VAL, TEST)
    assert write_reports(found, VAL, TEST) == text, "what was rounded once stays"
    for before, after in zip(reports, found, strict=True):
        assert replace(after, measures=None) == replace(before, measures=None)
        assert (after.measures is None) == (before.measures is None)
        if before.measures is None or after.measures is None:
            continue
        for mine, other in zip(vars(before.measures).values(), vars(after.measures).values(), strict=True):
            for metric in METRICS.values():
                expected = pytest.approx(metric.compute(mine), abs=2e-4, nan_ok=metric.name == "roc_auc")
                assert metric.compute(other) == expected, metric.name


def of_two_classes() -> str:
    both = Measures(part(VAL, 180, classes=2), part(TEST, 800, classes=2))
    text = write_reports([Report("official", 7, 180 / VAL, 0.8, both)], VAL, TEST)
    assert text is not None
    return text


def test_roc_auc_of_two_classes_is_recorded_and_read(tmp_path: Path) -> None:
    (report,) = read_reports(of_two_classes(), VAL, TEST)
    assert report.measures is not None
    assert (report.measures.val.roc_auc, report.measures.test.roc_auc) == (0.875123, 0.875123)
    result = Result(Replica(), 180 / VAL, 0.8, 7, 40, reports=(report,))
    with Store(tmp_path / "store.sqlite") as store:
        store.add(Record(RUNS[0], Outcome.of(result, VAL, TEST), "b"), store.begin_session({}))
    found = load_results(tmp_path / "store.sqlite").scores(RUNS[0].cell, [RUNS[0].split], [RUNS[0].seed], "roc_auc")
    assert found is not None
    assert (float(found.val[0, 0]), float(found.test[0, 0])) == (0.875123, 0.875123)


def test_measures_recorded_before_there_was_roc_auc_are_read() -> None:
    (report,) = read_reports(_change(of_two_classes(), lambda found: [part.pop() for part in found[0][4]]), VAL, TEST)
    assert report.measures is not None
    assert report.measures.test.roc_auc is None
    assert np.isnan(METRICS["roc_auc"].compute(report.measures.test))


@pytest.mark.parametrize("area", [1.5, -0.1, None, "1", [0.5]])
def test_an_impossible_roc_auc_is_refused(area: object) -> None:
    text = of_two_classes()
    assert implausible([0, 1, 180, VAL, 800, TEST, 7, 40, None, None, "accuracy", text, "b"]) == []
    text = _change(text, _set(0, 4, 1, 8, area))
    row = [0, 1, 180, VAL, 800, TEST, 7, 40, None, None, "accuracy", text, "b"]
    assert implausible(row) == ["has a report with impossible measures"]


def test_a_run_without_more_than_its_scores_has_no_text() -> None:
    assert write_reports([Report("official", 7, 0.5, 0.8)], VAL, TEST) is None
    assert write_reports([], VAL, TEST) is None


def test_measures_that_are_not_finite_are_recorded_as_none() -> None:
    text = write_reports([Report("official", 7, 0.9, 0.8)], 10, 10, measured=True)
    assert text == '[["official",7,9,8,null]]'
    assert read_reports(text, 10, 10) == (Report("official", 7, 0.9, 0.8),)
    assert Batch("", RUNS[:1], measures=True).is_complete(text), "another training would bring none either"
    assert implausible([0, 1, 9, 10, 8, 10, 7, 40, None, None, "accuracy", text, "b"]) == []


def test_what_is_not_finite_is_stored_all_the_same() -> None:
    bad = replace(part(VAL, 180), nll=math.inf)
    text = write_reports([Report("official", 7, 180 / VAL, 0.8, Measures(bad, part(TEST, 800)))], VAL, TEST)
    assert text is not None
    (report,) = read_reports(text, VAL, TEST)
    assert report.measures is not None
    assert math.isnan(report.measures.val.nll)


def test_a_score_of_another_metric_is_stored_exported_and_read(tmp_path: Path) -> None:
    result = Result(Replica(), 3 * 0.05, 2.0, 7, 40)
    record = Record(RUNS[0], Outcome.of(result, 100, 300, metric="rmse"), "b")
    path, file = tmp_path / "store.sqlite", tmp_path / "runs.jsonl"
    with Store(path) as store:
        store.add(record, store.begin_session({}))
        assert store.find(record.run.key) == record
        assert store.tests(record.run.cell.text, record.run.split, but=99) == [2.0]
        write_export(file, store.rows())
    assert check_store(path) == (1, [])
    assert '"version":3' in file.read_text().splitlines()[0]
    results = load_results(file)
    found = results.outcome(RUNS[0].cell, RUNS[0].split, RUNS[0].seed)
    assert found == record.outcome
    assert (found.val, found.test, type(found.test)) == (0.15, 2.0, float)
    assert results.accuracies(RUNS[0].cell, [RUNS[0].split], [RUNS[0].seed]) is None
    assert take_into(tmp_path / "copy.sqlite", file).added == 1
    assert exported(tmp_path / "copy.sqlite") == exported(path)


def test_reports_are_stored_exported_and_imported(tmp_path: Path) -> None:
    path, file = tmp_path / "store.sqlite", tmp_path / "runs.jsonl.gz"
    records = [Record(run, outcome(run, ("official", "strict")), "b") for run in RUNS[:3]]
    with Store(path) as store:
        session = store.begin_session({})
        for record in [*records, Record(RUNS[3], outcome(RUNS[3], measured=False), "b")]:
            assert store.add(record, session)
        assert store.find(RUNS[0].key) == records[0]
        write_export(file, store.rows())
        widths = [len(row) for row in store.rows()]
    assert sorted(widths) == [12, 14, 14, 14], "a run without reports is the row that it always was"
    assert check_store(path) == (4, [])
    found = load_results(file).outcome(RUNS[1].cell, RUNS[1].split, RUNS[1].seed)
    assert found == records[1].outcome
    assert [report.rule for report in found.all_reports("official")] == ["official", "strict"]
    assert take_into(tmp_path / "copy.sqlite", file).added == 4
    assert exported(tmp_path / "copy.sqlite") == exported(path)


def test_without_reports_the_rows_of_an_export_have_the_bytes_of_version_1(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        store.add(Record(RUNS[0], made_up(RUNS[0]), "b"), store.begin_session({}))
        (row,) = store.rows()
    values = list(vars(made_up(RUNS[0])).values())[:8]
    text = json.dumps([[RUNS[0].split, RUNS[0].seed, *values, "b"]], separators=(",", ":"))
    head, line, _ = to_lines([row])
    assert head == '{"format":"propreg runs","version":3}\n'
    assert line.startswith(f'{{"cell":{RUNS[0].cell.text},"runs":{text},"digests":"')


def test_the_measures_of_the_whole_study_fit_into_an_export() -> None:
    """Under 30 MB for the record of today: less than 220 bytes per run beside its own."""
    cell, rng = RUNS[0].cell, np.random.default_rng(3)
    runs = [Run(cell, split, seed) for split in range(10) for seed in range(30)]
    rows = []
    for place, run in enumerate(runs):
        val, test = int(rng.integers(150, 200)), int(rng.integers(700, 900))
        reports = (Report("official", 7, val / VAL, test / TEST, measures(val, test, 5 * place)),)
        out = Outcome.of(Result(Replica(), val / VAL, test / TEST, 7, 400, reports=reports), VAL, TEST)
        rows.append((cell.text, run.split, run.seed, *out.row, "b" * 16))
    size = len(gzip.compress("".join(to_lines(rows)).encode(), 9, mtime=0))
    assert size / len(runs) * 136_410 < 30e6


def _change(text: str, change: Callable[[Any], object]) -> str:
    found = json.loads(text)
    change(found)
    return json.dumps(found, separators=(",", ":"), sort_keys=True)


def _set(*at: Any) -> Callable[[Any], object]:
    *path, last, value = at

    def change(found: Any) -> None:
        for key in path:
            found = found[key]
        found[last] = value

    return change


DAMAGE: list[tuple[Callable[[Any], object], str]] = [
    (_set(0, 1, 8), "a first report that is not its own"),
    (_set(1, 2, VAL + 1), "reports with impossible numbers"),
    (_set(1, 1, 41), "reports with impossible numbers"),
    (_set(1, 0, 5), "reports with impossible numbers"),
    (_set(1, 3, 0.5), "reports with impossible numbers"),
    (_set(1, 0, "official"), "reports that cannot be read"),
    (lambda found: found.pop() and found.pop(), "reports that cannot be read"),
    (lambda found: found[0].append(1), "reports with impossible numbers"),
    (_set(0, 4, 0, 1, 0, 999), "a report with impossible measures"),
    (_set(0, 4, 0, 5, 0, -1), "a report with impossible measures"),
    (_set(0, 4, 0, 3, "1"), "a report with impossible measures"),
    (_set(0, 4, 0, []), "a report with impossible measures"),
]


@pytest.mark.parametrize(("change", "says"), DAMAGE)
def test_reports_that_cannot_be_are_refused(change: Callable[[Any], object], says: str) -> None:
    out = outcome(rules=("official", "strict"))
    assert out.reports is not None
    row = [0, 1, *out.row, "b"]
    assert implausible(row) == []
    row[-2] = _change(out.reports, change)
    assert any(says in each for each in implausible(row))


@pytest.mark.parametrize("text", ["[", "[]", "{}", "5", "null", "[[]]", '[["official", 7, 9, 8]]', "[" * 5000, 7])
def test_text_that_is_no_list_of_reports_is_refused(text: object) -> None:
    row = [0, 1, 9, 10, 8, 10, 7, 40, None, None, "accuracy", text, "b"]
    assert implausible(row) == ["has reports that cannot be read"]


def test_a_changed_report_is_found_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        store.add(Record(RUNS[0], outcome(), "b"), store.begin_session({}))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("""UPDATE runs SET reports = replace(reports, '"official"', '"strict"')""")
    (wrong,) = check_store(path).wrong
    assert "was changed after it was stored" in wrong


# What a run lacks is added to its row when it is trained again.

PLAIN, MEASURED = outcome(measured=False), outcome()


def test_measures_complete_a_row_that_agrees(tmp_path: Path) -> None:
    ask = Batch("ask", RUNS[:1], measures=True)
    with Store(tmp_path / "store.sqlite") as store:
        first, second = store.begin_session({"engine": "a"}), store.begin_session({"engine": "a"})
        assert store.add(Record(RUNS[0], PLAIN, "b"), first)
        assert store.recorded(Batch("plain", RUNS[:1])) == {RUNS[0].key}
        assert store.recorded(ask) == set()
        assert store.add(Record(RUNS[0], MEASURED, "c"), second)
        assert store.recorded(ask) == {RUNS[0].key}
        assert store.find(RUNS[0].key) == Record(RUNS[0], MEASURED, "c")
        assert not store.add(Record(RUNS[0], MEASURED, "c"), second), "nothing is new"
        assert not store.add(Record(RUNS[0], PLAIN, "b"), second), "nothing is lost"
        assert store.find(RUNS[0].key).outcome == MEASURED
        assert [session["runs"] for session in store.sessions()] == [0, 1]
    assert check_store(tmp_path / "store.sqlite") == (1, [])


def test_the_reports_of_two_trainings_are_joined(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        session = store.begin_session({})
        store.add(Record(RUNS[0], outcome(rules=("official", "strict"), measured=False), "b"), session)
        assert store.add(Record(RUNS[0], MEASURED, "b"), session)
        found = store.find(RUNS[0].key).outcome.all_reports("official")
        assert [(report.rule, report.measures is not None) for report in found] == [
            ("official", True),
            ("strict", False),
        ]
        assert store.recorded(Batch("", RUNS[:1], rules=("strict",))) == {RUNS[0].key}
        assert store.recorded(Batch("", RUNS[:1], measures=True)) == set(), "not with each of its reports"
    assert merge_reports(None, None) is None


@pytest.mark.parametrize(
    ("before", "now", "replaced"),
    [({"engine": "a"}, {"engine": "a"}, False), ({"engine": "a"}, {"engine": "b"}, True), ({}, {"engine": "b"}, True),
     ({"taken_from": "x"}, {"engine": "b"}, True), ({"engine": "a"}, {"taken_from": "x"}, False), ({}, {}, False)],
)  # fmt: skip
def test_a_row_that_disagrees_is_replaced_only_if_another_engine_trained_it(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], replaced: bool
) -> None:
    old = replace(PLAIN, epochs=39)
    with Store(tmp_path / "store.sqlite") as store:
        store.add(Record(RUNS[0], old, "b"), store.begin_session(before))
        assert store.add(Record(RUNS[0], MEASURED, "b"), store.begin_session(now)) is replaced
        assert store.find(RUNS[0].key).outcome == (MEASURED if replaced else old)
        assert not store.add(Record(RUNS[0], replace(PLAIN, epochs=38), "b"), store.begin_session({"engine": "c"})), (
            "without more reports there is no reason to"
        )


def test_an_import_completes_rows_and_never_overwrites(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.sqlite", tmp_path / "other.sqlite"
    for path, outcomes in ((mine, [PLAIN, PLAIN, MEASURED]), (other, [MEASURED, replace(MEASURED, epochs=39), PLAIN])):
        with Store(path) as store:
            session = store.begin_session({"engine": str(path)})
            for run, out in zip(RUNS, outcomes, strict=False):
                store.add(Record(run, out, "b"), session)
    taken = take_into(mine, other)
    assert (taken.added, taken.same, taken.unequal) == (1, 1, [RUNS[1].key])
    with Store(mine, "read") as store:
        assert [store.find(run.key).outcome for run in RUNS[:3]] == [MEASURED, PLAIN, MEASURED]


def test_files_that_differ_in_reports_only_are_no_contradiction(tmp_path: Path) -> None:
    for name, out in (("a", PLAIN), ("b", MEASURED), ("c", PLAIN)):
        write_export(tmp_path / f"{name}.jsonl", [(RUNS[0].cell.text, 0, 0, *out.row, "b")])
    assert load_results(tmp_path).outcome(RUNS[0].cell, 0, 0) == MEASURED
    write_export(tmp_path / "d.jsonl", [(RUNS[0].cell.text, 0, 0, *replace(PLAIN, epochs=39).row, "b")])
    with pytest.raises(StudyError, match="two different results"):
        load_results(tmp_path).outcome(RUNS[0].cell, 0, 0)


def test_metrics_are_computed_from_what_is_recorded() -> None:
    results, cell = Results(), RUNS[0].cell
    outs = {seed: outcome(Run(cell, 0, seed), ("official", "strict")) for seed in range(3)}
    results.take(cell.text, [(0, seed, *out.row, "b") for seed, out in outs.items()])
    for metric in METRICS.values():
        found = results.scores(cell, [0], [2, 1], metric.name)
        assert found is not None
        assert found.val.shape == found.test.shape == (1, 2)
        exact = [metric.compute(measures(seed + 150, 800, seed).test) for seed in (2, 1)]
        assert found.test[0] == pytest.approx(exact, abs=2e-4, nan_ok=metric.name == "roc_auc")
    strict, own = (results.scores(cell, [0], [0], rule=rule) for rule in ("strict", ""))
    assert strict is not None
    assert own is not None
    assert strict.test.tolist() == own.test.tolist() == [[800 / TEST]]
    assert results.scores(cell, [0], [0, 9], "nll") is None, "a run is missing"
    assert results.scores(cell, [0], [0], rule="last") is None
    results.take(cell.text, [(0, 5, *outcome(measured=False).row, "b")])
    assert results.scores(cell, [0], [5], "nll") is None
    assert results.scores(cell, [0], [5]) is not None
