"""What the ablation says in the text: each choice against the paper preset, and the paper's Appendix C."""

from collections.abc import Callable

from building.recorded import curves, points_of, table
from propreg.study.figures.words import DATASETS, listed
from propreg.study.fork_effects import Effect, changes
from propreg.study.forks import CHANGES, SETTINGS, fork_findings, points, what_matters, where
from propreg.study.results import Results

APPENDIX_C = ("preg-annealed", "preg-threshold_0_1", "preg-threshold_0_5")


def forks(results: Results) -> str:
    """A row for each change of the formula."""
    rows = []
    for method, name in CHANGES.items():
        found = changes(results, method)
        if found:
            means = [[each.apart.mean for each in found], [each.on_test for each in found]]
            told = where(found)
            rows.append([name, *(points(mean).replace("-", "−") for mean in means), told, f"{len(found)}"])
    return table(["GCN", "points", "best on test", "as far as it can be told", "datasets"], rows)


def matters(results: Results) -> str:
    """Which of them can be told apart from the preset."""
    found = {method: effects for method in CHANGES if (effects := changes(results, method))}
    return " ".join(what_matters(found)) or "None of it is recorded."


def settings(results: Results) -> str:
    """A line for each change of model and training."""
    names = tuple(f"{name}: " for name in SETTINGS.values())
    lines = [f"- {said}" for said in fork_findings(results) if said.startswith(names)]
    return "\n".join(lines).replace(" -", " −")


def annealing(results: Results) -> str:
    """Whether annealing or a threshold does better than a constant μ."""
    found = {method: changes(results, method) for method in APPENDIX_C}
    said = [f"{CHANGES[method]} is {_told(effects)}" for method, effects in found.items() if effects]
    if not said:
        return "Neither is in our records yet, so that we advise neither for nor against them."
    return f"In our records, GCN, against a constant μ: {'; '.join(said)}.{_slowest(results)}"


def _told(effects: list[Effect]) -> str:
    parts = []
    for word in ("better", "worse"):
        mine = [f"{DATASETS[e.dataset]} ({points_of(e.apart.mean)})" for e in effects if e.told == word]
        if mine:
            parts.append(f"{word} on {listed(mine)}")
    rest = [abs(each.apart.mean) for each in effects if each.told == "cannot be told"]
    if rest:
        which = f"the other {len(rest)} datasets" if parts else f"any of {len(rest)} datasets"
        parts.append(f"not to be told from it on {which} (at most {max(rest):.1f} points apart)")
    return ", ".join(parts)


def _slowest(results: Results) -> str:
    """How often annealing picks the smallest μ, with which the term arrives last."""
    found = [c for c in curves("ablation", "preg-annealed", results) if c.line.model == "gcn"]
    edge = [c for c in found if c.picked.mu == c.points[0].mu]
    if not edge:
        return ""
    return (
        f" Annealing picks μ = {edge[0].points[0].mu:g}, the smallest that was tried, on {len(edge)} of {len(found)} "
        "datasets: slower still might do better."
    )


def edges(results: Results) -> str:
    """How often an MLP picks the smallest strength there is."""
    found = [c for name in ("preg-reference", "preg-paper") for c in curves("table1", name, results)]
    mlp = [c for c in found if c.line.model == "mlp"]
    if not mlp:
        return "the MLP's picks are not recorded"
    edge = [c for c in mlp if c.picked.mu == c.points[0].mu]
    return f"{len(edge)} of the MLP's {len(mlp)} picks, over both presets, are {mlp[0].points[0].mu:g}"


SENTENCES: dict[str, Callable[[Results], str]] = {
    "forks": forks, "fork_matters": matters, "fork_settings": settings, "annealing": annealing, "edges": edges,
}  # fmt: skip
