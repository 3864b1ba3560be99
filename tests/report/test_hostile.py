"""Text that wants to be more than text, in every field of a run and of an experiment."""

from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest

from propreg.report import run_figures, run_page, study, study_html
from propreg.report.text import clean, clip
from propreg.study.spec.experiment import load_experiment
from report.reading import Reading, read
from report.samples import HOSTILE, hostile_record, made_up

Shape = list[tuple[str, tuple[str, ...]]]


def shape(reading: Reading) -> Shape:
    """Which elements with which attributes there are, one after the other."""
    return [(each.tag, tuple(sorted(each.attributes))) for each in reading.elements]


@cache
def calm_run() -> Shape:
    return shape(read(run_page(hostile_record("calm"))))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_run_has_the_same_elements_whatever_its_names(text: str) -> None:
    assert shape(read(run_page(hostile_record(text)))) == calm_run()


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()], ids=lambda text: ascii(text)[:20])
def test_a_runs_names_are_shown_as_they_are(text: str) -> None:
    page = read(run_page(hostile_record(text)))
    shown = " ".join(clip(clean(text).strip(), 120).split())
    assert shown in page.text
    assert page.data("run")["splits"][0] == clip(clean(text).strip(), 120)


def study_shape(words: str) -> Shape:
    smoke = load_experiment("digits-smoke")
    lines = tuple(replace(line, variant=words) for line in smoke.lines)
    hostile = replace(smoke, title=words, lines=lines)
    made_by = [{"device": words, "torch": words, "propreg": words, "runs": words}]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study, "load_experiment", lambda _: hostile)
        patched.setattr(study_html, "study_names", lambda: ["digits-smoke"])
        return shape(read(study_html.page_of(made_up(lines), made_by)))


@cache
def calm_study() -> Shape:
    return study_shape("calm words")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_an_experiment_has_the_same_elements_whatever_its_words(text: str) -> None:
    assert study_shape(text) == calm_study()


@pytest.mark.parametrize("text", HOSTILE[:2] + HOSTILE[9:15], ids=lambda text: ascii(text)[:20])
def test_pictures_are_whole_xml_without_scripts(text: str) -> None:
    for svg in run_figures(hostile_record(text)).values():
        tree = ElementTree.fromstring(svg)
        tags = {str(each.tag).rpartition("}")[2] for each in tree.iter()}
        assert not tags & {"script", "image", "foreignObject", "a"}
        assert not [name for each in tree.iter() for name in each.attrib if name.startswith("on")]
