"""The study's page says what the tables say: the same numbers, the same verdicts, and what is missing."""

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from propreg.report.overview import add_up, matrices, tallies
from propreg.report.study import collect
from propreg.report.study_html import machines, page_of, study_page
from propreg.report.text import number
from propreg.report.wide import SHOWN, Entry, widen
from propreg.store.export import write_export
from propreg.store.results import Results
from propreg.store.run import Run
from propreg.study.spec.experiment import BESIDE, experiment_names, load_experiment, study_names
from propreg.study.tables.rows import table_rows
from report.reading import Reading, read
from report.samples import HOSTILE, made_up, study_lines


@pytest.fixture(scope="module")
def results() -> Results:
    return made_up(study_lines())


@pytest.fixture(scope="module")
def page(study_html: str) -> Reading:
    return read(study_html)


def packed_data(page: Reading) -> Any:
    (runs,) = [each for each in page.all("script") if each.attributes.get("id") == "runs"]
    return json.loads(gzip.decompress(base64.b64decode(runs.text)))


def test_all_experiments_of_the_study_are_there(page: Reading) -> None:
    sections = {each.attributes.get("id") for each in page.all("section")}
    assert sections >= set(study_names()) == set(experiment_names()) - set(BESIDE)
    assert not sections & set(BESIDE)
    assert {"table1", "fig-mask"} <= set(study_names())


def test_tables_hold_the_numbers_of_the_rows(page: Reading, results: Results) -> None:
    for row in table_rows(load_experiment("table1"), results):
        if row.mean is not None:
            assert f"{row.mean:.2f} ± {row.std:.2f}" in page.text
            assert f"{row.low:.2f} to {row.high:.2f}" in page.text
        if row.difference is not None:
            assert number(row.difference, sign=True) in page.text
        assert row.paper_mean is not None
        assert f"paper {row.paper_mean:.2f} ± {row.paper_std:.2f}" in page.text


def test_missing_runs_are_said(page: Reading, results: Results) -> None:
    study = collect(results)
    assert f"{study.recorded:,} of {study.wanted:,} trainings" in page.text
    assert "0 of 500 runs recorded" in page.text
    assert "No run of this figure is recorded yet" in page.text
    assert "propreg reproduce fig-training-nodes" in page.text


def test_an_empty_record_has_a_page_that_says_so() -> None:
    text = read(page_of(Results())).text
    assert "No run of Table 1 is recorded" in text
    assert "has been rerun in this record" in text
    assert "0 of 25 runs recorded" in text
    assert "does not name the machines" in text


def test_runs_come_back_with_their_keys(page: Reading, results: Results) -> None:
    """The page computes keys from the cell's text: they must be those of the study."""
    data = packed_data(page)
    line = next(each for each in data["lines"] if each["method"] == "preg-reference" and each["dataset"] == "cora")
    mine = next(each for each in study_lines() if each.method.name == "preg-reference" and each.dataset == "cora")
    grid, cell = data["grids"][line["grids"][3]], mine.cells[3]
    assert grid["cell"] == cell.text
    run = Run(cell, 1, 2)
    assert run.text == f'{{"cell":{grid["cell"]},"seed":2,"split":1}}'
    outcome = results.outcome(cell, 1, 2)
    place = grid["splits"].index(1) * len(grid["seeds"]) + grid["seeds"].index(2)
    assert outcome is not None
    assert (grid["val"][place], grid["test"][place], grid["epoch"][place]) == (
        outcome.val,
        outcome.test,
        outcome.epoch,
    )
    assert (grid["val_of"], grid["test_of"]) == (1000, 1000)


def test_each_runs_grid_is_kept_once(page: Reading) -> None:
    data = packed_data(page)
    cells = [(grid["cell"], tuple(grid["splits"]), tuple(grid["seeds"])) for grid in data["grids"]]
    assert len(cells) == len(set(cells))


def test_squares_show_the_difference_and_the_papers(results: Results) -> None:
    first = matrices(collect(results, ["table1"]))[0]
    assert first.preset == "reference"
    (cora,) = [each for each in first.squares if (each.row.model, each.row.dataset) == ("gcn", "cora")]
    assert cora.apart is not None
    assert cora.apart.mean == pytest.approx(cora.row.difference)
    assert cora.paper == pytest.approx(82.83 - 79.47)
    assert cora.tone == "gain-4"
    (gat,) = [each for each in first.squares if (each.row.model, each.row.dataset) == ("gat", "cora")]
    assert (gat.apart, gat.tone) == (None, "unknown")
    (citeseer,) = [each for each in first.squares if (each.row.model, each.row.dataset) == ("gcn", "citeseer")]
    assert citeseer.tone.startswith("loss-")
    assert (first.known, first.counts["better"], first.counts["worse"]) == (2, 1, 1)
    assert "official-code form, from which the paper’s numbers come" in first.form
    assert first.counts["not recorded"] == 19


def test_every_printed_number_is_counted_once(results: Results) -> None:
    found = {tally.section: tally for tally in tallies(collect(results))}
    # Three models × five rows × seven datasets; Table 2 here two × two. Appendix F prints two models × four rows, of
    # which two rows are Table 1's again, but for GAT on PubMed, where it prints other numbers.
    assert (found["table1"].total, found["table-phi"].total, found["table-standard-gcn-gat"].total) == (105, 30, 12)
    assert [found[name].elsewhere for name in ("table1", "table-phi", "table-standard-gcn-gat")] == [0, 26, 0]
    assert (found["table1"].recorded, found["table-phi"].recorded) == (10, 0)
    held = add_up(found.values())
    assert found["table3"].total == 40  # five datasets, four models, without and with P-reg
    assert found["table2"].total == 24  # eight methods of others on three graphs
    assert sum(held.values()) == 105 + 30 + 12 + 40 + 24
    assert f"{held['not recorded']} not recorded" in read(page_of(results)).text


def test_a_table_by_itself_counts_all_its_numbers(results: Results) -> None:
    (alone,) = tallies(collect(results, ["table-phi"]))
    assert (alone.total, alone.elsewhere, alone.recorded) == (56, 0, 4)


def test_the_page_says_what_the_interval_is(page: Reading) -> None:
    assert "95 % interval of the mean by Student's t on the means of splits" in page.text
    assert "prints 26 numbers of Table 1 again, which count there" in page.text


def test_a_large_p_value_leaves_it_open(results: Results) -> None:
    """A difference is as significant as its p-value, whatever its mean."""
    first = matrices(collect(results, ["table1"]))[0]
    square = next(each for each in first.squares if each.apart is not None and each.verdict == "better")
    assert square.apart is not None
    doubtful = replace(square, row=replace(square.row, against_plain=replace(square.apart, p_value=0.05)))
    assert doubtful.apart is not None
    assert doubtful.apart.mean > 0
    assert (doubtful.verdict, doubtful.tone) == ("inconclusive", "even")


def test_rows_of_a_wide_table_keep_their_order_where_runs_are_missing() -> None:
    """The first dataset is not recorded: its best-on-test rows are met late, and must still stand below their own."""
    lines = [line for line in study_lines() if line.dataset == "citeseer"]
    (section,) = collect(made_up(lines), ["table1"]).sections
    gcn = [(row.label, row.of.selection) for row in widen(section).rows if row.of.model == "gcn"]
    place = gcn.index(("P-reg (official-code form)", "validation"))
    assert gcn[place + 1] == ("P-reg (official-code form)", "test")
    assert gcn[0] == ("plain", "none")


def test_provenance_is_a_courtesy_and_hostile_text(tmp_path: Path) -> None:
    said = [{"device": text, "torch": text, "propreg": text, "runs": 1} for text in HOSTILE]
    (tmp_path / "a.provenance.json").write_text(json.dumps(said))
    (tmp_path / "b.provenance.json").write_text("{ no json")
    (tmp_path / "c.provenance.json").write_text('["no object"]')
    write_export(tmp_path / "a.jsonl.gz", [])
    reading = read(study_page(tmp_path))
    assert len(reading.all("script")) == 4
    assert not [each for each in reading.elements if each.tag in ("img", "textarea") or "onload" in each.attributes]
    assert len(machines(tmp_path)) >= len(HOSTILE) - 2
    assert "<!--<script>" in reading.text


def test_the_page_of_a_few_runs_is_small(study_html: str) -> None:
    assert len(study_html.encode()) < 1_500_000


def test_the_best_of_a_model_is_marked_once_per_dataset(results: Results) -> None:
    section = next(each for each in collect(results, ["table1"]).sections if each.name == "table1")
    table, compared = widen(section), 0
    for model in ("gcn", "gat", "mlp"):
        rows = [row for row in table.rows if row.of.model == model]
        assert len({(row.of.method, row.of.preset) for row in rows if not row.variant}) == SHOWN
        for i in range(len(table.datasets)):
            cells = [cell for row in rows if isinstance(cell := row.entries[i], Entry) and cell.row.selection != "test"]
            means = [cell.row.mean for cell in cells if cell.row.mean is not None]
            assert [cell.row.mean for cell in cells if cell.best] == ([max(means)] if means else [])
            compared += bool(means)
            on_test = [row.entries[i] for row in rows if row.of.selection == "test"]
            assert not any(isinstance(cell, Entry) and cell.best for cell in on_test)
    assert compared
