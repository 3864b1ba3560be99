"""The pictures of a run as SVG files, drawn like the study's own figures. No torch."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from propreg.report.run_numbers import numbers_of
from propreg.report.run_pictures import run_pictures
from propreg.report.run_record import read_run
from propreg.study.figures.save import render


def run_figures(record: Mapping[str, Any]) -> dict[str, str]:
    """Pictures of a run: file names with the text of their SVG; the same record gives the same bytes.

    Args:
        record: What ``propreg run`` wrote as ``run.json``.

    Returns:
        ``accuracy-against-mu.svg`` (with interval and the picked μ), ``paired-differences.svg`` (split by split) and
        ``training.svg``.

    Raises:
        DataError: If the record is damaged.
        ImportError: If Matplotlib is not installed.
    """
    run = read_run(record)
    # A dollar in a name is no formula.
    plain = replace(
        run,
        dataset=_no_formula(run.dataset),
        model=_no_formula(run.model),
        method=_no_formula(run.method),
        splits=tuple(map(_no_formula, run.splits)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font lacks: they become boxes
        pictures = run_pictures(plain, numbers_of(plain))
        return {f"{name}.svg": render(figure, ".svg").decode() for name, figure in pictures.items()}


def _no_formula(text: str) -> str:
    return text.replace("$", r"\$")
