"""Propagation regularization (P-reg) for graph neural networks, as one line in any PyTorch loop.

Names are imported on first use (PEP 562), so that ``propreg --help`` need not load torch.
"""

from typing import TYPE_CHECKING

from propreg._lazy import lazy

if TYPE_CHECKING:
    from propreg._baselines import confidence_penalty as confidence_penalty
    from propreg._baselines import laplacian as laplacian
    from propreg._checks import check_regularizer as check_regularizer
    from propreg._distance import intra_class_distance as intra_class_distance
    from propreg._hetero import HeteroPReg as HeteroPReg
    from propreg._preg import PReg as PReg
    from propreg._preg import preg as preg
    from propreg._propagation import Propagation as Propagation
    from propreg._schedules import annealed as annealed
    from propreg._schedules import constant as constant
    from propreg._schedules import cosine_warmup as cosine_warmup
    from propreg._schedules import linear_warmup as linear_warmup
    from propreg._smoothness import dirichlet_energy as dirichlet_energy
    from propreg._smoothness import mean_average_distance as mean_average_distance
    from propreg._term import Term as Term
    from propreg.data.benchmarks.load import load_dataset as load_dataset
    from propreg.data.errors import DataError as DataError
    from propreg.data.own.load import load_graph as load_graph
    from propreg.data.splits import random_split as random_split
    from propreg.fitting.checkpoint import load_model as load_model
    from propreg.fitting.estimator import GraphClassifier as GraphClassifier
    from propreg.fitting.fit import fit as fit
    from propreg.fitting.graphs.fit import fit_graphs as fit_graphs
    from propreg.fitting.graphs.model import load_graph_model as load_graph_model
    from propreg.fitting.graphs.result import GraphFitResult as GraphFitResult
    from propreg.fitting.result import FitResult as FitResult

__version__ = "0.2.0"

_HOME = {
    "preg": "_preg",
    "PReg": "_preg",
    "HeteroPReg": "_hetero",
    "Propagation": "_propagation",
    "laplacian": "_baselines",
    "confidence_penalty": "_baselines",
    "constant": "_schedules",
    "annealed": "_schedules",
    "linear_warmup": "_schedules",
    "cosine_warmup": "_schedules",
    "intra_class_distance": "_distance",
    "dirichlet_energy": "_smoothness",
    "mean_average_distance": "_smoothness",
    "Term": "_term",
    "check_regularizer": "_checks",
    "load_dataset": "data.benchmarks.load",
    "load_graph": "data.own.load",
    "random_split": "data.splits",
    "DataError": "data.errors",
    "fit": "fitting.fit",
    "FitResult": "fitting.result",
    "GraphClassifier": "fitting.estimator",
    "load_model": "fitting.checkpoint",
    "fit_graphs": "fitting.graphs.fit",
    "GraphFitResult": "fitting.graphs.result",
    "load_graph_model": "fitting.graphs.model",
}

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604  (strings all: the keys of the table above)


__getattr__ = lazy("propreg", _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
