"""What is said below one table and not below every one: how much its rows had to pick from, and what forks do."""

from collections.abc import Sequence

from propreg.study.experiment import Experiment, Line
from propreg.study.forks import fork_findings
from propreg.study.results import Results

FORKS = "Forks against P-reg (paper), with μ picked on validation from the strengths that both have:"


def remarks(experiment: Experiment, lines: Sequence[Line], results: Results) -> list[str]:
    """Sentences for these lines of an experiment."""
    counts = sorted({len(line.cells) for line in lines if len(line.cells) > 1})
    said = []
    if len(counts) > 1:
        said.append(
            f"Rows pick from {counts[0]} to {counts[-1]} strengths: one that has fewer to pick from may be behind for "
            "that alone."
        )
    if experiment.name == "ablation" and len(lines) == len(experiment.lines):
        found = fork_findings(results)
        said += [FORKS, *found] if found else []
    return said
