"""What the study's page says around its numbers: which P-reg a count is of, what the units are, what a dash means."""

from dataclasses import replace

import pytest

from propreg.report.overview import FORMS, Matrix, matrices
from propreg.report.rule import rule_words, units_words
from propreg.report.study import Section, collect
from propreg.report.study_html import page_of
from propreg.report.wide import NOT_ASKED, NOT_THERE, Blank, widen
from propreg.study.experiment import Line, load_experiment
from propreg.study.forks import fork_findings
from propreg.study.results import Results
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


def paper_worse(results: Results) -> tuple[Matrix, Matrix]:
    """Both forms, the paper's formula with one difference less that can be told."""
    reference, paper = matrices(collect(results, ["table1"]))
    (model, squares), *others = paper.rows
    square = squares[0]
    assert square is not None
    assert square.told == "better"
    assert square.apart is not None
    unsure = replace(square, apart=replace(square.apart, p_value=1.0))
    return reference, replace(paper, rows=((model, (unsure, *squares[1:])), *others))


def test_the_headline_counts_both_forms_and_names_them(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    both = paper_worse(results)
    assert [each.better for each in both] == [1, 0]
    monkeypatch.setattr("propreg.report.study_html.matrices", lambda _: list(both))
    text = part(page_of(results), "overview").text
    assert f"1 of 2 {FORMS['reference']}; 1 less accurate." in text
    assert f"0 of 2 {FORMS['paper']}; 1 less accurate. For 1 it cannot be told." in text
    assert "official code" in FORMS["reference"]
    assert "the library’s default" in FORMS["paper"]


def test_units_are_seeds_where_there_is_one_split() -> None:
    assert units_words(first("table1")) == "5 splits"
    assert units_words(first("table-standard-gcn-gat")) == "10 seeds"


def test_the_rule_says_what_it_means_for_so_many_units(study_html: str) -> None:
    five, ten = rule_words(first("table1")), rule_words(first("table-standard-gcn-gat"))
    assert five == f"{ten}, which 5 splits give only where all of them agree"
    assert "leaves out 0 and p is at most 1/16" in ten
    assert f"Better or worse: {five}." in part(study_html, "overview").text


def test_the_ablation_says_what_was_found(study_html: str, results: Results) -> None:
    findings = fork_findings(results)
    assert any("squared error" in each and "-" in each for each in findings), "the sample has a fork that matters"
    section = part(study_html, "ablation")
    for each in findings:
        assert each in section.text
    assert f"{len(findings) - 5} more findings" in section.text
    assert section.text.index(findings[0]) < section.text.index("lines are complete")


def test_an_ablation_that_is_not_recorded_has_no_findings() -> None:
    assert "Each fork against P-reg (paper)" not in part(page_of(Results()), "ablation").text


def test_the_ablation_says_that_forks_pick_from_fewer_strengths(study_html: str) -> None:
    lines = load_experiment("ablation").lines
    preset = next(line for line in lines if line.method.name == "preg-paper")
    fork = next(line for line in lines if line.method.name == "preg-sym")
    assert len(preset.cells) > len(fork.cells)
    said = f"pick μ from {len(preset.cells)} strengths, the other forks from {len(fork.cells)}"
    assert said in part(study_html, "ablation").text


def test_the_papers_number_is_spoken_of_only_where_there_is_one(study_html: str) -> None:
    assert "and the paper’s number" in part(study_html, "table1").text
    assert "and the paper’s number" not in part(study_html, "ablation").text


def section_of(results: Results, name: str) -> Section:
    (section,) = collect(results, [name]).sections
    return section


def test_a_place_that_is_no_part_of_the_experiment_is_told_from_one_that_is_missing(results: Results) -> None:
    table = widen(section_of(results, "ablation"))
    at = {(row.model, row.label, row.selection): row.entries for row in table.rows}
    datasets = [name for name, _ in table.datasets]
    gat = at["gat", "P-reg (paper)", "validation"]
    assert [name for name, entry in zip(datasets, gat, strict=True) if entry is not NOT_ASKED] == ["pubmed"]
    # Recorded on two datasets only: elsewhere the line is asked for, but has nothing that could be best on test.
    best = dict(zip(datasets, at["gcn", "P-reg (paper)", "test"], strict=True))
    assert not isinstance(best["cora"], Blank)
    assert best["photo"] is NOT_THERE
    decay = dict(zip(datasets, at["gcn", "P-reg (paper, weight decay on the first layer)", "test"], strict=True))
    assert decay["photo"] is NOT_ASKED
    assert decay["pubmed"] is NOT_THERE


def test_such_a_place_has_a_dash_that_says_why(study_html: str) -> None:
    for name, some in (("ablation", True), ("table1", False)):
        section = part(study_html, name)
        dashes = [each for each in section.all("span") if each.attributes.get("title") == NOT_ASKED.why]
        assert bool(dashes) == some == ("A dash: not part of the experiment." in section.text)
        assert section.text.count("–") >= len(dashes)
        cells = [
            after
            for before, after in zip(section.elements, section.elements[1:], strict=False)
            if before.tag == "td" and "data-sort" in before.attributes
        ]
        assert {each.tag for each in cells} <= {"button", "span"}, "no cell is blank"
    assert NOT_THERE.why in part(study_html, "table1").text or NOT_THERE.why in part(study_html, "ablation").text


def test_best_on_test_is_said_to_flatter(study_html: str) -> None:
    assert "chosen by the very accuracy that it shows" in part(study_html, "overview").text
