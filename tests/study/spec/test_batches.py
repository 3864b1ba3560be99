"""Batches: the same whatever is missing, and members that one program can train."""

import json
from collections import defaultdict
from pathlib import Path

from propreg.store.results import load_results
from propreg.study.spec.batches import cut, longest_first, of_seeds
from propreg.study.spec.experiment import experiment_names, load_experiment, select_lines
from propreg.study.spec.unfold import unfolded

RESULTS = Path(__file__).parents[3] / "results"


def test_every_run_is_in_one_batch() -> None:
    experiment = load_experiment("table-standard-gcn-gat")
    keys = [run.key for batch in cut(experiment.lines) for run in batch.runs]
    assert sorted(keys) == sorted(run.key for run in experiment.runs())


def test_members_share_what_a_program_needs() -> None:
    for batch in cut(load_experiment("ablation").lines):
        shared = {(r.cell.dataset, r.cell.digest, r.cell.model, r.cell.method, r.cell.protocol) for r in batch.runs}
        assert len(shared) == 1
        assert len({(run.cell.normalize, run.cell.labels, run.cell.measure) for run in batch.runs}) == 1


def test_batches_of_a_line_do_not_depend_on_the_others() -> None:
    table = load_experiment("table1")
    whole = {batch.id for batch in cut(table.lines)}
    part = cut(select_lines(table, ["dataset=cora,model=gcn,method=preg-reference"]))
    assert [len(batch.runs) for batch in part] == [500]
    assert all(batch.id in whole for batch in part)


def test_sizes_are_those_of_the_presets() -> None:
    table = load_experiment("table1")
    sizes = [len(batch.runs) for batch in cut(select_lines(table, ["dataset=physics,model=gat,method=preg-paper"]))]
    assert sizes == [125] * 4


def test_ids_are_stable() -> None:
    assert [batch.id for batch in cut(load_experiment("digits-smoke").lines)][:2] == [
        "6c0fdf170621de8a",
        "f0ca0518f707d68f",
    ]


def test_longest_first() -> None:
    costs = [batch.cost for batch in longest_first(cut(load_experiment("table1").lines))]
    assert costs == sorted(costs, reverse=True)


def test_strengths_that_came_later_leave_the_batches_of_the_others_as_they_were() -> None:
    batches = cut(select_lines(load_experiment("table1"), ["dataset=cora,model=gcn,method=label_smoothing"]))
    strengths = [sorted({run.cell.strength for run in batch.runs}) for batch in batches]
    assert [len(batch.runs) for batch in batches] == [300, 25]
    assert 0.99 not in strengths[0]
    assert strengths[1] == [0.99]


def test_ten_splits_have_the_batches_of_table_1() -> None:
    """So the runs that both have are trained once, and each batch of the record is missing as a whole or not at all."""
    table = cut(select_lines(load_experiment("table1"), ["method=plain,method=preg"]))
    ten = {batch.id: batch for batch in cut(load_experiment("ten-splits").lines)}
    assert {batch.id for batch in table} <= ten.keys()
    shared = {run.key for batch in table for run in batch.runs}
    others = [batch for id, batch in ten.items() if id not in {batch.id for batch in table}]
    assert not shared & {run.key for batch in others for run in batch.runs}
    assert all(batch.measures for batch in ten.values())
    later = {run.cell.strength for batch in others for run in batch.runs if run.split < 5}
    assert later == {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02}


def test_log_grids_have_the_batches_of_the_grids_that_they_extend() -> None:
    table = {batch.id for batch in cut(load_experiment("table-phi").lines)}
    log = cut(load_experiment("table-phi-log").lines)
    added = {run.cell.strength for batch in log if batch.id not in table for run in batch.runs}
    assert added == {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02}


def test_runs_of_the_record_are_in_batches_that_the_experiments_still_make() -> None:
    """Else they could not be trained again bit for bit."""
    results = load_results(RESULTS)
    experiments = [unfolded(load_experiment(name), results) for name in experiment_names()]
    cells = {cell.text for experiment in experiments for line in experiment.lines for cell in line.cells}
    made = {batch.id for experiment in experiments for batch in cut(experiment.lines)}
    recorded = [(text, batch) for text, _, _, _, batch in results.runs()]
    assert len(recorded) > 90_000
    seeds: dict[str, set[int]] = defaultdict(set)
    for text, _, seed, _, batch in results.runs():
        if text in cells and batch not in made:
            seeds[batch].add(seed)
    for some in {tuple(sorted(each)) for each in seeds.values()}:  # propreg reproduce --seeds trained these
        made |= {b.id for experiment in experiments for b in cut(of_seeds(experiment.lines, {*some}))}
    lost = {json.loads(text)["method"]["name"] for text, batch in recorded if text in cells and batch not in made}
    assert not lost


def test_a_part_of_the_seeds_is_cut_as_the_command_cuts_it() -> None:
    experiment = load_experiment("table2")
    whole = unfolded(experiment, load_results(RESULTS)).lines
    assert any(line.beyond and line.cells[-1].strength in line.beyond for line in whole)
    these = cut(select_lines(experiment, ["model=appnp"], seeds=[1, 2]))
    those = cut(of_seeds([line for line in whole if line.model == "appnp"], {1, 2}))
    assert [batch.id for batch in these] == [batch.id for batch in those]
    assert not {batch.id for batch in these} & {batch.id for batch in cut(whole)}
