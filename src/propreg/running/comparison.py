"""The comparison itself: train through :func:`propreg.fit`, judge, record."""

import os
import time
from dataclasses import dataclass
from typing import Any, Literal

from propreg.fitting.fit import fit
from propreg.fitting.methods import METHODS
from propreg.fitting.reasons import facts_of, reasons
from propreg.fitting.result import FitResult
from propreg.fitting.settings import device_of, number_of_seeds, strengths
from propreg.fitting.verdict import Verdict, judge
from propreg.running.advice import caveats
from propreg.running.recording import make_record
from propreg.running.settings import QUICK, QUICK_MUS, THOROUGH
from propreg.running.source import Source

TITLES = {"gcn": "GCN", "gat": "GAT", "mlp": "MLP", "appnp": "APPNP"}


@dataclass(frozen=True)
class Plan:
    """What is going to be trained."""

    source: Source
    model: str
    method: str
    preset: Literal["paper", "reference"]
    mus: tuple[float, ...]
    seeds: int
    lr: float
    weight_decay: float
    patience: int
    max_epochs: int
    device: str

    @property
    def runs(self) -> int:
        """How many trainings."""
        return len(self.mus) * len(self.source.splits) * self.seeds


@dataclass(frozen=True)
class Comparison:
    """What came out: the fit, the verdict, and the record that the page is made of."""

    plan: Plan
    result: FitResult
    verdict: Verdict
    reasons: tuple[str, ...]
    record: dict[str, Any]


def make_plan(
    source: Source,
    *,
    model: str = "gcn",
    method: str = "preg",
    preset: Literal["paper", "reference"] = "paper",
    mu: Any = "auto",
    seeds: int | None = None,
    max_epochs: int | None = None,
    device: str = "auto",
) -> Plan:
    """Fill in what was not said, and refuse what cannot be trained before anything is."""
    chosen = QUICK if source.quick else THOROUGH
    if isinstance(mu, str) and mu == "auto" and source.quick and method == "preg":
        mu = QUICK_MUS
    return Plan(
        source,
        model,
        method,
        preset,
        strengths(mu, method),
        number_of_seeds(seeds or (chosen.seeds if len(source.splits) > 1 else None), len(source.splits)),
        chosen.lr,
        chosen.weight_decay,
        chosen.patience,
        max_epochs or chosen.max_epochs,
        str(device_of(device)),
    )


def compare(plan: Plan, *, progress: Literal["lines"] | bool | None = None) -> Comparison:
    """Train the plain model and the regularised ones, and say which is better.

    Raises:
        KeyboardInterrupt: If it was interrupted before anything could be compared; else what is finished is returned.
    """
    start = time.perf_counter()
    graph = plan.source.graph
    result = fit(
        graph,
        plan.model,
        plan.mus,
        method=plan.method,
        preset=plan.preset,
        splits=plan.source.splits,
        seeds=plan.seeds,
        lr=plan.lr,
        weight_decay=plan.weight_decay,
        patience=plan.patience,
        max_epochs=plan.max_epochs,
        device=plan.device,
        progress=progress,
    )
    verdict, facts = judge(result), result.facts or facts_of(graph, result.splits)
    why = reasons(facts, result, verdict)
    notes = [verdict.sentence, *why, *caveats(result, plan.max_epochs, plan.runs), *plan.source.notes]
    names = ("lr", "weight_decay", "patience", "max_epochs")
    settings = {name: getattr(plan, name) for name in names} | {"dropout": result.dropout}
    record = make_record(
        plan.source.name,
        graph,
        result,
        facts,
        model=plan.model,
        device=device_name(plan.device),
        seconds=time.perf_counter() - start,
        notes=notes,
        settings=settings,
    )
    return Comparison(plan, result, verdict, tuple(why), record)


def device_name(device: str) -> str:
    """The device in words."""
    if not device.startswith("cuda"):
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        return f"{cores} CPU core{'s' if cores > 1 else ''}"
    import torch

    return torch.cuda.get_device_name(device)


def model_title(plan: Plan, mu: float = 0.0) -> str:
    """How a table calls a row, for example ``GCN + P-reg, mu = 0.5``."""
    plain = TITLES.get(plan.model, plan.model)
    return f"{plain} + {METHODS[plan.method].title}, mu = {mu:g}" if mu else f"{plain}, plain"
