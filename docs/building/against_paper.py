"""Our records beside the paper's numbers: where they differ, and which choice of μ comes nearest to them."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from statistics import fmean

from building.recorded import MODELS, curves, points_of, table
from propreg.statistics import summarise
from propreg.study.experiment import Line, load_experiment
from propreg.study.figures.words import DATASETS
from propreg.study.paper import paper_number, published_strength
from propreg.study.render import decimals, spread
from propreg.study.results import Results
from propreg.study.table import Row, table_rows

METHOD = "preg-reference"
MOST_EPOCHS = 10_000  # of the official protocol
METHODS = {
    "plain": "plain",
    "label_smoothing": "label smoothing",
    "confidence_penalty": "confidence penalty",
    "laplacian": "Laplacian",
    "preg": "P-reg",
}
EXPERIMENTS = {
    "table1": "Table 1",
    "table-standard-gcn-gat": "Table 2",
    "table-phi": "Appendix F",
}


def differing(results: Results) -> list[tuple[str, Row, Row | None]]:
    """Where the verdict is higher or lower: the table, the row picked on validation, and that best on test."""
    found, seen = [], set()
    for experiment in EXPERIMENTS:
        rows = table_rows(load_experiment(experiment), results)
        best = {_place(row): row for row in rows if row.selection == "test"}
        for row in rows:
            known = (*_place(row), row.paper_mean)
            if row.selection == "test" or row.verdict not in ("higher", "lower") or known in seen:
                continue
            seen.add(known)  # Appendix F prints numbers of Table 1 again
            found.append((experiment, row, best.get(_place(row))))
    return found


def _place(row: Row) -> tuple[str, str, str, str]:
    return row.model, row.dataset, row.method, row.preset


def disagreements(results: Results) -> str:
    """The same as a table."""
    rows = []
    for experiment, row, best in differing(results):
        name = METHODS[row.method] + (f" ({row.preset})" if row.preset else "")
        where = f"{EXPERIMENTS[experiment]}: {MODELS[row.model]} + {name}, {DATASETS[row.dataset]}"
        ours, theirs = spread(row.mean, row.std), spread(row.paper_mean, row.paper_std)
        rows.append([where, ours, "" if best is None else decimals(best.mean), theirs, row.verdict])
    return table(["where", "ours", "ours, best on test", "the paper's", "verdict"], rows)


@dataclass(frozen=True)
class Picks:
    """P-reg at one place of Table 1 with μ chosen in three ways, as (μ, accuracy), and the paper's number."""

    model: str
    dataset: str
    validation: tuple[float, float]
    test: tuple[float, float]
    published: tuple[float, float] | None
    paper: float


def picks(results: Results) -> list[Picks]:
    """All places that are complete, with the accuracy at the published μ where that is recorded."""
    found = []
    for c in curves("table1", METHOD, results):
        paper = paper_number("table1", c.line.model, METHOD, "preg", c.line.dataset)
        if paper is not None:
            mu = published_strength(c.line.model, c.line.dataset)
            at = None if mu is None else _at(c.line, mu, results)
            best = c.best_on_test
            ours = (c.picked.mu, c.picked.test), (best.mu, best.test)
            found.append(Picks(c.line.model, c.line.dataset, *ours, at, paper[0]))
    return found


def _at(line: Line, mu: float, results: Results) -> tuple[float, float] | None:
    """The accuracy at a strength, which need not be on the line's grid."""
    found = results.accuracies(replace(line.cells[0], strength=mu), line.splits, line.seeds)
    return None if found is None else (mu, summarise(found.test).mean)


def picks_table(results: Results) -> str:
    """Place by place."""
    rows = [
        [
            f"{MODELS[p.model]}, {DATASETS[p.dataset]}",
            *(
                "–" if each is None else f"{decimals(each[1])} ({each[0]:g})"
                for each in (p.validation, p.test, p.published)
            ),
            decimals(p.paper),
        ]
        for p in sorted(picks(results), key=lambda p: list(MODELS).index(p.model))
    ]
    return table(
        ["GCN, GAT or MLP + P-reg", "picked on validation", "best on test", "at the published μ", "the paper"], rows
    )


def distances(results: Results) -> dict[str, tuple[float, float, int]]:
    """Mean difference to the paper and mean distance, in points, and the number of places, for each choice of μ."""
    found = picks(results)
    chosen = {
        "picked on validation": [(p.validation[1], p.paper) for p in found],
        "best on test": [(p.test[1], p.paper) for p in found],
        "at the published μ": [(p.published[1], p.paper) for p in found if p.published is not None],
    }
    return {
        name: (
            fmean(mine - paper for mine, paper in pairs),
            fmean(abs(mine - paper) for mine, paper in pairs),
            len(pairs),
        )
        for name, pairs in chosen.items()
        if pairs
    }


def picks_words(results: Results) -> str:
    """How near each choice comes, in a sentence."""
    said = [
        f"{name}, {points_of(mean)} points on average and {decimals(size, 1)} apart ({count} places)"
        for name, (mean, size, count) in distances(results).items()
    ]
    return "; ".join(said) or "Nothing of it is recorded"


def stopped_late(results: Results) -> str:
    """How many runs the official stopping rule never stopped."""
    late = [json.loads(text)["dataset"] for text, _, _, outcome, _ in results.runs() if outcome.epochs >= MOST_EPOCHS]
    most, count = Counter(late).most_common(1)[0] if late else ("physics", 0)
    return f"{len(late):,} runs go on to epoch {MOST_EPOCHS:,}, {count:,} of them on {DATASETS[most]}"


SENTENCES = {
    "disagreements": disagreements,
    "picks_table": picks_table,
    "picks_words": picks_words,
    "stopped_late": stopped_late,
}
