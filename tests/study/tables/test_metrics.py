"""Every metric of a table's lines, from made-up runs with measures, by hand."""

from pathlib import Path

from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.tables.metrics import metrics
from study.tables.test_selections import LINES, made, outcome


def test_metrics_by_hand() -> None:
    listing = metrics(LINES, made(LINES))
    assert listing.head == (
        "", "Accuracy", "Balanced accuracy", "Macro-F1", "ROC-AUC", "NLL", "Brier score", "ECE",
    )  # fmt: skip
    place, mean = listing.rows
    # On test the plain model is right on 72 of 90 and 8 of 10, and predicts 74 and 26: recalls 0.8 and 0.8, F1
    # 2 · 72 / (90 + 74) and 2 · 8 / (10 + 26). At 0.1 it is right on 54 and 10, and predicts 54 and 46.
    plain, other = 100 * (144 / 164 + 16 / 36) / 2, 100 * (108 / 144 + 20 / 56) / 2
    assert place[1:4] == ("80.00 −16.00", "80.00 0.00", f"{plain:.2f} {other - plain:+.2f}".replace("-", "−"))
    # Both are sure of everything: the calibration error is the share that is wrong, and it grows by 16 points.
    assert place[4:] == ("70.00 +10.00", "0.010 0.000", "0.010 0.000", "20.00 −16.00")
    assert mean[1] == "−16.00"


def test_the_strength_is_the_one_that_the_selection_picks() -> None:
    place, _ = metrics(LINES, made(LINES), "", "reweighted").rows
    assert place[1] == "80.00 +7.00"


def test_runs_without_measures_have_no_row() -> None:
    assert metrics(LINES, made(LINES, measured=False)).rows == ()


def test_the_command(tmp_path: Path) -> None:
    for measured in (True, False):
        with Store(tmp_path / f"{measured}.sqlite") as store:
            session = store.begin_session({})
            for line in LINES:
                for run in line.runs():
                    store.add(Record(run, outcome(run, measured), "b"), session)
    arguments = ["table", "digits-smoke", "--metrics", "--results", str(tmp_path / "True.sqlite")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "80.00 −16.00" in done.output
    assert "15 bins of equal width" in done.output
    assert "80.00 +7.00" in CliRunner().invoke(app, [*arguments, "--select", "reweighted"]).output
    for wrong in (["--select", "all"], ["--format", "csv"], ["--picked"]):
        assert CliRunner().invoke(app, [*arguments, *wrong]).exit_code == 2
    done = CliRunner().invoke(app, [*arguments[:-1], str(tmp_path / "False.sqlite")])
    assert (done.exit_code, "--measures records them." in done.output) == (1, True)
