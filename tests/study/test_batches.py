"""Batches: the same whatever is missing, and members that one program can train."""

from propreg.study.batches import cut, longest_first
from propreg.study.choosing import choose
from propreg.study.experiment import load_experiment


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
    part = cut(choose(table, ["dataset=cora,model=gcn,method=preg-reference"]))
    assert [len(batch.runs) for batch in part] == [500]
    assert all(batch.id in whole for batch in part)


def test_sizes_are_those_of_the_presets() -> None:
    table = load_experiment("table1")
    sizes = [len(batch.runs) for batch in cut(choose(table, ["dataset=physics,model=gat,method=preg-paper"]))]
    assert sizes == [125] * 4


def test_ids_are_stable() -> None:
    assert [batch.id for batch in cut(load_experiment("digits-smoke").lines)][:2] == [
        "6c0fdf170621de8a",
        "f0ca0518f707d68f",
    ]


def test_longest_first() -> None:
    costs = [batch.cost for batch in longest_first(cut(load_experiment("table1").lines))]
    assert costs == sorted(costs, reverse=True)
