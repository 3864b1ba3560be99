"""Training on molecules: runs alone and together, pairs, and what is reported."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from molecules.made_up import graphs, molecules
from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.ops.dropout import Masks
from propreg.molecules.packing import assemble
from propreg.molecules.regularizers import Form, preg_term
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.tasks import MoleculeTask
from propreg.molecules.train import MoleculeResult, MoleculeRun, Training, train_molecules

CPU = torch.device("cpu")
FIFTY_STEPS = MoleculeProtocol(epochs=17, batch_size=4)


def small(name: str, virtual_node: bool, layers: int, hidden: int) -> MoleculeModel:
    return MoleculeModel(f"mol-{name}", hidden, layers, virtual_node=virtual_node)


def task(regression: bool = True, tasks: int = 1) -> MoleculeTask:
    kind = "regression" if regression else "binary classification"
    return MoleculeTask(molecules(tasks=tasks, regression=regression), kind, CPU, torch.float64)


def trained(
    form: Form, runs: list[MoleculeRun], model: MoleculeModel, protocol: MoleculeProtocol = FIFTY_STEPS
) -> list[MoleculeResult]:
    found = dict(train_molecules(task(), model, form, runs, protocol, keep_weights=True))
    return [found[i] for i in range(len(runs))]


def apart(one: MoleculeResult, other: MoleculeResult) -> float:
    return max(float((one.weights[name] - other.weights[name]).abs().max()) for name in other.weights)


@pytest.mark.parametrize("form", ["plain", "paper", "reference"])
@pytest.mark.parametrize("model", [small("gin", True, 3, 8), small("gcn", False, 3, 8)], ids=str)
def test_a_run_is_the_same_alone_and_in_a_batch(form: Form, model: MoleculeModel) -> None:
    runs = [MoleculeRun(seed, strength) for seed, strength in product((0, 1, 2), (0.0, 0.5))]
    together = trained(form, runs, model)
    uneven = trained(form, [runs[3], runs[2], runs[1]], model)
    for place in (2, 3):
        alone = trained(form, [runs[place]], model)[0]
        assert apart(together[place], alone) < 1e-8
        assert apart(uneven[3 - place], alone) < 1e-8
        np.testing.assert_allclose(together[place].val, alone.val, atol=1e-8)


@pytest.mark.parametrize("model", [small("gin", True, 3, 8), small("gcn", False, 3, 8)], ids=str)
def test_passes_together_are_passes_one_after_the_other(model: MoleculeModel) -> None:
    runs = [MoleculeRun(seed, strength) for seed, strength in product((0, 1), (0.3, 0.7))]
    training = Training(task(), model, "reference", runs, FIFTY_STEPS)
    network, p = training.network, training.parameters
    (chosen, size), *_ = training.steps.orders(1)
    batch, buffers = assemble(training.task.packed, chosen, *size), {n: t.clone() for n, t in training.buffers.items()}
    together = training.loss(batch)

    def one_pass(number: int) -> Tensor:
        def draw(place: str) -> Masks:
            site = 2 * int(place[-1]) + place.startswith("virtual")
            return Masks(training.keys(3 * site + number), torch.full((2,), 0.5, dtype=torch.float64))

        return network.atoms(p, buffers, batch, draw, training=True)

    passes = [one_pass(number) for number in range(3)]
    assert not torch.allclose(passes[1], passes[2], atol=1e-3)
    term = preg_term("reference", passes, p, batch)
    assert term is not None
    loss = (
        training.task.loss(network.predict(p, passes[0], batch), batch).flatten() + training.strength * term.flatten()
    )
    torch.testing.assert_close(together, loss, rtol=0, atol=1e-10)
    weights = torch.linspace(1, 2, len(runs), dtype=torch.float64)
    gradients = [torch.autograd.grad((each * weights).sum(), list(p.values())) for each in (together, loss)]
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-10)
    for name, expected in buffers.items():
        torch.testing.assert_close(training.buffers[name], expected, rtol=0, atol=1e-10)


def test_strength_0_in_the_paper_form_is_the_plain_run() -> None:
    model = small("gin", True, 3, 8)
    paper = trained("paper", [MoleculeRun(1, 0.0), MoleculeRun(1, 0.7)], model)
    plain = trained("plain", [MoleculeRun(1)], model)[0]
    assert apart(paper[0], plain) < 1e-10
    assert apart(paper[1], plain) > 1e-3


def test_seeds_have_orders_and_weights_of_their_own() -> None:
    model = small("gcn", False, 2, 8)
    training = Training(task(), model, "plain", [MoleculeRun(0), MoleculeRun(1)], FIFTY_STEPS)
    (first, _), *_ = training.steps.orders(1)
    assert first[0].tolist() != first[1].tolist()
    second = torch.cat([molecules for molecules, _ in training.steps.orders(2)], 1)
    assert sorted(second[0].tolist()) == sorted(training.task.data.split["train"])
    weight = training.parameters["head.weight"]
    assert not torch.equal(weight[0], weight[1])


def test_a_last_mini_batch_of_one_molecule_is_skipped() -> None:
    training = Training(task(), small("gcn", False, 2, 8), "plain", [MoleculeRun()], MoleculeProtocol(1, 11))
    assert [len(m[m >= 0]) for m, _ in training.steps.orders(1)] == [11]


def test_initial_weights_have_their_published_spread() -> None:
    training = Training(task(), small("gin", False, 1, 64), "reference", [MoleculeRun()], MoleculeProtocol(1))
    p = training.parameters

    def largest(t: Tensor) -> float:
        return float(t.detach().abs().max())

    assert largest(p["head.weight"]) <= 64**-0.5 < 1.1 * largest(p["head.weight"])
    assert largest(p["atoms"][:, :119]) <= (6 / (119 + 64)) ** 0.5 < 1.05 * largest(p["atoms"][:, :119])
    assert 0.7 < float(p["propagation.root"].detach().std()) < 1.3


def test_missing_labels_carry_no_loss() -> None:
    data = molecules(tasks=2)
    changed = molecules(tasks=2)
    assert np.isnan(data.y).any()
    model, protocol, results = small("gcn", False, 2, 8), MoleculeProtocol(2, 4), []
    for each in (data, changed):
        made = MoleculeTask(each, "regression", CPU, torch.float64)
        if each is changed:  # nonsense in the place of a missing label
            made.packed.y[made.packed.labeled == 0] = 1e6
        results.append(dict(train_molecules(made, model, "plain", [MoleculeRun()], protocol, keep_weights=True))[0])
    assert apart(*results) == 0


def test_the_reported_epoch_is_the_first_best() -> None:
    scores = np.array([0.3, 0.7, 0.7, 0.5])
    assert MoleculeResult(MoleculeRun(), scores, scores, maximize=True).epoch == 2
    assert MoleculeResult(MoleculeRun(), scores, scores, maximize=False).epoch == 1
    assert MoleculeResult(MoleculeRun(), scores * np.nan, scores, maximize=True).epoch == 0


def test_streams_are_those_of_the_identity() -> None:
    model = small("gcn", False, 2, 8)
    assert task().stream(0, model, "dropout") == task().stream(0, small("gcn", False, 2, 8), "dropout")
    others = (0, small("gcn", True, 2, 8), "dropout"), (1, model, "dropout"), (0, model, "order1")
    assert len({task().stream(*each) for each in (*others, (0, model, "dropout"))}) == 4


@pytest.mark.parametrize("classes", [0, 3])
def test_a_users_graphs_are_learned_in_the_units_of_their_targets(classes: int) -> None:
    kind = "classification" if classes else "regression"
    made = MoleculeTask(graphs(96, classes=classes), kind, CPU, torch.float64, standardize=True)
    model, runs = small("gin", False, 2, 16), [MoleculeRun(0), MoleculeRun(1)]
    found = dict(train_molecules(made, model, "plain", runs, MoleculeProtocol(30, 8, 0.01, 0.0), keep_weights="best"))
    for result in found.values():
        best = result.val[result.epoch - 1]
        assert best > 0.7 if classes else best < 16  # targets are 50 ± 40, of three equal classes


def test_weights_are_those_of_the_reported_epoch() -> None:
    made, model = task(), small("gin", True, 2, 8)
    protocol, runs = MoleculeProtocol(6, 4, 0.01), [MoleculeRun(0), MoleculeRun(1, 0.5)]
    found = dict(train_molecules(made, model, "paper", runs, protocol, keep_weights="best"))
    for place, result in found.items():
        short = MoleculeProtocol(result.epoch, 4, 0.01)
        there = dict(train_molecules(made, model, "paper", runs, short, keep_weights=True))[place]
        assert apart(result, there) < 1e-12
    assert {result.epoch for result in found.values()} != {6}


def test_runs_on_a_users_graphs_are_the_same_alone_and_in_a_batch() -> None:
    made = MoleculeTask(graphs(classes=3), "classification", CPU, torch.float64)
    runs, model = [MoleculeRun(seed, mu) for seed in (0, 1) for mu in (0.0, 0.5)], small("gcn", True, 2, 8)
    forms: tuple[Form, ...] = ("paper", "reference")
    for form in forms:
        found = dict(train_molecules(made, model, form, runs, FIFTY_STEPS, keep_weights=True))
        alone = dict(train_molecules(made, model, form, runs[2:3], FIFTY_STEPS, keep_weights=True))
        assert apart(found[2], alone[0]) < 1e-8
