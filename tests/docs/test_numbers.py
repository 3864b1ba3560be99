"""The numbers in the prose are those of the record, and so is what the prose claims."""

import csv
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from typer.testing import CliRunner

from building.facts import Number, facts, hours, passages
from building.record import FORMS, MODELS, OFFICIAL_FORM, Curve, curves, training_curves
from building.regions import prose
from building.tables import SIZES, differing, region
from propreg.cli.app import app
from propreg.data.benchmarks.catalog import NODE_SETS
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.describe import homophily
from propreg.names import DATASETS
from propreg.store.results import Results, load_results
from propreg.store.run import Cell
from propreg.study.spec.experiment import load_experiment, study_names
from propreg.study.spec.paper import MARGIN, paper_number, published_strength, verdict
from propreg.study.spec.part import Line
from propreg.study.tables.ablation import CHANGES, changes
from propreg.study.tables.rows import OWN, Row, scores_of, signed, table_rows

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONFIDENCE = "confidence_penalty-paper"
MEASURED = re.compile(r"[\d.,]+\s(?:points?|%)")  # a number that only a run can give


@pytest.fixture(scope="module")
def table1(results: Results) -> dict[tuple[str, str], Curve]:
    return {(c.line.dataset, c.line.model): c for c in curves("table1", OFFICIAL_FORM, results)}


@pytest.fixture(scope="module")
def stated(results: Results) -> list[tuple[Path, str, str]]:
    """Every passage of numbers.toml with its page: as it is written there, and with the record's numbers."""
    known = facts(results)
    return [(page, passage, passage.format_map(known)) for page, passage in passages()]


def test_numbers_in_the_prose_are_those_of_the_record(stated: list[tuple[Path, str, str]]) -> None:
    pages = {page: prose(page.read_text(encoding="utf-8")) for page in PAGES}
    wrong = [f"{page.name} lacks: {text}" for page, _, text in stated if text not in pages[page]]
    assert wrong == []


def test_every_measured_number_in_the_prose_is_checked(stated: list[tuple[Path, str, str]]) -> None:
    """A number of points or per cent is an interval's 95 %, or in a passage of numbers.toml as a placeholder."""
    for page in PAGES:
        rest = prose(page.read_text(encoding="utf-8"))
        for _, _, text in (each for each in stated if each[0] == page):
            rest = rest.replace(text, "")
        assert [found for found in MEASURED.findall(rest) if found != "95 %"] == [], page.name
    for _, passage, _ in stated:
        assert MEASURED.findall(re.sub(r"\{[^}]*\}", "", passage)) == []


def test_a_wrong_number_is_found(stated: list[tuple[Path, str, str]]) -> None:
    page = prose((ROOT / "docs" / "study.md").read_text(encoding="utf-8"))
    mine = [text for path, _, text in stated if path.name == "study.md"]
    assert len(mine) >= 15
    for text in mine:
        typed = re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), text)
        assert text in page
        assert typed not in page


def test_numbers_are_written_as_people_write_them() -> None:
    assert f"{Number(-0.04):+.1f} {Number(-1.25):.1f} {Number(0.05):g} {Number(1234.5):,.0f}" == "0.0 −1.2 0.05 1,234"


def test_picks_are_those_of_the_table(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(app, ["table", "table1", "--picked", "--only", f"method={OFFICIAL_FORM}"]).stdout
    wanted = {tuple(place.split("/")): mu for place, mu in re.findall(r'"(\S+)" = (\S+)  # preg reference', printed)}
    rows = rows_of(region("picked", results))
    assert [row[0] for row in rows] == list(DATASETS.values())
    for name, row in zip(DATASETS, rows, strict=True):
        for model, cell in zip(MODELS, row[1:], strict=True):
            assert cell.partition(" (")[0] == wanted.get((name, model), "–")


def test_gains_are_those_of_the_table(table1: dict[tuple[str, str], Curve], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = ["table", "table1", "--format", "csv", "--only", f"method={OFFICIAL_FORM}"]
    head, *lines = CliRunner().invoke(app, arguments).stdout.splitlines()
    compared = 0
    for line in lines:
        row = dict(zip(head.split(","), line.split(","), strict=True))
        if row["selection"] == "validation" and row["difference"] and row["model"] in MODELS:
            mine = table1[row["dataset"], row["model"]].picked.gain
            assert signed(mine) == signed(float(row["difference"])) or abs(mine - float(row["difference"])) < 0.01
            compared += 1
    assert compared == len(table1) > 0


def test_hours_count_what_ran_side_by_side_once() -> None:
    sessions = [("cuda: A", "10:00:00", 1800), ("cuda: A", "10:10:00", 600), ("cuda: A", "10:20:00", 3000)]
    sessions += [("cuda: A", "23:00:00", 360), ("cpu", "10:00:00", 1800)]
    made_by = [{"device": device, "started": f"2026-11-16T{at}Z", "seconds": took} for device, at, took in sessions]
    assert f"{hours(made_by, 'A'):.1f} {hours(made_by, 'cpu'):.1f}" == "1.3 0.5"


def has_all(line: Line, results: Results) -> bool:
    here = sum(results.count(cell, line.splits, line.seeds) for cell in line.cells)
    return here == len(line.cells) * len(line.splits) * len(line.seeds)


def test_the_study_is_complete_but_for_three_molecule_sets_and_a_part_of_table_2(results: Results) -> None:
    lines = [(name, line) for name in study_names() for line in load_experiment(name).lines]
    missing = [(name, line) for name, line in lines if not has_all(line, results)]
    assert {name for name, _ in missing} == {"table2", "table3"}
    assert {x.dataset for name, x in missing if name == "table3"} == {"ogbg-molbbbp", "ogbg-moltox21", "ogbg-molhiv"}
    others = [(x.model, x.dataset) for name, x in missing if name == "table2" and x.model != "gam"]
    assert others == [("gcnii", "pubmed")]
    rows = [row for row in table_rows(load_experiment("table1"), results) if row.model in MODELS]
    assert all(row.mean is not None for row in rows)


def test_study_p_reg_on_top_of_other_methods(results: Results) -> None:
    rows = table_rows(load_experiment("table2"), results, rule=OWN)
    judged = [row for row in rows if row.selection == "validation" and row.mean is not None]
    better = {(row.model, row.dataset) for row in judged if row.against_plain and row.against_plain.verdict == "better"}
    helped = {"appnp", "deep-appnp", "s2gc", "dagnn", "tuned-gcn", "gmnn", "correct-smooth"}
    assert {model for model, _ in better if {(model, "cora"), (model, "citeseer")} <= better} == helped
    assert {model for model, dataset in better if dataset == "citeseer"} == helped | {"graph-unet", "graphmix", "nasa"}
    theirs = [row for row in judged if row.dataset == "pubmed" and (row.model, "pubmed") in better]
    on_pubmed = {row.model: row.difference or 0 for row in theirs}
    assert set(on_pubmed) == {"grand", "graph-unet"}
    assert max(on_pubmed.values()) < 1
    others = {"graphat", "graphvat", "o-bvat", "s-bvat", "nasa", "grand"}
    gains = [row.difference for row in judged if row.model in others and row.difference is not None]
    assert len(gains) == 3 * 6
    assert max(gains) < 0.6
    (s2gc,) = [row for row in rows if (row.model, row.dataset, row.method) == ("s2gc", "citeseer", "plain")]
    assert (s2gc.std or 0.0) < 0.05


def test_study_significance_depends_on_the_rule_that_selects_epochs(results: Results) -> None:
    own, common = (
        {
            (row.model, row.dataset): row.against_plain.verdict
            for row in table_rows(load_experiment("table2"), results, rule=rule)
            if row.selection == "validation" and row.against_plain is not None
        }
        for rule in (OWN, "")
    )
    lost = {"deep-appnp cora", "dagnn cora", "grand pubmed", "graph-unet pubmed", "nasa citeseer"}
    gained = {"gcnii cora", "grand citeseer", "appnp pubmed", "dagnn pubmed"}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for place, verdict_ in own.items():
        if verdict_ != common[place]:
            found[verdict_, common[place]].add(" ".join(place))
    assert found == {
        ("better", "inconclusive"): lost,
        ("inconclusive", "better"): gained,
        ("worse", "inconclusive"): {"nasa pubmed", "o-bvat citeseer"},
    }


def test_study_seeds_that_lose_a_class(results: Results) -> None:
    """Far below the others, at the last epoch of GraphAT's own rule and S-BVAT's."""
    for model, dataset, lost in (("graphat", "cora", 3), ("s-bvat", "citeseer", 1)):
        lines = load_experiment("table2").lines
        (line,) = [x for x in lines if (x.model, x.dataset, x.method.name) == (model, dataset, "plain")]
        found = scores_of(line, line.cells[0], results, line.own_rule)
        assert found is not None
        assert int((found.test < np.median(found.test) - 10).sum()) == lost


def test_study_p_reg_on_molecules_is_inconclusive(results: Results) -> None:
    rows = [row for row in table_rows(load_experiment("table3"), results) if row.selection != "test"]
    verdicts = [row.against_plain.verdict for row in rows if row.against_plain is not None]
    assert verdicts == ["inconclusive"] * 16


# What the pages say in words. Where one of these fails, new runs have changed the picture: change the page.


def test_index_it_helps_on_most_graphs(table1: dict[tuple[str, str], Curve]) -> None:
    gcn = [c for (_, model), c in table1.items() if model == "gcn"]
    assert sum(c.picked.difference.low > 0 for c in gcn) > len(gcn) / 2


def test_choosing_accuracy_rises_is_flat_and_falls(table1: dict[tuple[str, str], Curve]) -> None:
    cora = table1["cora", "gcn"]
    best = cora.best_on_test
    assert 0.1 < best.mu < 0.9
    assert cora.points[0].gain < best.gain
    assert cora.points[-1].gain < best.gain - 3
    flat = [p for p in cora.points if p.gain > best.gain - 1]
    assert flat[-1].mu - flat[0].mu >= 0.3


def test_choosing_most_runs_gain_at_mu_1_and_some_collapse(results: Results) -> None:
    lines = load_experiment("table1").lines
    (line,) = [x for x in lines if (x.model, x.dataset, x.method.name) == ("gcn", "cora", "preg-paper")]
    (cell,) = [each for each in line.cells if each.strength == 1.0]
    found = [results.accuracies(each, line.splits, line.seeds) for each in (cell, cell.plain)]
    gains = np.subtract(*[each.test for each in found if each is not None])
    assert (gains.size, int((gains > 0).sum()), int((gains < -20).sum())) == (25, 14, 5)
    assert np.sort(gains, axis=None)[5] > -13


def test_choosing_an_mlp_gains_most_and_wants_a_small_mu(table1: dict[tuple[str, str], Curve]) -> None:
    for name in DATASETS:
        mlp, gcn = table1[name, "mlp"], table1[name, "gcn"]
        assert mlp.picked.gain > gcn.picked.gain
        assert not gcn.helping or mlp.helping[-1].mu < gcn.helping[-1].mu
    highest = {model: max(c.picked.mu for (_, mine), c in table1.items() if mine == model) for model in MODELS}
    assert highest["mlp"] < min(highest["gcn"], highest["gat"])


def test_choosing_the_fall_can_be_steep_and_validation_shows_it(table1: dict[tuple[str, str], Curve]) -> None:
    steep = [c.points[-1] for c in table1.values() if c.points[-1].gain < -5]
    assert steep
    assert all(point.val < point.plain_val for point in steep)
    falls = [c for (_, m), c in table1.items() if m == "gcn" and c.points[-1].gain < -5]
    assert all(point.gain > -5 for c in falls for point in c.points if point.mu <= 0.5)


def test_choosing_few_labels_hurt_and_validation_sees_it(results: Results) -> None:
    for method in FORMS:
        found = training_curves(results, method)
        few = found[35]
        assert few.points[0].mu == 0.2
        assert all(point.difference.high < 0 for point in few.points)
        assert few.points[0].plain_val > max(point.val for point in few.points) + 5
        gains = [max(point.gain for point in found[size].points) for size in SIZES if size >= 140]
        assert gains[0] > max(gains[1:])


def test_choosing_pubmed(table1: dict[tuple[str, str], Curve]) -> None:
    for model in ("gcn", "gat"):
        assert table1["pubmed", model].helping == []
    validation = 30 * NODE_SETS["pubmed"].classes
    assert validation == 90
    assert 100 / validation > 1
    assert table1["pubmed", "gcn"].best_on_test.gain < 100 / validation


def test_choosing_pubmed_links_papers_of_the_same_class() -> None:
    folder = os.environ.get("PROPREG_DATA")
    if not folder or not (Path(folder) / "pubmed.npz").exists():
        pytest.skip("the benchmark files are not there: set PROPREG_DATA to the folder that holds pubmed.npz")
    graph = load_node_graph("pubmed", folder)
    assert homophily(graph.edge_index, graph.y) > 0.7


def test_forms_neither_is_ahead_everywhere(results: Results) -> None:
    cells = [float(row[-1].replace("−", "-")) for row in rows_of(region("forms", results))]
    assert min(cells) < 0 < max(cells)
    assert np.abs(cells).mean() < 0.5


def test_forms_one_pass_does_at_least_as_well_as_two(results: Results) -> None:
    known = facts(results)
    means = [known["forms_apart"][model] for model in ("", *MODELS)]
    rows = [row for row in rows_of(region("forms", results)) if "random splits" in row[0]]
    by_model = {
        name: [float(r[-1].replace("−", "-")) for r in rows if r[0].startswith(name)] for name in MODELS.values()
    }
    assert [len(each) for each in by_model.values()] == [7, 7, 7]
    # The table's numbers are rounded, the sentence's were not.
    expected = [np.mean([*by_model.values()]), *(np.mean(each) for each in by_model.values())]
    assert means == pytest.approx(expected, abs=0.1)
    assert means[0] > 0
    assert min(means) >= -0.05


def test_forms_which_changes_matter(results: Results) -> None:
    """The three groups of the page: significant on one dataset at most in either direction, worse on most, or mixed."""
    judged = {
        method: [e.verdict for e in changes(results, method) if e.verdict in ("better", "worse")] for method in CHANGES
    }
    assert {len(changes(results, method)) for method in CHANGES} == {7}
    none = {"preg-sym", "preg-loops", "preg-sym_loops", "preg-two_passes", "preg-reference"}
    none |= {"preg-threshold_0_1", "preg-threshold_0_5"}
    worse = {"preg-detach_self", "preg-paper_squared_error", "preg-paper_kl"}
    assert {method for method, found in judged.items() if max(found.count("better"), found.count("worse")) <= 1} == none
    assert [method for method in none if len(judged[method]) > 1] == ["preg-sym_loops"]
    assert {method for method, found in judged.items() if found.count("worse") > 3} == worse
    assert all(judged[method].count("better") == 0 for method in worse)
    mixed = {"preg-detach_neighbors", "preg-annealed"}
    assert {*CHANGES} == none | worse | mixed


def test_choosing_schedules(results: Results) -> None:
    wanted = {
        "preg-annealed": {"photo": "better", "citeseer": "worse", "pubmed": "worse"},
        "preg-threshold_0_1": {},
        "preg-threshold_0_5": {"photo": "worse"},
    }
    for method, judged in wanted.items():
        assert {e.dataset: e.verdict for e in changes(results, method) if e.verdict in ("better", "worse")} == judged


def test_study_the_margin_is_larger_than_some_gains(table1: dict[tuple[str, str], Curve]) -> None:
    gains = {place: each.picked.gain for place, each in table1.items() if place[1] != "mlp"}
    small = {dataset for dataset, _ in gains if max(gains[dataset, model] for model in ("gcn", "gat")) < MARGIN}
    assert small == {"pubmed", "cs", "physics"}


def test_study_the_choices_of_mu(results: Results) -> None:
    table = {row[0]: row[1:] for row in rows_of(region("choices of μ", results))}
    assert len(table) == len(MODELS) * len(DATASETS)
    assert not any("–" in row for row in table.values()), "all of them are recorded"
    rows = [
        row
        for row in table_rows(load_experiment("table1"), results)
        if (row.method, row.preset) == ("preg", "reference")
    ]
    for row in rows:
        validation, test, _, paper = table[f"{MODELS[row.model]}, {DATASETS[row.dataset]}"]
        assert row.mean is not None
        assert row.paper_mean is not None
        chosen = validation if row.selection == "validation" else test
        assert chosen == f"{row.mean:.2f} ({row.strength:g})"
        assert paper == f"{row.paper_mean:.2f}"
    known = facts(results)
    physics, paper_mean = "table1/mlp/physics/preg-reference", _paper("mlp", OFFICIAL_FORM, "physics")
    assert known["mu"][f"{physics}/published"] < 0.05, "off the grid"
    assert abs(known["test"][f"{physics}/published"] - paper_mean) < 0.5 < paper_mean - known["test"][f"{physics}/best"]


def test_study_the_papers_numbers_are_those_of_mu_picked_on_test(results: Results) -> None:
    known = facts(results)
    validation, best, published = (
        known["from_paper"][f"preg-reference/{at}"] for at in ("picked", "best", "published")
    )
    assert abs(known["less_paper"]["preg-reference/best"]) < 0.1
    assert best < validation
    assert published < validation


def test_study_every_place_that_differs_is_explained(results: Results) -> None:
    """A place that comes or goes with new runs: change the reasons in the page."""
    found = {(row.method, row.model, row.dataset) for _, row, _ in differing(results) if "squared" not in row.preset}
    assert found == {
        *(("preg", "gcn", dataset) for dataset in ("computers", "cora")),
        *(("preg", "gat", dataset) for dataset in ("computers", "citeseer")),
        *(("preg", "mlp", dataset) for dataset in ("physics", "photo")),
        ("plain", "gat", "cora"),
        ("confidence_penalty", "gcn", "citeseer"),
        ("confidence_penalty", "mlp", "physics"),
        *(("label_smoothing", model, "physics") for model in ("gcn", "mlp")),
        *(("confidence_penalty", "gat", dataset) for dataset in ("citeseer", "computers", "photo")),
        *(("laplacian", "mlp", dataset) for dataset in ("cora", "citeseer", "physics")),
        *(("laplacian", "gat", dataset) for dataset in ("citeseer", "computers")),
    }
    rows = [row for row in table_rows(load_experiment("table-phi"), results) if row.preset == "reference, KL"]
    judged = {(row.model, row.dataset): row.verdict for row in rows if row.selection == "validation" and row.mean}
    assert (judged.pop(("gat", "citeseer")), judged.pop(("gat", "computers"))) == ("lower", "higher")
    assert [*judged.values()] == ["reproduced"] * 12
    squared = {row.dataset for _, row, _ in differing(results) if "squared" in row.preset}
    assert {"cora", "citeseer"} <= squared


def test_study_what_is_said_of_a_gat_on_computers(results: Results) -> None:
    rows = [row for name in ("table1", "table-phi") for row in table_rows(load_experiment(name), results)]
    mine = [row for row in rows if (row.model, row.dataset) == ("gat", "computers") and row.selection != "test"]
    plain = next(row for row in mine if row.method == "plain" and row.paper_mean is not None)
    named = ("confidence_penalty-paper", "preg-reference, squared error", "preg-reference, KL")
    three = [row for row in mine if f"{row.method}-{row.preset}" in named]
    assert len(three) == 3
    for row in three:
        assert row.paper_mean is not None and plain.paper_mean is not None  # noqa: PT018
        assert row.paper_mean < plain.paper_mean - 1
        assert row.mean is not None and plain.mean is not None  # noqa: PT018
        assert abs(row.mean - plain.mean) < 1


@pytest.mark.parametrize("dataset", ["computers", "citeseer"])
def test_study_what_is_said_of_a_laplacian_of_a_gat(results: Results, dataset: str) -> None:
    rows = [row for row in table_rows(load_experiment("table1"), results) if row.method == "laplacian"]
    judged = {row.preset + " " + row.selection: row.verdict for row in rows if _place(row) == ("gat", dataset)}
    assert judged["sum validation"] == "lower"
    assert judged["sum test"] == judged["mean test"] == "reproduced"
    assert judged["mean validation"] == {"computers": "reproduced", "citeseer": "inconclusive"}[dataset]
    assert (judged["official validation"] == "lower") == (dataset == "citeseer")


def test_study_what_is_said_of_the_choice_of_strength(results: Results) -> None:
    rows = table_rows(load_experiment("table1"), results)
    found = {(r.method, r.preset, r.model, r.dataset, r.selection): (r.strength, r.verdict) for r in rows}
    smoothing = [found["label_smoothing", "", "mlp", "physics", way] for way in ("validation", "test")]
    assert smoothing == [(0.7, "lower"), (0.0001, "reproduced")]
    verdicts = {place: verdict for place, (_, verdict) in found.items()}
    for model, dataset in (("gcn", "citeseer"), ("mlp", "physics")):
        both = [verdicts["confidence_penalty", "paper", model, dataset, way] for way in ("validation", "test")]
        assert both == ["lower", "reproduced"]
    gat = next(r for r in rows if (r.model, r.dataset, r.method) == ("gat", "cora", "plain"))
    assert (gat.mean or 0.0) - (gat.paper_mean or 0.0) == pytest.approx(0.5, abs=0.1)
    penalty = [
        {verdicts["confidence_penalty", sign, "gat", dataset, way] for way in ("validation", "test")}
        for dataset in ("citeseer", "computers", "photo")
        for sign in ("paper", "official sign")
    ]
    assert penalty == [{"lower"}, {"lower", "reproduced"}, {"higher"}, {"higher"}, {"higher"}, {"higher"}]
    assert verdicts["confidence_penalty", "official sign", "gat", "citeseer", "test"] == "reproduced"
    for dataset in ("computers", "photo"):
        assert _paper("gat", CONFIDENCE, dataset) < _paper("gat", "plain", dataset)
    assert {verdicts["laplacian", "official", "mlp", "cora", way] for way in ("validation", "test")} == {"higher"}
    assert verdicts["laplacian", "official", "gat", "citeseer", "test"] == "inconclusive"
    for dataset, is_lower in (("citeseer", True), ("computers", False), ("photo", False)):
        for name in (CONFIDENCE, "confidence_penalty-official")[: 1 if is_lower else 2]:
            ours, paper = _by_strength(results, "gat", dataset, name), _paper("gat", CONFIDENCE, dataset)
            assert all((each < paper) == is_lower for each in ours.values())


@pytest.mark.parametrize("dataset", ["cora", "citeseer"])
def test_study_what_is_said_of_the_laplacians_grid(results: Results, dataset: str) -> None:
    ours, paper = _by_strength(results, "mlp", dataset, "laplacian-mean"), _paper("mlp", "laplacian-mean", dataset)
    assert max(ours, key=lambda mu: ours[mu]) == 0.03
    assert ours[0.01] < paper < ours[0.1] < ours[0.03]


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "physics"])
def test_study_what_is_said_of_a_laplacian_of_an_mlp(results: Results, dataset: str) -> None:
    rows = [row for row in table_rows(load_experiment("table1"), results) if row.method == "laplacian"]
    judged = {row.preset + " " + row.selection: row.verdict for row in rows if _place(row) == ("mlp", dataset)}
    if dataset == "physics":
        assert judged["sum validation"] == judged["official validation"] == "lower"
        assert {judged[f"{form} test"] for form in ("mean", "sum", "official")} == {"reproduced"}
        assert judged["mean validation"] == "reproduced"
    else:
        assert {judged[f"{form} {way}"] for form in ("mean", "sum") for way in ("validation", "test")} == {"higher"}


def test_study_what_is_said_of_the_mlp_on_photo(results: Results) -> None:
    rows = [row for row in table_rows(load_experiment("table1"), results) if (row.model, row.method) == ("mlp", "preg")]
    verdicts = {(row.dataset, row.preset, row.selection): row.verdict for row in rows}
    assert verdicts["photo", "reference", "validation"] == "lower"
    assert verdicts["photo", "reference", "test"] == "inconclusive"
    assert _at_published_strength(results, "photo") == "lower"
    assert _at_published_strength(results, "physics") == "reproduced"
    stds = {row.dataset: row.paper_std or 0.0 for row in rows}
    assert stds["photo"] > np.median([*stds.values()])


def _by_strength(results: Results, model: str, dataset: str, method: str) -> dict[float, float]:
    """The mean test accuracy at each strength of Table 1."""
    lines = load_experiment("table1").lines
    line = next(x for x in lines if (x.model, x.dataset, x.method.name) == (model, dataset, method))
    found = {cell.strength: results.accuracies(cell, line.splits, line.seeds) for cell in line.cells}
    return {mu: float(each.test.mean()) for mu, each in found.items() if each is not None}


def _paper(model: str, method: str, dataset: str) -> float:
    found = paper_number("table1", model, method, dataset)
    assert found is not None
    return found[0]


def _place(row: Row) -> tuple[str, str]:
    return row.model, row.dataset


def _at_published_strength(results: Results, dataset: str) -> str:
    mu, number = published_strength("mlp", dataset), paper_number("table1", "mlp", OFFICIAL_FORM, dataset)
    line = next(
        c.line for c in curves("table1", OFFICIAL_FORM, results) if (c.line.model, c.line.dataset) == ("mlp", dataset)
    )
    assert mu is not None
    assert number is not None
    found = results.accuracies(replace(line.cells[0], strength=mu), line.splits, line.seeds)
    assert found is not None
    return verdict(found.test, number[0])


def test_study_squared_error(results: Results) -> None:
    """Against the table that the command prints."""
    table = csv.DictReader(io.StringIO(CliRunner().invoke(app, ["table", "table-phi", "--format", "csv"]).stdout))
    rows = [row for row in table if row["preset"] == "reference, squared error" and row["mean"]]
    picked = [row for row in rows if row["selection"] == "validation"]
    helped = {
        (row["model"], row["dataset"])
        for row in picked
        if float(row["difference"]) > 0 and float(row["p_value"]) < 0.05
    }
    assert helped == {("gcn", "computers")}
    known = facts(results)
    for row in picked:
        gain = known["gain"][f"table-phi/{row['model']}/{row['dataset']}/preg-squared_error"]
        assert gain == pytest.approx(float(row["difference"]), abs=0.01)
    assert len(picked) == 14
    near = [abs(known["squared_in_paper"][f"gat/{name}"]) < 1 for name in DATASETS]
    assert near.count(True) == 5
    assert max(abs(known["squared_in_paper"][f"gcn/{name}"]) for name in DATASETS) == known["squared_in_paper"]["gcn"]
    for model in ("gcn", "gat"):
        assert known["squared_distance"][f"{model}/L2 of probabilities"] > 0.5, "the page says that it explains nothing"
    verdicts = [row["verdict"] for row in picked]
    assert all(known["squared_verdicts"][each] == verdicts.count(each) for each in {*verdicts})


def test_study_runs_that_never_stopped(results: Results) -> None:
    late = [text for text, _, _, outcome, _ in results.runs() if outcome.epochs == 10_000]
    further = {json.loads(text)["model"]["name"] for text, *_, outcome, _ in results.runs() if outcome.epochs > 10_000}
    assert further <= {"gam"}, "whose epochs are those of all its rounds"
    assert not any("max_epochs" in json.loads(text).get("protocol", {}) for text in late)
    known = facts(results)
    assert f"{known['late']:.0f}" == f"{len(late)}"
    assert known["late"]["physics"] == sum(json.loads(text)["dataset"] == "physics" for text in late)


def test_study_runs_that_are_traced(results: Results) -> None:
    sessions = json.loads((ROOT / "results" / "runs.provenance.json").read_text(encoding="utf-8"))
    batches = {batch for session in sessions for batch in session.get("batches", ())}
    runs = [batch for _, _, _, _, batch in load_results(ROOT / "results").runs()]
    known = facts(results)
    assert f"{known['sessions_runs']:.0f}" == f"{len(runs)}"
    # Of a batch that was begun before sessions named theirs, and ended after, only what was trained after counts.
    assert 0 < int(f"{known['traced_runs']:.0f}") <= sum(batch in batches for batch in runs)


def test_a_change_that_is_none_changes_nothing(results: Results) -> None:
    """The paper preset is in the ablation for other models and settings too: none of these may stand in for GCN."""
    assert {each.apart.mean for each in changes(results, "preg-paper")} == {0.0}


def test_study_label_smoothing_of_a_gcn_on_physics(results: Results) -> None:
    rows = table_rows(load_experiment("table1"), results)
    mine = {r.selection: r for r in rows if (r.model, r.dataset, r.method) == ("gcn", "physics", "label_smoothing")}
    found = {selection: (row.strength, row.verdict) for selection, row in mine.items()}
    assert found == {"validation": (0.99, "lower"), "test": (0.0001, "reproduced")}


@pytest.mark.parametrize("method", ["preg-sym", "preg-paper_squared_error", "preg-annealed"])
def test_changes_are_those_of_the_runs(results: Results, method: str) -> None:
    """From the runs themselves; the preset's from the strengths that the change has, where it has them all."""
    lines = {
        (line.method.name, line.dataset): line
        for line in load_experiment("ablation").lines
        if line.model == "gcn" and not line.variant
    }
    val, test = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for text, _, _, outcome, _ in results.runs():
        val[text].append(outcome.val / outcome.val_of)
        test[text].append(outcome.test / outcome.test_of)

    def best(cells: Sequence[Cell]) -> float:
        return 100 * fmean(test[max(cells, key=lambda cell: round(fmean(val[cell.text]), 12)).text])

    found = changes(results, method)
    assert len(found) >= 6
    for dataset, change in ((each.dataset, each.apart.mean) for each in found):
        mine, base = lines[method, dataset].cells, lines["preg-paper", dataset].cells
        same = [cell for cell in base if cell.strength in {cell.strength for cell in mine}]
        assert change == pytest.approx(best(mine) - best(same if len(same) == len(mine) else base))


def rows_of(table: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_curves_are_in_order(table1: dict[tuple[str, str], Curve]) -> None:
    for each in table1.values():
        assert all(a.mu < b.mu for a, b in pairwise(each.points))
