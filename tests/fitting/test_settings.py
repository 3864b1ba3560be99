"""What ``fit`` is asked for: numbers of NumPy's, devices, splits of the caller's, each refusal in one sentence."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from communities import communities
from propreg.data.errors import DataError
from propreg.data.graph import Split
from propreg.data.own.pyg import to_data
from propreg.data.splits import random_split
from propreg.devices import find_device
from propreg.engine import Model
from propreg.engine.models import MODELS
from propreg.fitting.checkpoint import load_model
from propreg.fitting.fit import fit
from propreg.running.plan import Source, make_plan

GRAPH = communities()
SPLIT = random_split(GRAPH.y, 5, 10)
QUICK: dict[str, Any] = {"mu": [0.2], "splits": [SPLIT], "seeds": 1, "max_epochs": 3, "progress": False}


def quick(**options: Any) -> Any:
    return fit(GRAPH, **{**QUICK, **options})


def test_whole_numbers_of_numpy(tmp_path: Any) -> None:
    given = {
        "model": Model(hidden=np.int64(4), layers=np.int32(2), input_dropout=np.float32(0.25)),  # type: ignore[arg-type]
        "splits": np.int64(2),
        "seeds": np.int64(2),
        "max_epochs": np.int64(3),
        "patience": np.int16(2),
        "train_per_class": np.int64(5),
        "val_per_class": np.uint8(10),
        "lr": np.float32(0.5),
        "weight_decay": np.float64(0),
        "dropout": np.float32(0.5),
    }
    result = quick(**given)
    model = Model(hidden=4, layers=2, input_dropout=0.25)
    plain = quick(
        model=model, splits=2, seeds=2, patience=2, train_per_class=5, val_per_class=10, lr=0.5, weight_decay=0
    )
    np.testing.assert_array_equal(result.test, plain.test)
    assert result.test.shape == (2, 2, 2)
    assert result.runs[0].replica == plain.runs[0].replica
    result.save(tmp_path / "model.npz")  # in JSON, which has no NumPy numbers
    assert load_model(tmp_path / "model.npz") is not None


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu"), torch.device("cpu", 0)])
def test_a_device_by_name_or_as_torch_has_it(device: Any) -> None:
    assert find_device(device) == torch.device("cpu")
    assert quick(device=device).finished


@pytest.mark.parametrize("device", ["cuda:x", "cpu:", "auto:0"])
def test_a_device_that_is_no_device(device: str) -> None:
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda or one GPU like cuda:0, got"):
        quick(device=device)


def test_a_device_beyond_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match="device is 'cuda:2', but torch sees 2: the last one is 'cuda:1'"):
        find_device("cuda:2")


def _with(part: str, *nodes: int) -> Split:
    mask = getattr(SPLIT, part).copy()
    mask[list(nodes)] = True
    return replace(SPLIT, **{part: mask})


TRAIN, VAL, TEST = (int(np.flatnonzero(getattr(SPLIT, part))[0]) for part in ("train", "val", "test"))


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"patience": -1}, ValueError, "patience must be a whole number of at least 0, got -1: to train all"),
        ({"patience": 1.5}, ValueError, "patience must be a whole number of at least 0, got 1.5"),
        ({"patience": float("inf")}, ValueError, "got inf: to train all epochs, pass max_epochs"),
        ({"max_epochs": 0}, ValueError, "max_epochs must be a whole number of at least 1"),
        ({"max_epochs": True}, ValueError, "max_epochs must be a whole number of at least 1"),
        ({"lr": "0.1"}, ValueError, "lr must be a finite number of at least 0, got '0.1'"),
        ({"lr": float("inf")}, ValueError, "lr must be a finite number"),
        ({"weight_decay": True}, ValueError, "weight_decay must be a finite number"),
        ({"dropout": 1.5}, ValueError, "dropout must lie between 0 and 1"),
        ({"model": Model(hidden=0)}, ValueError, "hidden must be a whole number of at least 1, got 0"),
        ({"model": Model(layers=1)}, ValueError, "layers must be a whole number of at least 2"),
        ({"progress": "foo"}, ValueError, "progress must be True, False, None or 'lines', got 'foo'"),
        ({"progress": 1}, ValueError, "progress must be True, False, None or 'lines'"),
        ({"splits": SPLIT}, TypeError, r"got one Split: pass splits=\[split\]"),
        ({"splits": {0: SPLIT, "0": SPLIT}}, ValueError, "two names that read the same"),
        ({"splits": [_with("val", TRAIN)]}, DataError, f"split '0': node {TRAIN} is in two of the masks"),
        ({"splits": [_with("test", TRAIN)]}, DataError, "in two of the masks"),
        ({"splits": [_with("test", VAL)]}, DataError, "in two of the masks"),
        ({"splits": [replace(SPLIT, val=SPLIT.val.astype(int))]}, DataError, "must be bool"),
        ({"splits": 1, "val_per_class": 0}, ValueError, "val_per_class must be a whole number of at least 1"),
        ({"splits": 1, "train_per_class": 2.0}, ValueError, "train_per_class must be a whole number"),
        ({"mu": [0.1, "0.2"]}, TypeError, r"mu must be 'auto', a number or a list of numbers"),
        ({"mu": b"12"}, TypeError, "mu must be 'auto', a number or a list of numbers, got b'12'"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        quick(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("part", "node"), [("train", TRAIN), ("val", VAL), ("test", TEST)])
def test_a_node_without_a_label_is_refused_in_a_split_as_in_a_mask(part: str, node: int) -> None:
    y = GRAPH.y.copy()
    y[node] = -1
    says = rf"node {node} is in {part}(_mask)? but has no label"
    with pytest.raises(DataError, match=f"split 'mine': {says}"):
        fit(replace(GRAPH, y=y), **{**QUICK, "splits": {"mine": SPLIT}})
    data = to_data(replace(GRAPH, y=y, split=SPLIT))
    with pytest.raises(DataError, match=f"Data: {says}"):
        fit(data, **{**QUICK, "splits": 1})


def test_a_patience_of_zero_stops_at_the_first_worse_epoch() -> None:
    assert max(run.epochs for run in quick(patience=0, max_epochs=40, lr=0.5).runs) < 40


def test_names_of_splits_are_texts() -> None:
    result = quick(splits={0: SPLIT, 7: random_split(GRAPH.y, 5, 10, seed=1)})
    assert list(result.splits) == ["0", "7"]
    np.testing.assert_array_equal(result.test[:, :1], quick(splits=[SPLIT]).test)


def test_masks_of_torch_make_a_split() -> None:
    masks = (torch.from_numpy(getattr(SPLIT, part)) for part in ("train", "val", "test"))
    np.testing.assert_array_equal(quick(splits=[Split(*masks)]).test, quick().test)  # type: ignore[arg-type]


def test_classes_that_are_too_small_name_what_fit_can_be_asked_for() -> None:
    with pytest.raises(DataError, match="Ask for fewer with train_per_class and val_per_class, or pass") as caught:
        quick(splits=2)
    assert "small_classes" not in str(caught.value)


def test_features_in_double_precision_are_trained_in_single() -> None:
    data = to_data(replace(GRAPH, split=SPLIT))
    double = data.clone()
    double.x = data.x.double()
    first, second = (fit(each, **{**QUICK, "splits": [SPLIT]}) for each in (data, double))
    np.testing.assert_array_equal(first.test, second.test)
    z = second.model(double.x.float(), double.edge_index)  # as the docstring says
    assert z.dtype == torch.float32


@pytest.mark.parametrize("asked", [{"splits": 3}, {"train_per_class": 4}, {"splits": 5, "val_per_class": 9}])
def test_random_splits_are_not_asked_for_where_the_data_has_its_own(asked: dict[str, Any]) -> None:
    data = to_data(replace(GRAPH, split=SPLIT))
    named = ", ".join(f"{name}={value}" for name, value in asked.items())
    with pytest.raises(ValueError, match=f"the data has a split of its own, but {named} requests random splits: "):
        fit(data, mu=0.1, max_epochs=2, progress=False, **asked)
    assert list(fit(data, mu=0.1, seeds=1, max_epochs=2, progress=False).splits) == ["own"]


@pytest.mark.parametrize("given", [np.float32(0.1), torch.tensor([0.1, 0.7]), np.array([0.1], np.float16)])
def test_a_strength_of_fewer_bits_is_the_one_that_is_written(given: Any) -> None:
    result = quick(mu=given, splits=[SPLIT], seeds=1, max_epochs=2)
    assert result.mus[:2] == (0.0, 0.1)
    assert result.at(0.1).runs == 1


def test_a_model_may_have_a_training_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"lr": 0.2, "weight_decay": 0.1, "max_epochs": 4, "rule": "last", "weight_decay_scope": "first"}
    monkeypatch.setitem(MODELS, "mlp", replace(MODELS["mlp"], training=own))
    asked: dict[str, Any] = {"mu": [0.2], "splits": [SPLIT], "seeds": 1, "progress": False, "device": "cpu"}
    (run, _), (other, _) = (fit(GRAPH, "mlp", **each).runs for each in (asked, {**asked, "lr": 0.5, "max_epochs": 3}))
    assert (run.replica.lr, run.replica.weight_decay, run.replica.patience, run.epochs) == (0.2, 0.1, 100, 4)
    assert (other.replica.lr, other.replica.weight_decay, other.epochs) == (0.5, 0.1, 3)
    assert (run.reports[0].rule, run.epoch) == ("last", 4)
    plan = make_plan(Source("communities", GRAPH, {"0": SPLIT}), model="mlp", device="cpu")
    assert (plan.lr, plan.weight_decay, plan.patience, plan.max_epochs) == (0.2, 0.1, 100, 4)
