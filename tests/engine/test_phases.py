"""Procedures of several phases, networks and passes: each run is the same alone and in a batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.graphs import problem
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.models.network import Draw, Network, Parameters, Weight, no_dropout
from propreg.engine.ops.dropout import dropped_linear
from propreg.engine.ops.random import generator, stream_key
from propreg.engine.ops.rmsprop import RMSprop
from propreg.engine.training.objective import Objective
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase, Procedure, evaluate
from propreg.engine.training.state import State, begin
from propreg.engine.training.stopping import FIRST_BEST, LAST, OFFICIAL, STRICT, Rule, Watch
from propreg.engine.training.train import train

MODEL, METHOD, PROTOCOL = Model("gcn", hidden=16), Method("preg"), Protocol(max_epochs=50)
RUNS = [
    Replica(seed=s, split="ab"[s % 2], strength=0.3 * (s % 3), patience=p, lr=0.02, dropout=(0.5, 0.2)[s // 3])
    for s, p in enumerate((4, 30, 2, 9, 100))
]
FIRST, SECOND, THIRD = 12, 13, 25  # epochs


def soft_cross_entropy(z: Tensor, targets: Tensor) -> Tensor:
    return -(targets * z.log_softmax(-1)).sum(-1).mean(-1)


class LabelCrossEntropy(Objective):
    """On the training nodes."""

    def loss(self, state: State, logits: Passes) -> Tensor:
        targets = state.targets
        log_p = targets.logits(logits.trained(0)).log_softmax(-1)
        return -(log_p.gather(-1, targets.classes.unsqueeze(-1)).squeeze(-1) * targets.weights).sum(-1)


class TargetCrossEntropy(Objective):
    """On all nodes, with the targets that the state holds."""

    def loss(self, state: State, logits: Passes) -> Tensor:
        return soft_cross_entropy(logits.trained(0), state.held["targets"])


class FromLabels(Network):
    """A network whose input is a class per node and replica."""

    def __init__(self, found: Problem) -> None:
        self.spread, self.classes = found.network(MODEL), found.num_classes
        self.adjacency: Any = self.spread.adjacency  # type: ignore[attr-defined]

    def weights(self) -> dict[str, Weight]:
        """Two layers without biases."""
        return {"v0": Weight((self.classes, 8), (self.classes, 8)), "v1": Weight((8, self.classes), (8, self.classes))}

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """Logits."""
        h = dropped_linear(p["targets"], p["v0"], draw("input0"))
        z: Tensor = self.adjacency(dropped_linear(self.adjacency(h).relu(), p["v1"], draw("hidden1")))
        return z


def two_networks(seen: list[Tensor]) -> Procedure:
    """As GMNN: q learns the labels, p the classes drawn from q's predictions, and q then p's predictions."""

    def procedure(found: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
        network, labels = found.network(MODEL), FromLabels(found)
        q = begin(found, network, MODEL, replicas, PROTOCOL, optimizer=RMSprop)
        yield Phase(network, q, LabelCrossEntropy(), [FIRST_BEST], FIRST, leaves="best")
        seen.append(evaluate(network, q))
        p = begin(found, labels, MODEL, replicas, PROTOCOL, optimizer=RMSprop, stream="dropout of p")
        p.held["targets"] = drawn(found, replicas, seen[-1].div(0.1).softmax(-1))
        yield Phase(labels, p, TargetCrossEntropy(), [LAST], SECOND, leaves="last")
        q.held["targets"] = with_labels(found, replicas, evaluate(labels, p).softmax(-1))
        yield Phase(network, q, TargetCrossEntropy(), [STRICT], THIRD)

    return procedure


def drawn(found: Problem, replicas: Sequence[Replica], p: Tensor) -> Tensor:
    """A class per node from each replica's own stream, as one-hot vectors; training nodes have their label."""
    one_hot = torch.zeros_like(p)
    for i, replica in enumerate(replicas):
        uniform = generator(stream_key(found.digest, replica, MODEL, "classes")).random((p.shape[1], 1))
        chosen = (p[i].cumsum(-1) < torch.from_numpy(uniform)).sum(-1).clamp(max=p.shape[2] - 1)
        one_hot[i].scatter_(1, chosen.unsqueeze(1), 1.0)
    return with_labels(found, replicas, one_hot)


def with_labels(found: Problem, replicas: Sequence[Replica], p: Tensor) -> Tensor:
    for row, replica in zip(p, replicas, strict=True):
        train_nodes = torch.from_numpy(found.splits[replica.split].train)
        row[train_nodes] = torch.eye(p.shape[2], dtype=p.dtype)[found.y[train_nodes]]
    return p


class Consistency(Objective):
    """Cross entropy and the distance to the sharpened mean of ten passes, the last two of them without a gradient."""

    passes = 10

    def loss(self, state: State, logits: Passes) -> Tensor:
        trained = torch.stack([logits.trained(number).softmax(-1) for number in range(8)])
        with torch.no_grad():
            others = torch.stack([logits.trained(number).softmax(-1) for number in (8, 9)])
            mean = torch.cat([trained.detach(), others]).mean(0).square()
            sharp = mean / mean.sum(-1, keepdim=True)
        targets, distance = state.targets, (trained - sharp).square().sum(-1).mean((0, 2))
        p = torch.stack([targets.logits(z) for z in trained]).gather(
            -1, targets.classes.expand(8, -1, -1).unsqueeze(-1)
        )
        entropy = -(p.squeeze(-1).log() * targets.weights).sum(-1).mean(0)
        return entropy + state.strength * distance


class RunningMean(Network):
    """A network that subtracts the mean of its logits: a running one when it is evaluated."""

    def __init__(self, inner: Network) -> None:
        self.inner = inner

    def weights(self) -> dict[str, Weight]:
        """Those of the inner network."""
        return self.inner.weights()

    def initial(self, found: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:
        """And the running mean, which is not trained."""
        running = torch.zeros(len(replicas), found.num_classes, dtype=found.dtype)
        return {**self.inner.initial(found, model, replicas), "running": running}

    def begin(self, p: Parameters) -> Tensor | None:
        """Of the inner network."""
        return self.inner.begin(p)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Centered logits."""
        z = self.inner.finish(p, begun, draw)
        if not draw.training:
            return z - p["running"].unsqueeze(1)
        mean = z.mean(1)
        with torch.no_grad():
            p["running"].lerp_(mean, 0.1)
        return z - mean.unsqueeze(1)


def no_worse_in_one(watch: Watch) -> Tensor:
    return (watch.losses[:, -1] <= watch.lowest) | (watch.now >= watch.best)


# As GRAND: patience is reset by a loss or an accuracy that is no worse; of those epochs the lowest loss is reported.
EITHER = Rule(
    "either",
    lambda watch: no_worse_in_one(watch) & (watch.losses[:, -1] <= watch.loss),
    improves=no_worse_in_one,
    stops=lambda watch: watch.counter >= watch.patience,
    losses=1,
)


def ten_passes(found: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
    network = RunningMean(found.network(MODEL))
    yield Phase(network, begin(found, network, MODEL, replicas, PROTOCOL), Consistency(), [EITHER], 50)


def trained(procedure: Procedure, replicas: list[Replica], **options: Any) -> dict[int, Result]:
    asked: dict[str, Any] = {"keep_history": True, "keep_weights": True, "procedure": procedure} | options
    return dict(train(problem(), MODEL, METHOD, replicas, PROTOCOL, **asked))


PROCEDURES = {"two networks": two_networks([]), "ten passes": ten_passes}


@cache
def trained_alone(name: str, i: int) -> Result:
    return trained(PROCEDURES[name], [RUNS[i]])[0]


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("name", PROCEDURES)
def test_a_run_is_the_same_alone_and_in_a_batch(name: str, every: int) -> None:
    together = trained(PROCEDURES[name], RUNS, check_every=every)
    assert len({result.epochs for result in together.values()}) > 1, "replicas leave the batch at different epochs"
    assert max(result.epochs for result in together.values()) == 50
    for i in range(len(RUNS)):
        alone = trained_alone(name, i)
        assert alone == together[i]
        assert not alone.failed
        np.testing.assert_allclose(alone.history["loss"], together[i].history["loss"], rtol=0, atol=1e-8)
        for key, weight in alone.weights.items():
            torch.testing.assert_close(together[i].weights[key], weight, rtol=0, atol=1e-8)


def test_the_second_phase_begins_with_the_best_weights_of_the_first() -> None:
    seen: list[Tensor] = []
    results = trained(two_networks(seen), RUNS)

    def first_phase(found: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
        network = found.network(MODEL)
        state = begin(found, network, MODEL, replicas, PROTOCOL, optimizer=RMSprop)
        yield Phase(network, state, LabelCrossEntropy(), [FIRST_BEST], FIRST)

    found, network = problem(), problem().network(MODEL)
    for i, result in trained(first_phase, RUNS).items():
        assert result.epochs == FIRST
        p = {name: w.unsqueeze(0) for name, w in result.weights.items()}
        z = network.finish(p, network.begin(p), no_dropout)
        torch.testing.assert_close(seen[0][i : i + 1], z, rtol=0, atol=1e-8)
        assert result.epoch < FIRST or i > 0, "the best epoch is not always the last"
        np.testing.assert_allclose(results[i].history["loss"][:FIRST], result.history["loss"], rtol=0, atol=1e-8)
        nodes = found.splits[result.replica.split].val
        right = (seen[0][i].argmax(-1).numpy() == found.graph.y)[nodes].mean()
        assert right == result.val


def test_epochs_are_counted_over_all_phases_and_reported_from_the_last_one() -> None:
    for result in trained(two_networks([]), RUNS, rules=["last"]).values():
        assert FIRST + SECOND < result.epoch <= result.epochs <= FIRST + SECOND + THIRD
        assert len(result.history["val"]) == result.epochs
        assert result.history["val"][result.epoch - 1] == pytest.approx(result.val)
        strict, last = result.reports
        assert (strict.rule, last.rule, last.epoch) == ("strict", "last", result.epochs)
        assert result.val == result.history["val"][FIRST + SECOND :].max()


def test_a_run_that_breaks_in_an_early_phase() -> None:
    broken = replace(RUNS[0], lr=1e200)
    healthy = trained(two_networks([]), RUNS[1:3])
    for every in (1, 5):
        found = trained(two_networks([]), [RUNS[1], broken, RUNS[2]], check_every=every)
        assert (found[0], found[2]) == (healthy[0], healthy[1])
        assert found[1] == trained(two_networks([]), [broken])[0]
        assert found[1].failed_at is not None
        assert found[1].failed_at <= FIRST


def test_what_cannot_be_told_of_a_batch_is_refused() -> None:
    state = begin(problem(), problem().network(MODEL), MODEL, RUNS, PROTOCOL)
    with pytest.raises(ValueError, match=r"rule 'official' stops each replica .* pass leaves='best'"):
        Phase(problem().network(MODEL), state, LabelCrossEntropy(), [OFFICIAL], 5, leaves="last")

    def without_end(found: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
        network = found.network(MODEL)
        state = begin(found, network, MODEL, replicas, PROTOCOL)
        yield Phase(network, state, LabelCrossEntropy(), [LAST], 2, leaves="last")

    with pytest.raises(ValueError, match="without a phase that leaves results"):
        trained(without_end, RUNS)


def test_a_training_that_is_no_program_joins_through_the_same_trainer() -> None:
    def by_hand(
        found: Problem, replicas: Sequence[Replica], *, stop: Callable[[], bool]
    ) -> Iterator[tuple[int, Result]]:
        assert found.num_nodes == 60
        for place, replica in enumerate(replicas):
            if stop():
                return
            yield place, Result(replica, val=replica.seed / 10, test=0.5, epoch=1, epochs=1)

    for batch, workers in ((None, None), (2, 2), (1, 1)):
        options = Options(batch=batch, workers=workers, trainer=by_hand)
        found = dict(train_all(problem(), MODEL, METHOD, RUNS, PROTOCOL, options))
        assert {place: result.val for place, result in found.items()} == {i: i / 10 for i in range(5)}
    options = Options(batch=2, procedure=two_networks([]))
    assert dict(train_all(problem(), MODEL, METHOD, RUNS, PROTOCOL, options)) == trained(two_networks([]), RUNS)
