"""The numbers in the text, from the recorded runs: what ``{{ name }}`` stands for in a page.

A number that is not recorded is shown as a dash, or the sentence says so; nothing is typed.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from building import ablation, against_paper, picture_words, squared_error
from building.recorded import MODELS, Curve, curve, curves, points_of, table
from propreg.study.counting import count_runs
from propreg.study.experiment import load_experiment, study_names
from propreg.study.figures.words import DATASETS, listed
from propreg.study.results import Results, load_results

OURS = "preg-reference"  # the form whose rows of Table 1 are the paper's
PRESETS = {"preg-reference": "reference", "preg-paper": "paper"}


def substitutions(results: Path) -> dict[str, str]:
    """All of them, by name."""
    found = load_results(results)
    sidecars = sorted(results.glob("*.provenance.json"))
    made_by = [each for file in sidecars for each in json.loads(file.read_text(encoding="utf-8"))]
    words = {name: say() for name, say in picture_words.WORDS.items()} | picture_words.one_node_values()
    words |= {"provenance": provenance(made_by), "traced": traced(made_by)}
    return words | {name: say(found) for name, say in _all_sentences().items()}


def provenance(made_by: list[dict[str, Any]]) -> str:
    """Where the recorded runs were trained, and how long that took."""
    sessions = defaultdict[str, list[dict[str, Any]]](list)
    for each in made_by:
        sessions[each["device"].partition(": ")[2] or each["device"]].append(each)
    seconds = Counter({device: _seconds(mine) for device, mine in sessions.items()})
    hours = [f"{taken / 3600:.1f} hours on {device}" for device, taken in seconds.most_common()]
    return f"those recorded took {_listed(hours)}"


def _seconds(sessions: list[dict[str, Any]]) -> float:
    """The time that they took together: what ran side by side counts once."""
    begun = [(datetime.fromisoformat(each["started"]).timestamp(), each["seconds"]) for each in sessions]
    taken, until = 0.0, 0.0
    for start, seconds in sorted(begun):
        taken += max(start + seconds - max(start, until), 0.0)
        until = max(until, start + seconds)
    return taken


def traced(made_by: list[dict[str, Any]]) -> str:
    """How many runs are traced to a session and the code that trained them."""
    known = sum(each["runs"] for each in made_by if each.get("engine") and each.get("batches"))
    return f"{known:,} of {sum(each['runs'] for each in made_by):,} runs"


def strays(results: Results) -> str:
    """How many recorded runs are of no experiment."""
    counted, _ = count_runs(map(load_experiment, study_names()), results)
    more = len(results) - counted
    return f"{more} runs in it are of no experiment any more." if more else "All runs in it are of an experiment."


def _all_sentences() -> dict[str, Callable[[Results], str]]:
    known = ablation.SENTENCES | against_paper.SENTENCES | squared_error.SENTENCES
    return SENTENCES | known | picture_words.FROM_RECORDS


def picked(results: Results) -> str:
    """μ picked on validation and what it gains, by dataset and model."""
    return _by_place(results, lambda c: f"{c.picked.mu:g} ({points_of(c.picked.difference.mean)})")


def helping(results: Results) -> str:
    """The strengths that help, by dataset and model."""
    return _by_place(results, _range)


def _by_place(results: Results, cell: Callable[[Curve], str]) -> str:
    found = {(c.line.dataset, c.line.model): cell(c) for c in curves("table1", OURS, results)}
    rows = [[title, *(found.get((name, model), "–") for model in MODELS)] for name, title in DATASETS.items()]
    return table(["dataset", *MODELS.values()], rows)


def _range(found: Curve) -> str:
    helps = [point.mu for point in found.helping]
    if not helps:
        return "none"
    between = [point.mu for point in found.points if helps[0] <= point.mu <= helps[-1]]
    gaps = "" if between == helps else ", with gaps"
    return f"{helps[0]:g} … {helps[-1]:g}{gaps}" if len(helps) > 1 else f"{helps[0]:g}"


def ends(results: Results) -> dict[str, tuple[float, float]]:
    """The smallest and largest μ picked, by model."""
    picks = [(c.line.model, c.picked.mu) for c in curves("table1", OURS, results)]
    return {model: (min(mus), max(mus)) for model in MODELS if (mus := [mu for mine, mu in picks if mine == model])}


def pick_ends(results: Results) -> str:
    """The same in words."""
    said = [f"{low:g} to {high:g} for {MODELS[model]}" for model, (low, high) in ends(results).items()]
    return ", ".join(said)


def honest_cost(results: Results) -> str:
    """What picking on validation costs against the best μ on test, in points."""
    lost = [c.best_on_test.test - c.picked.test for c in curves("table1", OURS, results)]
    if not lost:
        return "an amount that is not recorded"
    return f"{fmean(lost):.1f} points on average over {len(lost)} places, {max(lost):.1f} at most"


def too_strong(results: Results) -> str:
    """What the largest strength of the paper's range does on Cora."""
    said = []
    for method, preset in PRESETS.items():
        for found in curves("fig-strength", method, results):
            last = found.points[-1]
            said.append(f"{points_of(last.difference.mean)} points for {MODELS[found.line.model]} ({preset} preset)")
    return f"On Cora, at μ = 1, the end of the paper's range, the change is {_listed(said)}"


SIZES = (35, 70, 140, 300, 1200)


def few_labels(results: Results) -> str:
    """GCN on Cora: the change by number of training nodes and μ, with the paper preset."""
    found = training_curves(results, "preg-paper")
    strengths = [point.mu for point in found[SIZES[0]].points] if SIZES[0] in found else []
    rows = [
        [f"μ = {mu:g}", *(points_of(found[size].points[i].difference.mean) if size in found else "–" for size in SIZES)]
        for i, mu in enumerate(strengths)
    ]
    head = ["training nodes", *(f"{size:,}" for size in SIZES)]
    seen = [f"{found[size].points[0].plain_val:.1f}" if size in found else "–" for size in SIZES]
    best = [f"{found[size].picked.val:.1f}" if size in found else "–" for size in SIZES]
    return table(head, [*rows, ["validation, plain", *seen], ["validation, best μ above 0", *best]])


def training_curves(results: Results, method: str) -> dict[int, Curve]:
    """GCN's complete curves of fig-training-nodes, by number of training nodes."""
    lines = [x for x in load_experiment("fig-training-nodes").lines if x.model == "gcn" and x.method.name == method]
    found = {line.cells[0].train_nodes: curve(line, results) for line in lines}
    return {size: each for size, each in found.items() if each is not None and size is not None}


def few_labels_words(results: Results) -> str:
    """The worst of it in a sentence."""
    said = []
    for method, preset in PRESETS.items():
        mine = training_curves(results, method).get(SIZES[0])
        if mine is not None:
            changes = [point.difference.mean for point in mine.points]
            said.append(f"{points_of(changes[0])} points at μ = {mine.points[0].mu:g} and {points_of(min(changes))} "
                        f"at worst ({preset} preset)")  # fmt: skip
    return (
        f"With {SIZES[0]} labelled nodes every μ from 0.2 on hurts a GCN on Cora: {'; '.join(said) or 'not recorded'}"
    )


def presets(results: Results) -> str:
    """Where both presets are recorded: what each gains, and how far they are apart."""
    rows = []
    for experiment, about in (("table1", "random splits"), ("table-standard-gcn-gat", "public split")):
        for (dataset, model), (reference, paper) in _both(experiment, results).items():
            cells = [_gain(paper), _gain(reference), points_of(paper.picked.test - reference.picked.test)]
            rows.append([f"{MODELS[model]}, {DATASETS[dataset]}, {about}", *cells])
    return table(["where", "paper", "reference", "paper − reference"], rows)


def presets_words(results: Results) -> str:
    """How far the presets are apart on average over Table 1, by model."""
    both = _both("table1", results)
    apart = {at: paper.picked.test - reference.picked.test for at, (reference, paper) in both.items()}
    if not apart:
        return "not recorded"
    by_model = {model: [value for at, value in apart.items() if at[1] == model] for model in MODELS}
    said = [f"{points_of(fmean(each))} for {MODELS[model]}" for model, each in by_model.items() if each]
    return f"{points_of(fmean(apart.values()))} points, {_listed(said)}"


def _both(experiment: str, results: Results) -> dict[tuple[str, str], tuple[Curve, Curve]]:
    """Both presets' lines by dataset and model, the reference first, where both are recorded."""
    first, second = ({(c.line.dataset, c.line.model): c for c in curves(experiment, n, results)} for n in PRESETS)
    return {at: (each, second[at]) for at, each in first.items() if at in second}


def _gain(found: Curve) -> str:
    return f"{points_of(found.picked.difference.mean)} (μ = {found.picked.mu:g})"


def not_recorded(results: Results) -> str:
    """How much of the ablation, which is to tell the presets' differences apart, is recorded."""
    lines = load_experiment("ablation").lines
    of = sum(len(line.cells) * len(line.splits) * len(line.seeds) for line in lines)
    have = sum(results.count(cell, line.splits, line.seeds) for line in lines for cell in line.cells)
    return f"all of its {of:,} runs are recorded" if have == of else f"{have:,} of its {of:,} runs are recorded"


def _listed(words: list[str]) -> str:
    return listed(words) or "not recorded"


SENTENCES: dict[str, Callable[[Results], str]] = {
    "picked": picked,
    "helping": helping,
    "pick_ends": pick_ends,
    "honest_cost": honest_cost,
    "too_strong": too_strong,
    "few_labels": few_labels,
    "few_labels_words": few_labels_words,
    "presets": presets,
    "presets_words": presets_words,
    "not_recorded": not_recorded,
    "strays": strays,
}
