"""Runs are counted once, and only those that an experiment has: on the page and in the README."""

from pathlib import Path

from propreg.report.study import collect
from propreg.store.progress import count_runs
from propreg.store.results import Results, load_results
from propreg.store.run import Run
from propreg.study.spec.experiment import load_experiment, study_names
from propreg.study.spec.unfold import unfolded
from study.sweeping import made_up

ROOT = Path(__file__).parents[2]
SMOKE = load_experiment("digits-smoke")


def _take(results: Results, run: Run) -> None:
    results.take(run.cell.text, [(run.split, run.seed, *vars(made_up(run)).values(), "b")])


def test_a_run_of_no_experiment_does_not_count() -> None:
    results, runs = Results(), list(SMOKE.runs())
    for run in [*runs[:30], *runs[:5]]:
        _take(results, run)
    _take(results, Run(runs[0].cell, 99, 99))
    assert len(results) == 31
    assert count_runs([SMOKE, SMOKE], results) == (30, 200)


def test_experiments_that_share_runs_count_them_once() -> None:
    both = [load_experiment(name) for name in ("table1", "table-phi")]
    every = {run.key for experiment in both for run in experiment.runs()}
    assert count_runs(both, Results()) == (0, len(every))
    assert len(every) < sum(len(list(experiment.runs())) for experiment in both)


def test_the_readme_and_the_page_count_alike() -> None:
    results = load_results(ROOT / "results")
    recorded, wanted = count_runs((unfolded(load_experiment(name), results) for name in study_names()), results)
    assert 0 < recorded <= len(results)
    said = {True: f"All {wanted:,} runs", False: f"{recorded:,} of the study's {wanted:,} runs are recorded, "}
    assert said[recorded == wanted] in (ROOT / "README.md").read_text(encoding="utf-8")
    few = Results()
    for run in list(load_experiment("table1").runs())[:3]:
        _take(few, run)
    grids = count_runs(map(load_experiment, study_names()), results)[1]
    assert count_runs((unfolded(load_experiment(name), few) for name in study_names()), few) == (3, grids)
    assert grids <= wanted
    page = collect(results, ["fig-tsne", "fig-strength"])
    mine = count_runs(map(load_experiment, ("fig-tsne", "fig-strength")), results)
    assert (page.recorded, page.wanted) == mine
