"""Appendix F's squared error, the one row of the paper that does not come out: what our runs and the paper say."""

from collections import Counter
from statistics import fmean

from building.against_paper import METHOD
from building.recorded import MODELS, curves, points_of
from propreg.study.experiment import load_experiment
from propreg.study.figures.words import DATASETS, listed
from propreg.study.paper import paper_number
from propreg.study.render import decimals
from propreg.study.results import Results
from propreg.study.table import Row, table_rows
from propreg.study.telling import told

METHOD_SQUARED = "preg-squared_error"
SQUARED, PROBABILITIES = "reference, squared error", "reference, L2 of probabilities"
APART = 1.0  # points by which the paper's numbers for two φ differ, to be named


def rows_of(results: Results, preset: str) -> dict[tuple[str, str], Row]:
    """The complete places of a line of Appendix F, μ picked on validation."""
    rows = table_rows(load_experiment("table-phi"), results)
    return {
        (row.model, row.dataset): row
        for row in rows
        if (row.preset, row.selection) == (preset, "validation") and row.mean is not None
    }


def gains(results: Results) -> str:
    """Where it helps on all splits, and by how much, of how many places."""
    found = list(curves("table-phi", METHOD_SQUARED, results))
    better = [
        f"a {MODELS[c.line.model]} on {DATASETS[c.line.dataset]} ({points_of(c.picked.difference.mean)})"
        for c in found
        if told(c.picked.difference) == "better"
    ]
    return f"{listed(better) or 'none'} of the {len(found)} places that are recorded"


def in_the_paper(_: Results) -> str:
    """How far the paper's own numbers for it are from those for cross entropy."""
    said = []
    for model in ("gcn", "gat"):
        apart = {
            dataset: one[0] - other[0]
            for dataset in DATASETS
            if (one := paper_number("table-phi", model, METHOD_SQUARED, "preg", dataset)) is not None
            and (other := paper_number("table-phi", model, METHOD, "preg", dataset)) is not None
        }
        near = [abs(value) for value in apart.values() if abs(value) < APART]
        far = [f"{points_of(value)} on {DATASETS[name]}" for name, value in apart.items() if abs(value) >= APART]
        beyond = f" and {listed(far)}" if far else ""
        said.append(
            f"with a {MODELS[model]} within {decimals(max(near), 1)} points on {len(near)} of {len(apart)} datasets"
            f"{beyond}"
        )
    return listed(said)


def explained(results: Results) -> str:
    """Whether the official code's distance of probabilities comes nearer to the paper's numbers for squared error."""
    squared, other = rows_of(results, SQUARED), rows_of(results, PROBABILITIES)
    said = []
    for model in ("gcn", "gat"):
        both = [place for place in squared if place in other and place[0] == model]
        if both:
            apart = [
                fmean(abs((rows[place].mean or 0.0) - (squared[place].paper_mean or 0.0)) for place in both)
                for rows in (other, squared)
            ]
            mine, instead = (decimals(value, 1) for value in apart)
            said.append(
                f"with a {MODELS[model]} it is {mine} points from the paper's numbers instead of {instead}, on average "
                f"over the {len(both)} datasets with both"
            )
    return listed(said) or "not recorded"


def verdicts(results: Results) -> str:
    """How its places of Appendix F come out."""
    found = Counter(row.verdict for row in rows_of(results, SQUARED).values())
    return listed([f"{count} {verdict}" for verdict, count in found.most_common()]) or "not recorded"


SENTENCES = {
    "squared_gains": gains,
    "squared_in_the_paper": in_the_paper,
    "squared_explained": explained,
    "squared_verdicts": verdicts,
}
