"""GAM: a GCN and an agreement model, which train each other in rounds, and label nodes for the next round.

    loss = CE of the labeled nodes + mean over pairs of w_kind · agreement_ij · ‖ℓ_i − p_j‖²

Pairs are edges, up to 512 of each kind in every step: labeled–labeled ones, which only count in the mean,
labeled–unlabeled ones (w₁, with the one-hot label of i for ℓ_i), and unlabeled–unlabeled ones (w₂, with p_i for ℓ_i).
p is the softmax of a pass with dropout of its own. The gradient goes through both ends, and not to the agreement.

Round 0 trains the GCN alone. Each further one trains an agreement model, then the GCN, both from new weights, and the
most confident of the unlabeled nodes, none of them for validation or testing, get their predicted class as a label. A
run ends once no node is confident enough. What it reports is that of its best round.

The label of an edge's source is that of a labeled node: in the code of before April 2021 it could be the true label of
a validation or test node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from propreg.engine import ops
from propreg.engine.models.architecture import (
    Architecture,
    Recipe,
    Source,
    check_two_layers,
    count_activations,
    settings_of,
)
from propreg.engine.models.gcn_mlp import export_gcn
from propreg.engine.models.network import Parameters, initial, no_dropout
from propreg.engine.spec import Method, Model, Protocol, Replica, Result, Sizes
from propreg.engine.training.objective import Objective, RegularizedLoss
from propreg.methods.agreement import Agreement, agreements, filled_up, places
from propreg.methods.networks import WithoutBias, rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from propreg.engine.regularizers.regularizer import Term
    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.batches import Options
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import State

PAIRS = 512
SITE = 2**15 + 6  # of random numbers, apart from those of dropout


@dataclass(frozen=True)
class GamModel(Model):
    """GAM's settings; the defaults are those of Cora. The protocol is that of a round.

    Args:
        name: ``"gam"``.
        hidden: Width of the GCN and of the agreement model.
        input_dropout: Dropout on the GCN's features.
        labeled_weight: The weight of pairs of a labeled and an unlabeled node, w₁.
        unlabeled_weight: The weight of pairs of unlabeled nodes, w₂.
        rounds: How many there are at most, round 0 included.
        self_labels: How many nodes a round labels at most.
        confidence: What the probability of their class must exceed.
        keep_proportions: Whether each class gets its share of the training nodes of these.
        agreement_decay: The weight decay of the agreement model.
    """

    name: str = "gam"
    hidden: int = 128
    input_dropout: float = 0.5
    labeled_weight: float = 1.0
    unlabeled_weight: float = 0.5
    rounds: int = 1000
    self_labels: int = 200
    confidence: float = 0.4
    keep_proportions: bool = False
    agreement_decay: float = 0.0


class Classifier(WithoutBias):
    """A GCN without biases, with weights of its own in each round."""

    def __init__(self, problem: Problem, model: Model, number: int = 0) -> None:
        super().__init__(model, problem.features, problem.num_classes, problem.adjacency("sym", True))
        self.number = number

    def initial(self, problem: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:
        """Drawn for the round."""
        return initial(problem, self, model, replicas, f" of round {self.number}" if self.number else "")


class GamLoss(RegularizedLoss):
    """Cross entropy with its regularizer, and the disagreement of neighbors; the pairs lie in the state."""

    def __init__(self, model: GamModel, method: Method, term: Term) -> None:
        super().__init__(method, term)
        self.in_groups, self.model = False, model

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The loss of each replica, [R]."""
        z = logits.network.finish(logits.p, logits.begun, logits.another(self.passes))
        u = ops.uniforms(state.keys(SITE), 2 * PAIRS).view(len(z), 2, PAIRS)
        weights = self.model.labeled_weight, self.model.unlabeled_weight
        return super().loss(state, logits) + disagreement(z.softmax(-1), state.held, weights, u)


def disagreement(p: Tensor, held: Parameters, weights: tuple[float, float], u: Tensor) -> Tensor:
    """The mean over drawn pairs of w_kind · agreement · ‖ℓ_i − p_j‖². [R].

    Args:
        p: Probabilities [R, N, C].
        held: ``classes`` [R, N] of labeled nodes; ``pairs`` (i, j) of both kinds [R, 4, E], their ``agreement``
            [R, 2, E], and how many there are of each of the three kinds, ``counts`` [R, 3].
        weights: w₁ and w₂.
        u: Random numbers [R, 2, K], by which up to K pairs of each kind are drawn.
    """
    import torch
    from torch.nn.functional import one_hot

    labels = one_hot(held["classes"], p.shape[2]).to(p.dtype)
    counts, total = held["counts"], p.new_zeros(len(p))
    for kind, weight in enumerate(weights):
        number, real = places(u[:, kind], counts[:, kind + 1 : kind + 2])
        i, j = (held["pairs"][:, 2 * kind + end].gather(1, number) for end in (0, 1))
        apart = (rows(p if kind else labels, i) - rows(p, j)).square().sum(2)
        total = total + weight * (held["agreement"][:, kind].gather(1, number) * apart * real).sum(1)
    return total / torch.clamp(counts, max=u.shape[2]).sum(1).clamp(min=1)


def held_pairs(edges: NDArray[np.int64], classes: NDArray[np.int64], agreement: Tensor) -> dict[str, Any]:
    """What :func:`disagreement` reads of one run, as arrays, from the agreement of both ends of each edge [E]."""
    import numpy as np

    known, found = classes[edges] >= 0, agreement.cpu().numpy()
    within = (known.all(0) & (classes[edges[0]] == classes[edges[1]])).sum()
    out, into, neither = known[0] & ~known[1], known[1] & ~known[0], ~known.any(0)
    mixed = np.concatenate([edges[:, out], edges[::-1, into]], 1)  # from the labeled node to the other one
    return {
        "pairs": (mixed, edges[:, neither]),
        "agreement": (np.concatenate([found[out], found[into]]), found[neither]),
        "counts": [within, mixed.shape[1], neither.sum()],
    }


def round_phase(
    problem: Problem,
    replicas: Sequence[Replica],
    *,
    model: GamModel,
    method: Method,
    protocol: Protocol,
    number: int,
    classes: Sequence[NDArray[np.int64]],
    edges: NDArray[np.int64],
    agreement: Tensor | None,
) -> Iterator[Phase]:
    """The training of the GCN in a round: alone, or with the agreement of both ends of each edge [R, E]."""
    import numpy as np
    import torch

    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import begin
    from propreg.engine.training.stopping import RULES

    network, term = Classifier(problem, model, number), problem.regularizer(method)
    stream = f"dropout of round {number}" if number else "dropout"
    state = begin(problem, network, model, replicas, protocol, stream=stream)
    objective: Objective = RegularizedLoss(method, term)
    if agreement is not None:
        state.targets = problem.targets(replicas, classes)
        runs = [held_pairs(edges, each, a) for each, a in zip(classes, agreement, strict=True)]
        pairs = [filled_up([run["pairs"][kind] for run in runs]) for kind in (0, 1)]
        longest = max(part.shape[2] for part in pairs)
        wide = np.zeros((len(runs), 4, longest), np.int64)
        shares = np.zeros((len(runs), 2, longest))
        for kind, part in enumerate(pairs):
            wide[:, 2 * kind : 2 * kind + 2, : part.shape[2]] = part
            for row, run in zip(shares, runs, strict=True):
                row[kind, : len(run["agreement"][kind])] = run["agreement"][kind]
        counts = np.array([run["counts"] for run in runs])
        known = np.maximum(np.stack(classes), 0)
        for name, array in (("pairs", wide), ("counts", counts), ("classes", known)):
            state.held[name] = torch.from_numpy(array).to(problem.device)
        state.held["agreement"] = torch.from_numpy(shares).to(problem.device, problem.dtype)
        objective = GamLoss(model, method, term)
    yield Phase(network, state, objective, [RULES[protocol.rule]], protocol.max_epochs)


def train(
    problem: Problem,
    replicas: Sequence[Replica],
    /,
    *,
    model: Model,
    method: Method,
    protocol: Protocol,
    options: Options,
) -> Iterator[tuple[int, Result]]:
    """All replicas a round at a time; those that label no node leave."""
    import numpy as np

    from propreg.engine.training.batches import CUDA_CHECK_EVERY
    from propreg.engine.training.train import train as train_round

    mine, index = settings_of(model, GamModel), problem.graph.edge_index
    edges = index[:, index[0] != index[1]]
    splits = [problem.splits[replica.split] for replica in replicas]
    classes = [np.where(split.train, problem.graph.y, -1) for split in splits]
    shares = [
        np.bincount(each[each >= 0], minlength=problem.num_classes) / max((each >= 0).sum(), 1) for each in classes
    ]
    active, best = list(range(len(replicas))), dict[int, Result]()
    for number in range(mine.rounds):
        runs, known = [replicas[i] for i in active], [classes[i] for i in active]
        agreement = None
        if number:
            network = Agreement(problem, mine.hidden, mine.agreement_decay, number)
            agreement = agreements(problem, model, runs, protocol, network, known, edges, options.stop)
            if agreement is None:
                return
        procedure = partial(
            round_phase, model=mine, method=method, protocol=protocol, number=number, classes=known, edges=edges,
            agreement=agreement,
        )  # fmt: skip
        found = dict(
            train_round(
                problem,
                model,
                method,
                runs,
                protocol,
                keep_history=options.keep_history,
                keep_weights=True,
                measures=options.measures,
                rules=options.rules,
                check_every=CUDA_CHECK_EVERY if problem.device.type == "cuda" else 1,
                procedure=procedure,
                stop=options.stop,
            )
        )
        if len(found) < len(active):
            return
        left = []
        for place, i in enumerate(active):
            result = found[place]
            best[i] = better(best.get(i), result)
            goes_on = number + 1 < mine.rounds and not result.failed
            if number and goes_on:
                p = probabilities(problem, mine, result)
                open_to = ~(splits[i].train | splits[i].val | splits[i].test) & (classes[i] < 0)
                chosen = confident(p, open_to, mine, shares[i])
                classes[i] = classes[i].copy()
                classes[i][chosen] = p[chosen].argmax(1)
                goes_on = len(chosen) > 0
            if goes_on:
                left.append(i)
            else:
                yield i, best[i] if options.keep_weights else replace(best[i], weights={})
        active = left
        if not active:
            return


def probabilities(problem: Problem, model: GamModel, result: Result) -> NDArray[np.float64]:
    """Those of all nodes, [N, C], by the weights of a result."""
    import torch

    p = {name: t.unsqueeze(0).to(problem.device) for name, t in result.weights.items()}
    network = Classifier(problem, model)
    with torch.no_grad():
        found: NDArray[np.float64] = (
            network.finish(p, network.begin(p), no_dropout)[0].double().softmax(-1).cpu().numpy()
        )
    return found


def confident(
    p: NDArray[np.float64], open_to: NDArray[np.bool_], model: GamModel, shares: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The open nodes to label next: the most confident ones, in each class up to its share."""
    import numpy as np

    nodes = np.flatnonzero(open_to & (p.max(1) > model.confidence))
    nodes = nodes[np.argsort(-p[nodes].max(1), kind="stable")]
    if not model.keep_proportions:
        return nodes[: model.self_labels]
    kinds = p[nodes].argmax(1)
    return np.concatenate([nodes[kinds == c][: int(share * model.self_labels)] for c, share in enumerate(shares)])


def better(known: Result | None, new: Result) -> Result:
    """The result of rounds so far and of a new one: each rule reports a round as it would report an epoch."""
    import numpy as np

    if known is None:
        return new
    shifted = [replace(report, epoch=known.epochs + report.epoch) for report in new.reports]
    wins = [reports_later(b.rule, a.val, b.val) for a, b in zip(known.reports, shifted, strict=True)]
    reports = tuple(b if won else a for a, b, won in zip(known.reports, shifted, wins, strict=True))
    first = reports[0]
    return Result(
        known.replica,
        val=first.val,
        test=first.test,
        epoch=first.epoch,
        epochs=known.epochs + new.epochs,
        failed_at=None if new.failed_at is None else known.epochs + new.failed_at,
        history={name: np.concatenate([known.history[name], each]) for name, each in new.history.items()},
        weights=new.weights if wins[0] else known.weights,
        reports=reports,
        before=known.epochs + new.before if wins[0] else known.before,
    )


def reports_later(rule: str, before: float, after: float) -> bool:
    """Whether a rule reports the later of two rounds with these validation accuracies; a loss falls as they rise."""
    import torch

    from propreg.engine.training.stopping import RULES, Watch

    watch = Watch(RULES[rule], torch.tensor([torch.inf], dtype=torch.float64))
    one = torch.ones_like(watch.stopped)
    for at, val in enumerate((before, after), start=1):
        seen = torch.tensor([val], dtype=torch.float64)
        reported = watch.take(one, torch.full_like(seen, at), seen, seen, -seen)
    return bool(reported)


def build(problem: Problem, model: Model) -> Classifier:
    """The GCN, on the graph with self-loops, symmetrically normalized."""
    return Classifier(problem, model)


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    mine = settings_of(model, GamModel)
    for name in ("rounds", "self_labels"):
        value = getattr(mine, name)
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    for name in ("labeled_weight", "unlabeled_weight", "agreement_decay"):
        value = getattr(mine, name)
        if not value >= 0:
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")
    if not 0 <= mine.confidence <= 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {mine.confidence!r}.")


def count_pairs(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of a GCN in one more pass, or of the agreement model; the pairs, in 64 bits."""
    return count_activations(model, sizes, passes + 1) + 4 * sizes.nodes * model.hidden + 12 * sizes.edges


_TRAINING = {"lr": 0.001, "weight_decay": 0.0, "patience": 2000, "max_epochs": 100_000, "rule": "strict"}


def _recipe(settings: dict[str, Any], normalize: bool = False, **training: Any) -> Recipe:
    return Recipe(settings, {**_TRAINING, "dropout": 0.5, **training}, normalize=normalize)


GAM = Architecture(
    "gam",
    "GAM",
    build=build,
    export=export_gcn,
    streams=("hidden",),
    kind=GamModel,
    training=_TRAINING,
    trainer=train,
    source=Source(
        "Stretcu and others", 2019, "NeurIPS", "a GCN and an agreement model that label nodes for each other"
    ),
    recipes={
        "cora": _recipe({}),
        "citeseer": _recipe(
            {"labeled_weight": 0.01, "unlabeled_weight": 0.005, "keep_proportions": True, "rounds": 50}, normalize=True
        ),
        "pubmed": _recipe(
            {"self_labels": 500, "confidence": 0.7, "rounds": 50, "agreement_decay": 0.05},
            weight_decay=5e-4,
            weight_decay_scope="first",
        ),
    },
    check=check,
    activations=count_pairs,
)
