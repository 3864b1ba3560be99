"""Two epochs of every model and training method with kernels and without, in float32."""

from dataclasses import replace

import numpy as np
import pytest

from engine.kernels.check_engine import DENSE, EPOCHS, SPARSE, tiny
from methods.small import TRAINED, small
from propreg.engine import Method, Model, Protocol, Replica, kernels
from propreg.engine.models.tuned_gcn import TunedGcnModel
from propreg.engine.spec import Result
from propreg.engine.training.train import train
from propreg.methods.grand import GrandModel

pytestmark = pytest.mark.slow
OTHERS: dict[str, Model] = {
    "grand with batch norm": GrandModel(hidden=8, steps=2, augmentations=2, batch_norm=True),
    "grand without input dropout": GrandModel(hidden=16, steps=2, augmentations=2, input_dropout=0.0),
    "tuned-gcn with all": TunedGcnModel(hidden=8, layers=2, residual=True, norm="layer"),
}
MODELS = {name: small(name) for name in TRAINED if name not in ("gcn", "gat", "mlp")} | OTHERS
FEWER_STEPS = {"deep-appnp": 3, "grand": 2, "s2gc": 3, "dagnn": 3, "correct-smooth": 3}


def results(name: str, share: float) -> list[Result]:
    model = MODELS[name]
    model = replace(model, steps=FEWER_STEPS[name]) if name in FEWER_STEPS else model
    own = tuple((each, 0.3) for each in model.architecture.per_replica)
    runs = [
        Replica(seed=0, split="a", strength=0.5, weight_decay=0.0),
        Replica(seed=1, split="a", strength=0.2, dropout=0.3, weight_decay=0.0, own=own),
        Replica(seed=0, split="a", strength=0.1, weight_decay=0.0),
    ]
    protocol = Protocol("last", max_epochs=EPOCHS)
    done = train(tiny(share), model, Method("preg"), runs, protocol, keep_history=True, keep_weights=True)
    return [result for _, result in sorted(done, key=lambda pair: pair[0])]


@pytest.mark.parametrize(("name", "share"), [(name, SPARSE) for name in MODELS] + [("grand with batch norm", DENSE)])
def test_two_epochs(name: str, share: float) -> None:
    ours = results(name, share)
    with kernels.switched_off():
        theirs = results(name, share)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.history["loss"], other.history["loss"], rtol=1e-4)
        for key, weight in other.weights.items():
            np.testing.assert_allclose(mine.weights[key], weight, rtol=1e-2, atol=1e-3)
