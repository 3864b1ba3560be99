"""The picture of several models: the score of each, and what the regularizer adds to it."""

from collections.abc import Sequence

from propreg.names import dataset_title
from propreg.report.run_numbers import CHOSEN
from propreg.report.run_record import RunRecord
from propreg.report.text import clip
from propreg.statistics import Difference, Summary
from propreg.study.figures.parts import Figure, Level, Panel, Series, number


def leaderboard(record: RunRecord) -> Figure:
    """The score of each model, and what the regularizer adds to it."""
    judging, models = record.judging, record.models
    names = tuple(clip(f"{place} {row.title}", 40) for place, row in enumerate(models, 1))
    what, unit = judging.what, "points" if judging.fraction else "gain"
    scores = _rows("plain", what, [row.test for row in models], [row.test.runs if row.test else 0 for row in models])
    gain = f"{unit} over its own plain model"
    gains = _rows(CHOSEN, gain, [row.gain for row in models], [row.units for row in models])
    panels = (
        Panel(what[0].upper() + what[1:], "%" if judging.fraction else judging.score, "", (scores,), y_names=names),
        Panel(
            "Over its own plain model",
            unit,
            "",
            (gains,),
            (Level("plain", "plain", 0.0, axis="x"),),
            y_names=names,
            empty="no strength above 0 was chosen" if gains.empty else "",
        ),
    )
    title, about = f"Models on {clip(dataset_title(record.dataset), 40)}", "Each model at the strength chosen for it."
    return Figure("leaderboard", title, about, "", "", "", (), panels, columns=2)


def _rows(key: str, label: str, found: Sequence[Summary | Difference | None], counts: Sequence[int]) -> Series:
    """A point for each model, with an interval if it is of several."""
    pairs = list(zip(found, counts, strict=True))
    low, high = (
        tuple(number(getattr(each, end)) if each is not None and count > 1 else None for each, count in pairs)
        for end in ("low", "high")
    )
    x = tuple(None if each is None else number(each.mean) for each in found)
    return Series(key, label, x, tuple(map(float, range(len(x)))), x_low=low, x_high=high, kind="points")
