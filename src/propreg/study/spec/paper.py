"""The paper's numbers, from ``paper.toml``, and our verdict on each."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from propreg.statistics import Runs, between_seeds, t_quantile
from propreg.study.spec.presets import named_model

MARGIN = 1.0
"""Points within which a number counts as the same."""


def paper_number(section: str, model: str, method: str, dataset: str) -> tuple[float, float] | None:
    """Mean and standard deviation that the paper reports; looked up by a method's full name, then by its family.

    Example:
        >>> paper_number("table1", "mlp-16", "preg-reference", "cora")
        (64.41, 4.56)
    """
    models = _numbers().get(section, {})
    rows = models.get(printed_model(section, model), {}) if models else {}  # your own models have no architecture here
    found = rows.get(method, rows.get(method.partition("-")[0], {})).get(dataset)
    return None if found is None else (float(found[0]), float(found[1]))


def paper_gain(section: str, model: str, method: str, dataset: str) -> float | None:
    """What the paper's method adds to its plain model, where it prints both.

    Example:
        >>> round(paper_gain("table1", "gcn", "preg-reference", "cora"), 2)
        3.36
    """
    mine = paper_number(section, model, method, dataset)
    plain = paper_number(section, model, "plain", dataset)
    return None if mine is None or plain is None else mine[0] - plain[0]


def printed_model(section: str, model: str) -> str:
    """The name under which the paper prints a model: its own, or that of its architecture.

    Example:
        >>> printed_model("table1", "mlp-16"), printed_model("table3", "mol-gin-virtual")
        ('mlp', 'mol-gin-virtual')
    """
    return model if model in _numbers().get(section, {}) else named_model(model)[0].name


def published_strength(model: str, dataset: str) -> float | None:
    """The μ that the official code was published with, on random splits.

    Example:
        >>> published_strength("gat", "computers")
        0.65
    """
    found = _numbers()["published"].get(model, {}).get(dataset)
    return None if found is None else float(found)


def verdict(test: Runs, paper_mean: float, margin: float = MARGIN) -> str:
    """How our mean compares with the paper's; of differences to the plain model, how our gain does.

    The paper's splits and number of seeds are ours, so only the seeds differ. With s our standard deviation between
    seeds of the same split, n runs, and d = ours − the paper's, the difference is known to within t · s · √(2/n), where
    t is Student's for as many degrees of freedom as there are seeds beyond one in each split:

    * ``reproduced``: all of that interval lies within the margin, ±1 point;
    * ``higher``, ``lower``: it does not, and it leaves out 0;
    * ``inconclusive``: it does neither; also with one seed, which has no spread.

    Example:
        >>> import numpy as np
        >>> runs = np.array([[80.0, 81.0], [79.0, 80.0]])
        >>> verdict(runs, 80.1), verdict(runs, 70.0), verdict(np.repeat(runs, 9, axis=1), 80.1)
        ('inconclusive', 'higher', 'reproduced')
    """
    apart = float(test.mean()) - paper_mean
    noise = t_quantile(test.size - len(test)) * between_seeds(test) * (2 / test.size) ** 0.5
    if abs(apart) + noise <= margin:
        return "reproduced"
    if abs(apart) > noise:
        return "higher" if apart > 0 else "lower"
    return "inconclusive"


@cache
def _numbers() -> dict[str, Any]:
    text = resources.files("propreg.study.spec").joinpath("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
