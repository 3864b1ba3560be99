"""What holds for every model and training method: those of MODELS, whatever they are."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from communities import communities
from engine.graphs import problem
from methods.small import NAMES, TRAINED, for_model, small
from propreg.data.own.pyg import to_data
from propreg.engine import Method, Options, Protocol, Replica, Result, train_all
from propreg.engine.models import MODELS

RUNS = [
    Replica(seed=0, split="a", strength=0.3, lr=0.02, dropout=0.5),
    Replica(seed=1, split="b", strength=0.1, lr=0.01, dropout=0.2, weight_decay=0.01),
    Replica(seed=0, split="a", strength=0.0, lr=0.02, dropout=0.5),
    Replica(seed=0, split="a", strength=0.3, lr=0.005, dropout=0.5),
]
EPOCHS = Protocol("last", max_epochs=50)


def trained(name: str, replicas: list[Replica]) -> dict[int, Result]:
    options = Options(keep_weights=True, keep_history=True, batch=len(replicas), workers=1)
    return dict(train_all(problem(), small(name), Method("preg"), for_model(name, replicas), EPOCHS, options))


@cache
def together(name: str) -> dict[int, Result]:
    return trained(name, RUNS)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_the_same_alone_and_in_a_batch(name: str) -> None:
    """In float64, over 50 epochs."""
    for i, run in enumerate(RUNS[:3]):
        (alone,) = trained(name, [run]).values()
        assert (alone.val, alone.test, alone.epoch, alone.failed) == (
            together(name)[i].val, together(name)[i].test, together(name)[i].epoch, False,
        )  # fmt: skip
        for key, weight in alone.weights.items():
            torch.testing.assert_close(together(name)[i].weights[key], weight, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", TRAINED)
def test_p_reg_is_on_top(name: str) -> None:
    """Runs that differ in their strength alone start alike, and end apart."""
    losses = [together(name)[i].history["loss"] for i in (2, 0)]
    assert losses[0][0] < losses[1][0], "P-reg adds to the same loss"
    weights = [together(name)[i].weights for i in (2, 0)]
    assert any(not torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


GRAPH = communities()
FIT: dict[str, Any] = {"splits": 1, "seeds": 1, "train_per_class": 5, "val_per_class": 5, "max_epochs": 12}
FIT |= {"progress": False, "device": "cpu"}


def strength(name: str) -> float:
    return 0.2 if name in TRAINED else 0.0


@pytest.mark.parametrize("name", NAMES)
def test_fit_on_a_graph_of_one_s_own(name: str, tmp_path: Path) -> None:
    """The trained module has the predictions of the run, and survives being saved."""
    result = propreg.fit(GRAPH, small(name), strength(name), **FIT)
    assert result.finished
    data = to_data(GRAPH)
    logits = result.model(data.x, data.edge_index)
    predicted = logits.argmax(-1).numpy()
    (run,) = (r for r in result.runs if r.replica.strength == result.mu)
    (split,) = result.splits.values()
    assert np.mean(predicted[split.test] == GRAPH.y[split.test]) == pytest.approx(run.test)
    assert (predicted == result.predicted[result.mu][0, 0]).all()
    result.save(tmp_path / "model.safetensors")
    loaded = propreg.load_model(tmp_path / "model.safetensors")
    assert torch.equal(loaded(data.x, data.edge_index), logits)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_enough(name: str) -> None:
    """With the entry's own training, but for the number of epochs."""
    entry = MODELS[name]
    result = propreg.fit(GRAPH, name, strength(name), **{**FIT, "max_epochs": 2})
    assert result.architecture == entry.default
    known = entry.trained_with()
    assert (result.runs[0].replica.lr, result.runs[0].replica.patience) == (known["lr"], known["patience"])
    assert result.runs[0].reports[0].rule == known["rule"]


@pytest.mark.parametrize("name", [name for name in NAMES if MODELS[name].recipes])
def test_recipes_are_settings_that_the_engine_takes(name: str) -> None:
    entry = MODELS[name]
    assert entry.source is not None
    for recipe in entry.recipes.values():
        model = entry.kind(name, **{**entry.defaults, **recipe.settings})
        known = {"dropout": entry.dropout, **entry.trained_with(**recipe.training)}
        replica = Replica(split="a", **{key: known[key] for key in ("lr", "weight_decay", "dropout", "patience")})
        protocol = Protocol(known["rule"], 1, known["weight_decay_scope"])
        model = replace(model, hidden=8, layers=min(model.layers, 4))
        ((_, result),) = train_all(problem(), model, Method(), [replica], protocol)
        assert result.epoch == result.epochs >= 1


def test_what_is_not_trained_has_no_strength_to_tune() -> None:
    """Alone it has the plain one, and beside others it takes part in their leaderboard."""
    assert propreg.fit(GRAPH, "label-propagation", **FIT).mus == (0.0,)
    board = propreg.fit(GRAPH, models=["gcn", "label-propagation"], mu=[0.2], **FIT).leaderboard
    assert board is not None
    assert {name: result.mus for name, result in board.results.items()} == {
        "gcn": (0.0, 0.2),
        "label-propagation": (0.0,),
    }


def test_no_regularizer_goes_on_top_of_what_is_not_trained() -> None:
    with pytest.raises(ValueError, match=r"strength does not apply to label-propagation, which is not trained, got"):
        propreg.fit(GRAPH, "label-propagation", 0.2, **FIT)
