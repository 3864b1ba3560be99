"""GAM on six nodes, term by term; which nodes it labels; and its rounds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import propreg
from engine.graphs import problem
from methods.six_nodes import X, adjacency, six_nodes, softmax
from propreg.engine import Method, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.models.network import no_dropout
from propreg.engine.spec import Report
from propreg.engine.training.epoch import advance
from propreg.engine.training.passes import DropoutMasks, Passes
from propreg.engine.training.phases import Phase
from propreg.methods import gam
from propreg.methods.agreement import agreements
from propreg.methods.gam import GAM, GamModel, better, confident, disagreement, held_pairs, round_phase
from reference import Array

Whole = NDArray[np.int64]
SMALL = GamModel(hidden=5, input_dropout=0.0, labeled_weight=0.8, unlabeled_weight=0.3)
ALONE = Replica(split="own", dropout=0.0, strength=0.25)
LABELED = np.array([0, 0, -1, -1, -1, -1])  # on the ring 0–1–2–3 with 3–4: 1–2 and 0–3 are mixed, 2–3 and 3–4 neither
P = np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [1, 0, 0], [0, 0.5, 0.5], [0.1, 0.9, 0], [1 / 3] * 3])


def of_edges(edges: Whole) -> Array:
    """An agreement for each listed direction, in tenths."""
    found: Array = np.arange(1, edges.shape[1] + 1) / 10
    return found


def by_hand(p: Array, classes: Whole, edges: Whole, weights: tuple[float, float]) -> float:
    """The mean over all pairs: labeled ones of the same class count with 0."""
    values, eye = [], np.eye(3)
    for a, (i, j) in zip(of_edges(edges), edges.T, strict=True):
        if classes[i] >= 0 and classes[j] >= 0:
            values += [0.0] if classes[i] == classes[j] else []
        elif classes[i] >= 0 or classes[j] >= 0:
            known, other = (i, j) if classes[i] >= 0 else (j, i)
            values.append(weights[0] * a * ((eye[classes[known]] - p[other]) ** 2).sum())
        else:
            values.append(weights[1] * a * ((p[i] - p[j]) ** 2).sum())
    return float(np.mean(values))


def as_tensors(edges: Whole, classes: Whole) -> dict[str, Any]:
    """The held tensors of one run."""
    found = held_pairs(edges, classes, torch.from_numpy(of_edges(edges)))
    longest = max(part.shape[1] for part in found["pairs"])
    fill = [np.pad(part, ((0, 0), (0, longest - part.shape[1]))) for part in found["pairs"]]
    shares = [np.pad(part, (0, longest - len(part))) for part in found["agreement"]]
    return {
        "pairs": torch.from_numpy(np.concatenate(fill)).unsqueeze(0),
        "agreement": torch.from_numpy(np.stack(shares)).unsqueeze(0),
        "counts": torch.tensor([found["counts"]]),
        "classes": torch.from_numpy(np.maximum(classes, 0)).unsqueeze(0),
    }


def test_the_mean_over_the_concatenated_pairs_by_hand() -> None:
    """Directions 0–1 and 1–0 are labeled and agree; 1–2 and 3–0, 2–3 and 3–4 with their reverses are the others."""
    edges = six_nodes().graph.edge_index
    held = as_tensors(edges, LABELED)
    assert held["counts"].tolist() == [[2, 4, 4]]
    found = disagreement(torch.from_numpy(P).unsqueeze(0), held, (0.8, 0.3), torch.rand(1, 2, 512).double())
    one, two = {1: 0.8 * (0 + 0 + 0), 3: 0.8 * (1 + 0.25 + 0.25)}, {"23": 0.3 * 1.5, "34": 0.3 * (0.01 + 0.16 + 0.25)}
    a = dict(zip(map(tuple, edges.T.tolist()), of_edges(edges).tolist(), strict=True))
    total = one[1] * (a[1, 2] + a[2, 1]) + one[3] * (a[3, 0] + a[0, 3])
    total += two["23"] * (a[2, 3] + a[3, 2]) + two["34"] * (a[3, 4] + a[4, 3])
    assert found.item() == pytest.approx(total / 10, abs=1e-12)
    assert found.item() == pytest.approx(by_hand(P, LABELED, edges, (0.8, 0.3)), abs=1e-12)


def test_of_more_pairs_than_a_step_takes_some_are_drawn() -> None:
    """With room for three of each kind: two labeled pairs, and three drawn of four, number ⌊4u⌋."""
    edges = six_nodes().graph.edge_index
    held = as_tensors(edges, LABELED)
    u = torch.tensor([[[0.0, 0.3, 0.99], [0.6, 0.6, 0.1]]], dtype=torch.float64)
    found = disagreement(torch.from_numpy(P).unsqueeze(0), held, (0.8, 0.3), u).item()
    (mixed, neither), (first, second) = held["pairs"][0].view(2, 2, -1).tolist(), held["agreement"][0].tolist()
    total = sum(0.8 * first[k] * ((np.eye(3)[0] - P[mixed[1][k]]) ** 2).sum() for k in (0, 1, 3))
    total += sum(0.3 * second[k] * ((P[neither[0][k]] - P[neither[1][k]]) ** 2).sum() for k in (2, 2, 0))
    assert found == pytest.approx(total / (2 + 3 + 3), abs=1e-12)


def test_no_pairs_at_all() -> None:
    held = as_tensors(np.zeros((2, 0), np.int64), LABELED)
    held = {
        name: torch.zeros(1, *t.shape[1:-1], 1, dtype=t.dtype) if t.shape[-1] == 0 else t for name, t in held.items()
    }
    assert disagreement(torch.from_numpy(P).unsqueeze(0), held, (1.0, 1.0), torch.rand(1, 2, 5)).item() == 0


def test_the_gradient_goes_through_both_ends() -> None:
    edges = six_nodes().graph.edge_index
    p = torch.from_numpy(P).unsqueeze(0).requires_grad_()
    (found,) = torch.autograd.grad(disagreement(p, as_tensors(edges, LABELED), (0.8, 0.3), torch.rand(1, 2, 9)), p)
    for i, j in np.ndindex(6, 3):
        moved = [P.copy(), P.copy()]
        moved[0][i, j] += 1e-6
        moved[1][i, j] -= 1e-6
        high, low = (by_hand(each, LABELED, edges, (0.8, 0.3)) for each in moved)
        assert float(found[0, i, j]) == pytest.approx((high - low) / 2e-6, abs=1e-7)


def started(model: GamModel, method: Method, classes: Whole, found: Problem | None = None) -> tuple[Phase, Passes]:
    """The second round, with some agreement of each edge."""
    found = found or six_nodes()
    edges = found.graph.edge_index
    (phase,) = round_phase(
        found, [ALONE], model=model, method=method, protocol=Protocol(), number=1, classes=[classes], edges=edges,
        agreement=torch.from_numpy(of_edges(edges)).unsqueeze(0),
    )  # fmt: skip
    advance(phase.objective, phase.state, 1)
    return phase, Passes(phase.network, phase.state, phase.network.begin(phase.state.tensors), phase.objective.passes)


@pytest.mark.parametrize("name", ["plain", "preg"])
def test_the_loss_of_a_round_by_hand(name: str) -> None:
    """Cross entropy of five labels, one of which it gave itself and is wrong, the regularizer, and the disagreement."""
    classes = np.array([0, 1, 2, -1, 1, -1])
    phase, seen = started(SMALL, Method(name), classes)
    p = {key: t[0].detach().numpy() for key, t in phase.state.parameters.items()}
    assert {key for key, t in phase.state.parameters.items() if t.requires_grad} == {"w0", "w1"}
    z = adjacency() @ np.maximum(adjacency() @ (X.astype(np.float32) @ p["w0"]), 0) @ p["w1"]
    expected = -np.mean([np.log(softmax(z)[i, classes[i]]) for i in (0, 1, 2, 4)])
    edges = six_nodes().graph.edge_index
    expected += by_hand(softmax(z), classes, edges, (0.8, 0.3))
    if name == "preg":
        expected += 0.25 * float(propreg.preg(torch.from_numpy(z), torch.from_numpy(edges)))
    assert float(phase.objective.loss(phase.state, seen)[0].detach()) == pytest.approx(expected, abs=1e-9)


def test_the_disagreement_has_dropout_of_its_own() -> None:
    """It is that of the pass after those of the regularizer."""
    model, classes = replace(SMALL, input_dropout=0.5), np.array([0, 1, 2, -1, -1, -1])
    phase, seen = started(model, Method("preg", second_pass=True), classes)
    plain = super(type(phase.objective), phase.objective).loss(phase.state, seen)  # type: ignore[misc]
    found = (phase.objective.loss(phase.state, seen) - plain).item()
    z = phase.network.finish(seen.p, seen.begun, DropoutMasks(phase.state, 2))[0].detach().numpy()
    assert found == pytest.approx(by_hand(softmax(z), classes, six_nodes().graph.edge_index, (0.8, 0.3)), abs=1e-9)


def test_rounds_have_weights_and_dropout_of_their_own() -> None:
    def of_round(number: int) -> Phase:
        (phase,) = round_phase(
            problem(), [Replica(split="a")], model=SMALL, method=Method(), protocol=Protocol(), number=number,
            classes=[], edges=np.zeros((2, 0), np.int64), agreement=None,
        )  # fmt: skip
        return phase

    first, again, other = of_round(0), of_round(0), of_round(3)
    assert torch.equal(first.state.parameters["w0"], again.state.parameters["w0"])
    assert not torch.equal(first.state.parameters["w0"], other.state.parameters["w0"])
    assert first.state.keys.streams != other.state.keys.streams


def test_which_nodes_are_labeled() -> None:
    """The most confident ones above the bar, of those that are open to it; or of each class its share."""
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8], [0.5, 0.5], [0.75, 0.25]])
    open_to = np.array([True, True, True, True, True, False])
    model, shares = GamModel(confidence=0.5, self_labels=3), np.array([0.4, 0.6])
    assert confident(p, open_to, model, shares).tolist() == [0, 3, 2]
    assert confident(p, open_to, replace(model, self_labels=9), shares).tolist() == [0, 3, 2, 1]
    kept = replace(model, keep_proportions=True)
    assert confident(p, open_to, kept, shares).tolist() == [0, 3], "⌊1.2⌋ and ⌊1.8⌋"
    assert confident(p, open_to, replace(model, confidence=0.9), shares).tolist() == []


def of_round(val: float, epoch: int, rule: str, weight: int) -> Result:
    reports = (Report(rule, epoch, val, val / 2), Report("last", 10, 0.1, 0.1))
    return Result(
        Replica(), val, val / 2, epoch, 10, history={"loss": np.full(2, val)}, weights={"w": weight}, reports=reports
    )


@pytest.mark.parametrize(
    ("rule", "vals", "at"),
    [
        ("strict", (0.5, 0.7, 0.7), 14),
        ("latest_best", (0.5, 0.7, 0.7), 25),
        ("strict", (0.7, 0.5, 0.6), 3),
        ("last", (0.7, 0.5, 0.6), 25),
        ("last_on_rise", (0.7, 0.5, 0.6), 25),
        ("official", (0.5, 0.7, 0.7), 25),
        ("first_best", (0.5, 0.7, 0.7), 14),
        ("lowest_val_loss", (0.5, 0.7, 0.7), 14),
        ("loss_or_accuracy", (0.5, 0.7, 0.7), 25),  # it takes the later of epochs that are equal in both
        ("loss_or_accuracy", (0.7, 0.5, 0.6), 3),
    ],
)
def test_the_best_round_is_reported(rule: str, vals: tuple[float, ...], at: int) -> None:
    """Epochs go on from round to round."""
    known = None
    for number, val in enumerate(vals):
        known = better(known, of_round(val, number + 3, rule, number))
    assert known is not None
    assert (known.epoch, known.epochs, known.reports[1].epoch) == (at, 30, 30)
    assert known.val == known.reports[0].val == vals[at // 10]
    assert known.weights == {"w": at // 10}
    assert known.history["loss"].tolist() == [v for v in vals for _ in range(2)]


def runs(model: GamModel, epochs: int = 6, **options: Any) -> dict[int, Result]:
    replicas = [Replica(split="a", patience=4), Replica(split="b", seed=1, patience=4)]
    protocol = Protocol("latest_best", max_epochs=epochs)
    return dict(train_all(problem(), model, Method(), replicas, protocol, Options(workers=1, **options)))


def test_it_ends_once_no_node_is_confident() -> None:
    """That is after the first round that may label any."""
    model, rules = replace(SMALL, confidence=1.0), ["strict", "last"]
    for i, found in runs(model, keep_history=True, rules=rules, measures=True).items():
        assert found.epochs == 12 == len(found.history["loss"])
        for report in found.reports:
            assert report.measures is not None
            assert sum(report.measures.val.right) == round(report.val * problem().splits["ab"[i]].val.sum())
        assert [report.rule for report in found.reports] == ["latest_best", "strict", "last"]
        assert found.weights == {}
    assert {found.epochs for found in runs(replace(SMALL, rounds=1)).values()} == {6}


def test_only_nodes_outside_the_split_are_labeled(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each is one of the labels from then on."""
    seen: list[tuple[Any, Whole]] = []
    original, targets = gam.confident, Problem.targets

    def remembering(p: Array, open_to: Any, *rest: Any) -> Whole:
        chosen: Whole = original(p, open_to, *rest)
        seen.append((open_to, chosen))
        return chosen

    trained: list[Whole] = []

    def asked(found: Problem, replicas: Sequence[Replica], given: Any = None) -> Any:
        if given is not None:
            trained.append(given[0])
        return targets(found, replicas, given)

    monkeypatch.setattr(gam, "confident", remembering)
    monkeypatch.setattr(Problem, "targets", asked)
    found = problem()
    free = replace(found.splits["a"], test=found.splits["a"].test & (np.arange(60) % 2 == 0))
    open_problem = Problem(found.graph, {"a": free}, found.device, torch.float64)
    model = replace(SMALL, confidence=0.0, self_labels=5, rounds=4)
    ((_, result),) = train_all(open_problem, model, Method(), [Replica(split="a")], Protocol("last", 3))
    outside = ~(free.train | free.val | free.test)
    assert result.epochs == 12
    assert [len(chosen) for _, chosen in seen] == [5, 5]
    known = free.train.copy()
    for classes, (open_to, chosen) in zip(trained, seen, strict=False):
        assert ((classes >= 0) == known).all()
        assert (classes[free.train] == found.graph.y[free.train]).all()
        assert (open_to == (outside & ~known)).all()
        known[chosen] = True
    assert len(trained) == 3


def test_labels_that_a_run_gave_itself_are_balanced_by_class() -> None:
    known = six_nodes()
    found = Problem(known.graph, known.splits, known.device, torch.float64, balanced=True)
    targets = found.targets([ALONE], [np.array([0, 0, 0, -1, 2, -1])])
    assert targets.nodes.tolist() == [[0, 1, 2, 4]]
    assert targets.classes.tolist() == [[0, 0, 0, 2]]
    assert targets.weights[0].tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_a_single_round_is_a_gcn() -> None:
    """Round 0 has the weights, at every epoch, of the phase without pairs."""
    ((_, alone),) = train_all(
        problem(),
        replace(SMALL, rounds=1),
        Method(),
        [Replica(split="a")],
        Protocol("last", 5),
        Options(keep_weights=True),
    )
    from propreg.engine.training.train import train

    def procedure(found: Problem, replicas: Sequence[Replica]) -> Any:
        from propreg.engine.training.phases import one_phase

        return one_phase(found, replicas, model=SMALL, method=Method(), protocol=Protocol("last", 5))

    ((_, expected),) = train(
        problem(), SMALL, Method(), [Replica(split="a")], Protocol("last", 5), procedure=procedure, keep_weights=True
    )
    assert all(torch.equal(alone.weights[name], expected.weights[name]) for name in ("w0", "w1"))


@pytest.mark.parametrize("looks", [3, 9, 16])
def test_it_can_be_stopped_anywhere(looks: int) -> None:
    """In the GCN of a round, and in the agreement model: nothing is reported."""
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count > looks

    assert runs(SMALL, stop=stop) == {}
    assert count <= looks + 3


def test_a_run_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that overflow in the second round."""

    def broken(*args: Any) -> Any:
        found: Any = agreements(*args)
        found[0] = torch.nan
        return found

    monkeypatch.setattr(gam, "agreements", broken)
    found = runs(replace(SMALL, confidence=1.0), batch=2)
    assert (found[0].failed_at, found[1].failed) == (7, False)


def test_the_exported_weights_are_those_of_the_best_round() -> None:
    model = replace(SMALL, confidence=0.0, self_labels=1, rounds=3)
    found = runs(model, keep_weights=True)
    for i, name in enumerate("ab"):
        p = {key: t.unsqueeze(0) for key, t in found[i].weights.items()}
        network = problem().network(model)
        z = network.finish(p, network.begin(p), no_dropout)[0]
        val = problem().splits[name].val
        assert float((z.argmax(1)[val] == problem().y[val]).double().mean()) == pytest.approx(found[i].val)


def test_published_settings() -> None:
    assert not any(recipe.ours for recipe in GAM.recipes.values())
    pubmed = GAM.recipes["pubmed"]
    assert (pubmed.training["weight_decay"], pubmed.training["weight_decay_scope"]) == (5e-4, "first")
    assert GAM.recipes["citeseer"].normalize
    assert GamModel().rounds == 1000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"self_labels": 1.5}, "self_labels must be a whole number of at least 1, got 1.5"),
        ({"labeled_weight": -1.0}, "labeled_weight must be a number of at least 0, got -1.0"),
        ({"confidence": 1.5}, "confidence must lie between 0 and 1, got 1.5"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), GamModel(**change), Method(), [Replica(split="a")], Protocol()))
