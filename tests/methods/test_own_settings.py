"""Settings of the model that replicas of one program have of their own: each run is the one of that model alone."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.graphs import problem
from methods.small import small
from propreg.engine import Method, Options, Protocol, Replica, Result, train_all
from propreg.engine.models import MODELS
from propreg.methods.grand import GrandModel

NAMES = [name for name, entry in MODELS.items() if entry.per_replica]
VALUES = (0.3, 0.7, 0.15)
EPOCHS = Protocol("last", max_epochs=50)


def trained(name: str, replicas: list[Replica], **settings: Any) -> list[Result]:
    options = Options(keep_weights=True, batch=len(replicas), workers=1)
    model = replace(small(name), **settings)
    return [result for _, result in sorted(train_all(problem(), model, Method("preg"), replicas, EPOCHS, options))]


def runs(name: str) -> list[Replica]:
    """Three with their own settings, and one with the model's."""
    per_replica = MODELS[name].per_replica
    own = [tuple((each, VALUES[(i + j) % 3]) for j, each in enumerate(per_replica)) for i in range(3)]
    return [Replica(seed=i // 2, split="ab"[i % 2], strength=0.2, own=mine) for i, mine in enumerate([*own, ()])]


@pytest.mark.parametrize("name", NAMES)
def test_a_replica_s_own_setting_is_that_of_the_model_alone(name: str) -> None:
    """In float64, over 50 epochs, to 1e-8."""
    together = trained(name, runs(name))
    for replica, mine in zip(runs(name), together, strict=True):
        (alone,) = trained(name, [replace(replica, own=())], **dict(replica.own))
        assert (mine.val, mine.test, mine.replica) == (alone.val, alone.test, replica)
        for key, weight in alone.weights.items():
            torch.testing.assert_close(mine.weights[key], weight, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("name", "setting"), [(name, each) for name in NAMES for each in MODELS[name].per_replica])
def test_each_setting_changes_the_training(name: str, setting: str) -> None:
    replica = Replica(split="a")
    one, other = trained(name, [replace(replica, own=((setting, value),)) for value in (0.2, 0.6)])
    assert any(not torch.equal(one.weights[key], other.weights[key]) for key in one.weights)


def test_models_that_one_program_trains_are_equal_as_programs() -> None:
    grand = GrandModel()
    other = replace(grand, consistency=0.4, temperature=0.2)
    assert other.program == grand.program
    assert other.beside(grand) == (("consistency", 0.4), ("temperature", 0.2))
    assert grand.beside(grand) == ()
    assert replace(grand, consistency=0.0).program != grand.program
    assert replace(grand, hidden=7).program != grand.program
    assert MODELS["gcn"].default.program == MODELS["gcn"].default


@pytest.mark.parametrize(
    ("name", "own", "words"),
    [
        ("gcn", ("hidden", 3.0), "hidden cannot be a replica's own setting for gcn, got 3.0: give it to the model."),
        ("grand", ("drop_node", 0.1), "use one of consistency, temperature"),
        ("grand", ("temperature", 0.0), "temperature must be above 0"),
        ("gcnii", ("conv_decay", float("nan")), "conv_decay must be a finite number"),
        ("appnp", ("input_dropout", 1.5), "input_dropout must lie between 0 and 1"),
    ],
)
def test_bad_settings_are_refused(name: str, own: tuple[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        trained(name, [Replica(split="a", own=(own,))])


def test_a_rate_needs_one_of_the_model() -> None:
    with pytest.raises(ValueError, match="input_dropout is 0 for the model"):
        trained("appnp", [Replica(split="a", own=(("input_dropout", 0.5),))], input_dropout=0.0)
