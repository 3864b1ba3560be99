"""What the study's page says around its numbers: which P-reg a count is of, what the units are, what a dash means."""

from dataclasses import replace
from pathlib import Path

import pytest

from propreg.report.overview import FORMS, GainMatrix, matrices
from propreg.report.study import Section, collect
from propreg.report.study_html import page_of
from propreg.report.wide import widen
from propreg.store.results import Results, load_results
from propreg.study.spec.experiment import load_experiment
from propreg.study.spec.part import Line
from propreg.study.tables.ablation import listings
from propreg.study.tables.pivot import Gap
from propreg.study.tables.text import DIFFERENCES, units_phrase
from report.reading import Reading, read
from report.samples import made_up, study_lines


@pytest.fixture(scope="module")
def results() -> Results:
    return made_up(study_lines())


def part(html: str, name: str) -> Reading:
    """A section of the page."""
    return read(html.partition(f'<section id="{name}"')[2].partition("</section>")[0])


def first(name: str) -> Line:
    return load_experiment(name).lines[0]


def paper_worse(results: Results) -> tuple[GainMatrix, GainMatrix]:
    """Both forms, the paper's formula with one significant difference less."""
    reference, paper = matrices(collect(results, ["table1"]))
    (model, squares), *others = paper.rows
    square = squares[0]
    assert square is not None
    assert square.verdict == "better"
    assert square.apart is not None
    unsure = replace(square, row=replace(square.row, against_plain=replace(square.apart, p_value=1.0)))
    return reference, replace(paper, rows=((model, (unsure, *squares[1:])), *others))


def test_the_headline_counts_both_forms_and_names_them(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    both = paper_worse(results)
    assert [each.counts["better"] for each in both] == [1, 0]
    monkeypatch.setattr("propreg.report.study_html.matrices", lambda _: list(both))
    assert [each.together for each in both] == [1, 0]
    assert sum(both[0].gains.values()) == 2
    text = part(page_of(results), "overview").text
    assert "1 more accurate by p-values for all of them together (Holm)" in text
    assert f"What P-reg adds in Table 1, {FORMS['reference']}: {both[0].gains['reproduced']} of 2 gains" in text
    assert f"1 of 2 {FORMS['reference']} 1 less accurate" in text
    assert f"0 of 2 {FORMS['paper']} 1 less accurate, 1 inconclusive" in text
    assert "official-code form" in FORMS["reference"]
    assert "the library’s default" in FORMS["paper"]


def test_units_are_seeds_where_there_is_one_split() -> None:
    assert units_phrase(first("table1")) == "5 splits"
    assert units_phrase(first("table-standard-gcn-gat")) == "10 seeds"


def test_the_rule_is_on_the_page(study_html: str) -> None:
    rule = "A difference is significant if p < 0.05, that is if its 95 % interval excludes 0"
    assert f"{rule}; else it is inconclusive." in part(study_html, "overview").text
    assert f"{rule}. Rows tuned on test are optimistic" in DIFFERENCES


def test_the_ablation_says_what_was_found(study_html: str, results: Results) -> None:
    ablation = load_experiment("ablation")
    found = listings(ablation, ablation.lines, results)
    rows = {row[0]: row for listing in found for row in listing.rows}
    assert rows["squared error"][4] != "–", "the sample has a choice that matters"
    section = part(study_html, "ablation")
    for row in rows.values():
        assert " ".join(row) in section.text
    assert section.text.index(found[0].title) < section.text.index("lines are complete")


def test_an_ablation_that_is_not_recorded_has_no_findings() -> None:
    assert "Each fork against P-reg (paper form)" not in part(page_of(Results()), "ablation").text


def test_the_ablation_says_that_forks_pick_from_fewer_strengths(study_html: str) -> None:
    lines = load_experiment("ablation").lines
    preset = next(line for line in lines if line.method.name == "preg-paper")
    fork = next(line for line in lines if line.method.name == "preg-sym")
    assert len(preset.cells) > len(fork.cells)
    said = f"pick from {len(preset.cells)} strengths, the others from {len(fork.cells)}"
    assert said in part(study_html, "ablation").text


def test_the_papers_number_is_spoken_of_only_where_there_is_one(study_html: str) -> None:
    assert "and the paper’s number" in part(study_html, "table1").text
    assert "and the paper’s number" not in part(study_html, "ablation").text


def section_of(results: Results, name: str) -> Section:
    (section,) = collect(results, [name]).sections
    return section


def test_a_place_that_is_no_part_of_the_experiment_is_told_from_one_that_is_missing(results: Results) -> None:
    table = widen(section_of(results, "ablation"))
    at = {(row.of.model, row.label, row.of.selection): row.entries for row in table.rows}
    datasets = [name for name, _ in table.datasets]
    gat = at["gat", "P-reg (paper form)", "validation"]
    assert [name for name, entry in zip(datasets, gat, strict=True) if entry is not Gap.NOT_ASKED] == ["pubmed"]
    # Recorded on two datasets only: elsewhere the line is asked for, but has nothing that could be best on test.
    best = dict(zip(datasets, at["gcn", "P-reg (paper form)", "test"], strict=True))
    assert not isinstance(best["cora"], Gap)
    assert best["photo"] is Gap.MISSING
    decay = dict(zip(datasets, at["gcn", "P-reg (paper form, weight decay on the first layer)", "test"], strict=True))
    assert decay["photo"] is Gap.NOT_ASKED
    assert decay["pubmed"] is Gap.MISSING


def test_such_a_place_has_a_dash_that_says_why(study_html: str) -> None:
    for name, some in (("ablation", True), ("table1", False)):
        section = part(study_html, name)
        dashes = [each for each in section.all("span") if each.attributes.get("title") == Gap.NOT_ASKED.value]
        assert bool(dashes) == some == ("A dash: not part of the experiment." in section.text)
        assert section.text.count("–") >= len(dashes)
        cells = [
            after
            for before, after in zip(section.elements, section.elements[1:], strict=False)
            if before.tag == "td" and "data-sort" in before.attributes
        ]
        assert {each.tag for each in cells} <= {"button", "span"}, "no cell is blank"
    assert (
        Gap.MISSING.value in part(study_html, "table1").text or Gap.MISSING.value in part(study_html, "ablation").text
    )


def test_best_on_test_is_said_to_flatter(study_html: str) -> None:
    assert "Rows tuned on test are optimistic" in part(study_html, "overview").text


def test_what_the_text_of_the_ablation_finds_is_what_is_recorded() -> None:
    """It is written by people: averaging, self-loops, a second pass, a threshold; gradients, squared error and KL."""
    recorded = load_results(Path(__file__).parents[2] / "results")
    ablation = load_experiment("ablation")
    rows = {row[0]: row[1:] for row in listings(ablation, ablation.lines, recorded)[0].rows}
    for change in ("symmetric averaging", "self-loops", "a second pass"):
        assert sum(name != "–" for name in rows[change][2:4]) <= 1
    assert rows["symmetric averaging with self-loops"][2:4] == ("CiteSeer", "CS")
    assert rows["official-code form (all three)"][2:4] == ("–", "CS")
    assert rows["threshold 0.1"][2:4] == ("–", "–")
    gradients = [rows["no gradient through Z"][0], rows["no gradient through ÂZ"][0]]
    assert gradients == ["−2.0", "−0.4"]
    assert (rows["squared error"][0], rows["KL divergence"][0]) == ("−1.8", "−1.0")
    assert "," not in "".join(rows["symmetric averaging"][2:4]), "one dataset at most"
