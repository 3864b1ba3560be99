"""No label of a test node, and none of a validation node but through decisions, reaches the weights of any method."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.graphs import CLASSES, sample, splits
from methods.small import NAMES, TRAINED, for_model, small
from propreg.engine import Method, Options, Problem, Protocol, Replica, train_all
from propreg.engine.models import MODELS
from propreg.engine.training import epoch
from propreg.engine.training.phases import Phase, one_phase
from propreg.engine.training.stopping import Watch
from propreg.engine.training.train import train

RUNS = [
    Replica(seed=0, split="a", strength=0.3, lr=0.02, patience=6),
    Replica(seed=1, split="b", strength=0.1, dropout=0.2, patience=6),
]
EPOCHS = 15
SERIAL = [name for name in NAMES if MODELS[name].trainer is not None]


def with_nonsense(*parts: str) -> Problem:
    """The graph whose nodes have another class if they are in such a part of any split, and for training of none."""
    graph = sample("plain")
    known = _apart().values()
    changed = np.any([getattr(split, part) for split in known for part in parts], axis=0) if parts else False
    changed = changed & ~np.any([split.train for split in known], axis=0)
    y: NDArray[np.int64] = np.where(changed, (graph.y + 1 + np.arange(graph.num_nodes) % 3) % CLASSES, graph.y)
    # Random streams follow the digest, which would follow the labels.
    same = replace(graph, y=y, digests={"edges": "the same"})
    return Problem(same, _apart(), torch.device("cpu"), torch.float64)


def _apart() -> dict[str, Any]:
    """The splits without nodes that one of them tests and another one trains or decides on."""
    known = splits("plain")
    trained, decided = (np.any([getattr(s, part) for s in known.values()], axis=0) for part in ("train", "val"))
    return {name: replace(s, val=s.val & ~trained, test=s.test & ~trained & ~decided) for name, s in known.items()}


def weights_by_epoch(name: str, found: Problem, rule: Any) -> list[dict[str, Tensor]]:
    """The parameters of every state of every phase, after every epoch."""
    model, method = small(name), Method("preg")
    protocol = Protocol(rule, max_epochs=EPOCHS)
    phases: Callable[..., Iterator[Phase]] = MODELS[name].phases or one_phase
    states: list[Any] = []

    def procedure(found: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
        for phase in partial(phases, model=model, method=method, protocol=protocol)(found, replicas):
            states.append(phase.state)
            yield phase

    seen: list[dict[str, Tensor]] = []

    def look() -> bool:
        now = {f"{key} {i}": t.detach().clone() for i, s in enumerate(states) for key, t in s.tensors.items()}
        if now:
            seen.append(now)
        return False

    if MODELS[name].trainer is None:
        list(train(found, model, method, RUNS, protocol, procedure=procedure, stop=look))
        return seen
    begun = Phase.__post_init__

    def remember(phase: Phase) -> None:
        begun(phase)
        states.append(phase.state)

    with pytest.MonkeyPatch.context() as patch:  # a trainer makes its phases itself
        patch.setattr(Phase, "__post_init__", remember)
        options = Options(stop=look, batch=len(RUNS), workers=1)
        list(train_all(found, model, method, RUNS, protocol, options))
    return seen


def check_equal(these: list[dict[str, Tensor]], those: list[dict[str, Tensor]]) -> None:
    assert len(these) == len(those) > 1
    for now, then in zip(these, those, strict=True):
        assert now.keys() == then.keys()
        assert all(torch.equal(now[key], then[key]) for key in now)
    assert any(not torch.equal(these[0][key], these[-1][key]) for key in these[0] if key in these[-1])


Take = Callable[..., Tensor]


def recording(taken: list[tuple[Tensor, Tensor]], original: Take) -> Take:
    """Decides as the rule does, and remembers it: which replicas report an epoch, and which stop."""

    def take(watch: Watch, *numbers: Any) -> Tensor:
        reported = original(watch, *numbers)
        taken.append((reported.clone(), watch.stopped.clone()))
        return reported

    return take


def replaying(taken: list[tuple[Tensor, Tensor]], original: Take) -> Take:
    """Decides as it was decided, whatever the numbers."""

    def take(watch: Watch, *numbers: Any) -> Tensor:
        before = watch.epoch.clone()
        original(watch, *numbers)
        reported, watch.stopped = taken.pop(0)
        watch.epoch.copy_(torch.where(reported, numbers[1], before))
        return reported

    return take


def test_the_nonsense_is_nonsense() -> None:
    plain, val, test = (with_nonsense(*parts).graph.y for parts in ((), ("val",), ("test",)))
    parts = _apart()
    for split in parts.values():
        assert (plain[split.train] == val[split.train]).all()
        assert (plain[split.train] == test[split.train]).all()
        assert (plain[split.test] != test[split.test]).all()
        assert (plain[split.val] != val[split.val]).all()
        assert int(split.val.sum()) > 5


@pytest.mark.parametrize("name", TRAINED)
def test_labels_of_test_nodes_change_no_weight(name: str) -> None:
    """At every epoch, with a rule that stops the runs."""
    check_equal(*(weights_by_epoch(name, with_nonsense(*parts), "strict") for parts in ((), ("test",))))


@pytest.mark.parametrize("name", TRAINED)
def test_labels_of_validation_nodes_only_decide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the decisions of a training recorded and replayed, nonsense labels change no weight."""
    taken: list[tuple[Tensor, Tensor]] = []
    original = Watch.take
    monkeypatch.setattr(Watch, "take", recording(taken, original))
    expected = weights_by_epoch(name, with_nonsense(), "strict")
    assert taken
    monkeypatch.setattr(Watch, "take", replaying(taken, original))
    check_equal(weights_by_epoch(name, with_nonsense("val", "test"), "strict"), expected)
    assert not taken, "every decision was replayed"


def test_a_leak_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check sees a loss that reads the label of a single test node."""
    original = epoch.step

    def leaking(objective: Any, state: Any, logits: Any) -> Tensor:
        node = int(state.test[0][0, 0])
        state.parameters["b1"].data += 1e-12 * float(labels[0][node])
        return original(objective, state, logits)

    labels: list[Tensor] = []
    monkeypatch.setattr(epoch, "step", leaking)
    seen = []
    for parts in ((), ("test",)):
        found = with_nonsense(*parts)
        labels[:] = [found.y]
        seen.append(weights_by_epoch("gcn", found, "strict"))
    with pytest.raises(AssertionError):
        check_equal(*seen)


@pytest.mark.parametrize("name", SERIAL)
def test_a_serial_method_reports_the_same_weights(name: str) -> None:
    """Labels of test nodes change neither the reported epoch nor its weights."""
    results = [
        dict(
            train_all(
                with_nonsense(*parts), small(name), Method("preg"), for_model(name, RUNS), Protocol("strict", EPOCHS),
                Options(keep_weights=True, workers=1),
            )
        )
        for parts in ((), ("test",))
    ]  # fmt: skip
    for i in range(len(RUNS)):
        assert (results[0][i].epoch, results[0][i].val) == (results[1][i].epoch, results[1][i].val)
        for key, weight in results[0][i].weights.items():
            assert torch.equal(results[1][i].weights[key], weight), key
