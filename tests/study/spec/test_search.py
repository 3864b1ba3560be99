"""Searches: the points of a space, successive halving by hand on made-up records, and batches that stay as they are."""

import hashlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from propreg.statistics import paired
from propreg.store.errors import StudyError
from propreg.store.results import Results
from propreg.store.run import Cell
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import Experiment, load_experiment, read_experiment, select_lines
from propreg.study.spec.part import Line
from propreg.study.spec.search import Halving, rungs_of, winner_of
from propreg.study.spec.sobol import DIMENSIONS, sobol
from propreg.study.spec.unfold import unfolded
from propreg.study.tables.search import configuration, listings, notes, search_rows, searches

SPACE = """
[spaces.small]
lr = { log = [0.001, 0.1] }
dropout = { uniform = [0.0, 0.8] }
hidden = { values = [8, 16] }
strength = { log = [0.01, 1.0] }

[[parts]]
datasets = ["digits"]
models = ["gcn"]
methods = ["plain", "preg-paper"]
splits = 2
space = "small"
rungs = [[4, 1], [2, 3]]
fresh = 2
"""
DIGEST = "94cc63e3"
NODES = 1000


def experiment(text: str = SPACE) -> Experiment:
    return read_experiment("small", text)


def made_up(lines: tuple[Line, ...], score: Callable[[Cell, int, int], tuple[int, int]]) -> Results:
    """Records of all runs of these lines, with validation and test nodes right out of a thousand."""
    results = Results()
    for line in lines:
        for cell in line.cells:
            runs = [(split, seed) for split in line.splits for seed in line.seeds]
            pairs = [(at, score(cell, *at)) for at in runs]
            results.take(cell.text, [[*at, val, NODES, test, NODES, 1, 1, None, None, ""] for at, (val, test) in pairs])
    return results


@pytest.mark.parametrize("dimensions", [1, 3, DIMENSIONS])
def test_the_sequence_is_that_of_torch(dimensions: int) -> None:
    engine = torch.quasirandom.SobolEngine(dimensions)  # type: ignore[no-untyped-call]
    theirs = engine.draw(256, dtype=torch.float64)
    assert np.array_equal(sobol(256, dimensions), theirs.numpy())


def test_points_fill_the_space_evenly() -> None:
    """By hand: point 0 is the center of the first of four intervals in each dimension."""
    plain, preg = experiment().lines
    first = preg.cells[0]
    assert first.lr == float(f"{0.001 * 100**0.125:.3g}")
    assert (first.dropout, first.model.hidden, first.strength) == (0.1, 8, float(f"{0.01 * 100**0.125:.3g}"))
    assert sorted(cell.dropout for cell in preg.cells) == [0.1, 0.3, 0.5, 0.7]
    assert [replace(cell.plain, strength=0.0) for cell in preg.cells] == list(plain.cells)


def test_the_points_of_the_search_for_the_best_are_fixed() -> None:
    """They were committed before its first run: whoever changes a space or the sequence changes the search."""
    lines = load_experiment("best").lines
    text = "\n".join(cell.text for line in lines for cell in line.cells)
    assert hashlib.sha256(text.encode()).hexdigest()[:8] == DIGEST
    assert len(lines) == 2 * 4 * 2 * 3
    for line in lines:
        assert len(set(line.cells)) == 128
        assert line.search is not None
        seeds = [line.search.seeds(rung) for rung in range(4)]
        assert [seed for each in seeds for seed in each] == list(range(seeds[-1][-1] + 1)), "each in one rung only"
    (public,) = {line.search for line in lines if not line.variant}
    assert public == Halving(((128, 5), (32, 20), (8, 50)), 100)
    assert {len(line.splits) * len(line.search.seeds(3)) for line in lines if line.search} == {100}


def test_both_sides_are_tuned_alike() -> None:
    """The same configurations but for the strength, on all ten splits, and as many runs."""
    lines = {(line.dataset, line.model, line.method.name): line for line in load_experiment("tuned").lines}
    assert len(lines) == 7 * 2 * 2
    for (dataset, model, method), line in lines.items():
        plain = lines[dataset, model, "plain"]
        assert [cell.plain for cell in line.cells] == list(plain.cells)
        assert len({cell.strength for cell in line.cells}) == (1 if method == "plain" else 64)
        assert (line.search, line.splits) == (plain.search, tuple(range(10)))
        assert {cell.split_kind for cell in line.cells} == {"official"}


def test_the_search_for_the_best_can_be_carried_over_many_calls() -> None:
    """A part of it at a time, in batches of the slow bases that a call of ten minutes ends, each with whole streams."""
    best = load_experiment("best")
    lines = select_lines(best, ["model=grand,dataset=cora,split=random"])
    assert {(line.dataset, line.model, len(line.splits)) for line in lines} == {("cora", "grand", 20)}
    assert [line.variant for line in select_lines(best, ["split=public"])] == [""] * (len(best.lines) // 2)
    for batch in cut(select_lines(best, ["model=grand,model=gcnii"])):
        streams = [(run.split, run.seed) for run in batch.runs]
        assert len(streams) <= 96
        assert len(streams) / len(set(streams)) == 128 / 4, "the configurations of one of four shapes"


def test_halving_by_hand() -> None:
    """Validation of configurations 0 … 3 with seed 0 is 1, 4, 3, 2: 1 and 2 go on, and 2 is better with all seeds."""
    plain, _ = whole = experiment().lines
    first = {cell.text: value for cell, value in zip(plain.cells, (100, 400, 300, 200), strict=True)}
    later = {plain.cells[1].text: 350, plain.cells[2].text: 420}

    def score(cell: Cell, split: int, seed: int) -> tuple[int, int]:
        text = cell.plain.text
        val = first.get(text, 0) if seed == 0 else later[text] if seed < 3 else 310
        return val + split, 500 + seed + 10 * (cell.strength > 0)

    assert rungs_of(plain, Results()) == [plain]
    second = rungs_of(plain, made_up(whole, score))
    assert [line.rung for line in second] == [0, 1]
    assert second[1].cells == (plain.cells[1], plain.cells[2])
    assert second[1].seeds == (1, 2)
    # (400 + 2 · 350) / 3 < (300 + 2 · 420) / 3
    third = rungs_of(plain, made_up((plain, second[1]), score))
    assert third[2].cells == (plain.cells[2],)
    assert third[2].seeds == (3, 4)
    found = winner_of(plain, made_up(tuple(third), score))
    assert found is not None
    assert found.cell == plain.cells[2]
    assert found.selecting.val.shape == (2, 3)
    assert found.fresh is not None
    # On two splits, in percent: 30, 42, 42 (+ 0.05 on average) of the selecting seeds, 31 of the fresh ones.
    assert found.optimism == pytest.approx((30 + 42 + 42) / 3 - 31)


def test_the_earlier_of_equal_configurations_goes_on() -> None:
    plain = experiment().lines[0]
    rungs = rungs_of(plain, made_up((plain,), lambda *_: (1, 1)))
    assert rungs[1].cells == plain.cells[:2]


def test_a_later_rung_leaves_the_batches_before_it_as_they_are() -> None:
    mine = experiment()
    results = made_up(mine.lines[:1], lambda *_: (1, 1))
    before, after = cut(mine.lines), cut(unfolded(mine, results).lines)
    assert [batch.id for batch in before] == [batch.id for batch in after if batch.id in {b.id for b in before}]
    assert len(after) > len(before)
    assert all(len({run.seed == 0 for run in batch.runs}) == 1 for batch in after), "no batch has runs of two rungs"
    streams = [[(run.split, run.seed) for run in batch.runs] for batch in after]
    assert all(each == sorted(each) for each in streams), "runs of one stream are side by side"


def test_configurations_that_differ_in_a_setting_per_replica_are_one_batch() -> None:
    text = SPACE.replace('"gcn"', '"grand"').replace("hidden = ", "temperature = { uniform = [0.1, 0.9] }\nhidden = ")
    assert [len(batch.runs) for batch in cut(experiment(text).lines)] == [4, 4, 4, 4]  # 2 methods × 2 widths
    plain = experiment(text.replace("values = [8, 16]", "values = [8]")).lines[0]
    assert len({cell.model for cell in plain.cells}) == 4
    assert [len(batch.runs) for batch in cut([plain])] == [8]


def test_the_table_shows_winners_optimism_and_gain() -> None:
    mine = experiment()

    def score(cell: Cell, split: int, seed: int) -> tuple[int, int]:
        better = cell.dropout == 0.3
        return 600 + 100 * better - seed, 500 + 10 * (cell.strength > 0) + seed + split

    results = Results()
    for _ in range(3):
        results = made_up(unfolded(mine, results).lines, score)
    lines = unfolded(mine, results).lines
    found = searches(lines, results)
    assert notes(found) == []
    plain, preg = search_rows(found, results)
    assert (plain.mean, preg.mean, preg.difference) == pytest.approx((50.4, 51.4, 1.0))  # fresh seeds 3, 4; splits 0, 1
    assert preg.against_plain == paired(np.full((2, 2), 51.0), np.full((2, 2), 50.0))
    assert preg.strength == next(cell.strength for cell in mine.lines[1].cells if cell.dropout == 0.3)
    winners, gains = listings(found)
    assert winners.rows[0][:4] == ("digits: GCN*", "69.90", "69.65", "+0.25")  # seeds 0 … 2 and 3, 4
    assert "dropout 0.3" in winners.rows[0][-1]
    assert gains.rows == (("digits: GCN + P-reg", "+1.00", "−3.62 … +5.62", "0.2222", "inconclusive"),)


def test_a_search_that_is_not_finished_says_so() -> None:
    mine = experiment()
    results = made_up(mine.lines[:1], lambda *_: (1, 1))
    found = searches(mine.lines, results)
    rows = search_rows(found, results)
    assert [row.verdict for row in rows] == ["incomplete: 8 of 20 runs", "incomplete: 0 of 20 runs"]
    assert listings(found) == []
    assert notes(found)[0].startswith("2 of 2 searches have no winner with fresh seeds yet")
    assert searches(load_experiment("table1").lines, results) == []


def test_configurations_are_described_by_what_differs() -> None:
    line = experiment().lines[1]
    assert configuration(line, line.cells[0]) == "lr 0.00178, dropout 0.1, hidden 8, μ 0.0178"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('space = "small"', 'space = "large"', "There is no space .large.. Known are: small"),
        ("fresh = 2", "", "has no fresh"),
        ("[[4, 1], [2, 3]]", "[[4, 3], [2, 3]]", "fewer configurations with more seeds"),
        ("fresh = 2", "fresh = 0", "fresh at least 1"),
        ("lr = { log = [0.001, 0.1] }", "lr = { log = [0.0, 0.1] }", "above 0 for log"),
        ("lr = { log = [0.001, 0.1] }", "lr = { linear = [0.1, 0.2] }", "must be like"),
        ("dropout =", "depth =", "setting of a space for gcn"),
        ("strength = { log = [0.01, 1.0] }", "", "needs a strength"),
    ],
)
def test_a_wrong_search_is_refused(old: str, new: str, words: str) -> None:
    assert old in SPACE
    with pytest.raises(StudyError, match=words):
        experiment(SPACE.replace(old, new))
