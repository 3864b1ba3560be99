"""``fit``: what is trained, what is chosen, and what comes back."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from communities import communities
from propreg.data.errors import DataError
from propreg.data.own.load import read_graph
from propreg.data.own.pyg import to_data
from propreg.data.splits import random_split
from propreg.engine import Method, Model, Protocol, Replica, train_all
from propreg.engine.regularizers import tunable
from propreg.engine.tasks.node import Problem
from propreg.fitting.fit import fit
from propreg.fitting.verdict import judge, points

GRAPH, METHODS = communities(), tunable()
QUICK: dict[str, Any] = {
    "splits": 2,
    "seeds": 2,
    "train_per_class": 5,
    "val_per_class": 10,
    "max_epochs": 15,
    "progress": False,
}


def quick(model: Any = "gcn", mu: Any = (0.1, 0.5), **options: Any) -> Any:
    return fit(GRAPH, model, mu, **{**QUICK, **options})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_every_method_trains_what_the_engine_trains(method: str, preset: Any) -> None:
    """A run of fit is the run that the engine trains with those settings."""
    result = quick(mu=[0.3], method=method, preset=preset, scale="none")
    settings = {
        ("preg", "paper"): Method("preg"),
        ("preg", "reference"): Method("preg", norm="sym", add_self_loops=True, second_pass=True),
        ("laplacian", "paper"): Method("laplacian"),
        ("laplacian", "reference"): Method("laplacian", variant="official"),
        ("confidence_penalty", "paper"): Method("confidence_penalty"),
        ("confidence_penalty", "reference"): Method("confidence_penalty", variant="official"),
    }.get((method, preset), Method("label_smoothing"))
    problem = Problem(GRAPH, result.splits, torch.device("cpu"))
    replica = Replica(1, "random-1", 0.3, patience=100)
    ((_, alone),) = train_all(problem, Model(), settings, [replica], Protocol(max_epochs=15))
    assert result.test[1, 1, 1] == pytest.approx(alone.test, abs=1e-12)
    assert result.val[1, 1, 1] == pytest.approx(alone.val, abs=1e-12)
    run = next(r for r in result.runs if r.replica == replica)
    assert run.epochs == alone.epochs


def test_plain_does_not_depend_on_the_method() -> None:
    plain = [quick(method=method, mu=[0.2]).test[0] for method in METHODS]
    for other in plain[1:]:
        np.testing.assert_allclose(other, plain[0], atol=1e-12)


def test_auto_tries_the_grid_of_the_method() -> None:
    for method, known in METHODS.items():
        result = quick(mu="auto", method=method, splits=1, seeds=1, max_epochs=2)
        assert result.mus == (0.0, *known.grid)
        assert result.method == method


def test_the_chosen_strength_has_the_best_mean_on_validation() -> None:
    result = quick(mu=(0.1, 0.5, 1.0))
    means = result.val.mean(axis=(1, 2))
    assert result.mu == result.mus[int(np.argmax(means))]
    assert result.plain.mean == pytest.approx(result.test[0].mean())
    assert result.chosen.runs == 4
    apart = result.test[result.mus.index(result.mu)] - result.test[0]
    assert result.difference.mean == pytest.approx(apart.mean())


def test_arrays_are_strengths_splits_seeds() -> None:
    result = quick()
    assert result.val.shape == result.test.shape == (3, 2, 2)
    names = list(result.splits)
    for run in result.runs:
        r = run.replica
        place = result.mus.index(r.strength), names.index(r.split), r.seed
        assert (result.val[place], result.test[place]) == (run.val, run.test)
    assert [run.replica.strength for run in result.runs] == sorted(4 * [0.0, 0.1, 0.5])


@pytest.mark.parametrize("model", ["gcn", "gat", "mlp", "appnp"])
def test_predictions_are_those_of_the_trained_runs(model: str) -> None:
    result = quick(model)
    assert set(result.predicted) == {0.0, result.mu}
    for mu, predicted in result.predicted.items():
        for s, split in enumerate(result.splits.values()):
            right = (predicted[s] == GRAPH.y)[:, split.test].mean(axis=1)
            np.testing.assert_allclose(right, result.test[result.mus.index(mu), s], atol=1e-12)
    best = max((r for r in result.runs if r.replica.strength == result.mu), key=lambda r: r.val)
    data = to_data(GRAPH)
    mine = result.model(data.x, data.edge_index).argmax(-1).numpy()
    place = list(result.splits).index(best.replica.split), best.replica.seed
    assert (mine == result.predicted[result.mu][place]).all()


@pytest.mark.parametrize("model", ["gcn", "gat", "mlp", "appnp"])
def test_the_model_of_a_weighted_graph_takes_the_weights(model: str) -> None:
    weight = np.linspace(0.1, 5, GRAPH.edge_index.shape[1], dtype=np.float32)
    graph = replace(GRAPH, edge_weight=weight)
    unused = model in ("gat", "mlp")
    with pytest.warns(UserWarning, match=f"but model='{model}' does not: ") if unused else contextlib.nullcontext():
        result = fit(graph, model, 0.2, **{**QUICK, "splits": 1, "seeds": 1})
    data = to_data(graph)
    mine = result.model(data.x, data.edge_index, data.edge_weight).argmax(-1).numpy()
    assert (mine == result.predicted[result.mu][0, 0]).all()


def test_splits_can_be_given() -> None:
    given = {"mine": random_split(GRAPH.y, 4, 6, seed=9), "other": random_split(GRAPH.y, 5, 5, seed=3)}
    by_name = quick(splits=given)
    assert list(by_name.splits) == ["mine", "other"]
    assert {r.replica.split for r in by_name.runs} == {"mine", "other"}
    assert list(quick(splits=list(given.values())).splits) == ["0", "1"]
    own = replace(GRAPH, split=given["mine"])
    assert list(fit(own, mu=0.1, max_epochs=2, progress=False).splits) == ["own"]
    assert fit(own, mu=0.1, max_epochs=2, progress=False).test.shape == (2, 1, 10)


class Own(nn.Module):
    """A model that vmap takes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x).index_add(0, edge_index[1], self.layer(x)[edge_index[0]])
        return out


class Normalized(Own):
    """One with running statistics, which is trained run by run."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return super().forward(self.norm(x), edge_index)


@pytest.mark.parametrize("factory", [Own, Normalized])
def test_a_model_of_ones_own(factory: Any) -> None:
    result = quick(factory, mu=[0.2])
    data = to_data(GRAPH)
    assert isinstance(result.model, factory)
    assert result.architecture is None
    predicted = result.model(data.x, data.edge_index).argmax(-1).numpy()
    assert any((predicted == p).all() for p in result.predicted[result.mu].reshape(-1, GRAPH.num_nodes))
    assert result.test.mean() > 0.5


def _interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    def some(*arguments: Any) -> Iterator[Any]:
        for number, item in enumerate(train_all(*arguments)):
            if number == after:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr("propreg.fitting.fit.train_all", some)


def test_an_interruption_returns_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = quick(splits=3, seeds=1)
    _interrupted(monkeypatch, 7)  # of nine runs
    part = quick(splits=3, seeds=1)
    assert not part.finished
    assert len(part.runs) == 7
    there = ~np.isnan(part.test)
    assert there.sum() == 7
    np.testing.assert_allclose(part.test[there], whole.test[there], atol=1e-12)
    shared = there.all(axis=0)[:, 0]
    means = part.val[:, shared].mean(axis=(1, 2))
    assert part.mu == part.mus[int(np.argmax(means))]
    assert part.difference.mean <= 1


@pytest.mark.parametrize("after", [1, 2])
def test_an_interruption_after_the_first_runs_returns_them(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    _interrupted(monkeypatch, after)  # of three strengths
    part = quick(splits=1, seeds=1)
    assert (part.finished, len(part.runs)) == (False, after)
    assert not np.isnan(part.at(part.mu).mean)
    assert part.summary().startswith(f"Interrupted: {after} of 3 trainings are finished.\nplain ")


def test_the_summary_of_an_interrupted_fit_is_of_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nterrupted" not in quick().summary()
    _interrupted(monkeypatch, 4)  # of twelve runs: three strengths of the first seed, and the plain model of the second
    part = replace(quick(scale="none"), mu=0.0)  # whatever they say
    first, *_, verdict, _, why = part.summary().splitlines()
    assert first == "Interrupted: 4 of 12 trainings are finished."
    assert verdict.startswith(
        "P-reg was not chosen on this graph so far: over the finished trainings, no strength did better"
    )
    assert why.endswith("One training of each kind shows little. Let it train to the end for more.")
    assert "Ask for more" not in part.summary()
    chosen = replace(part, mu=0.5)
    assert "Inconclusive on this graph so far: P-reg gives " in chosen.summary()


def test_a_seed_that_fails_at_every_strength_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(*arguments: Any) -> Iterator[Any]:
        for number, result in train_all(*arguments):
            yield number, replace(result, failed_at=3) if result.replica.seed == 1 else result

    monkeypatch.setattr("propreg.fitting.fit.train_all", some)
    result = quick(splits=2, seeds=2)
    assert np.isnan(result.val[:, :, 1]).all()
    assert not np.isnan(result.val[:, :, 0]).any()
    assert result.mu == result.mus[int(np.argmax(result.val[:, :, 0].mean(axis=1)))]
    assert result.summary().endswith(
        "6 of 12 runs (seed 1) failed: the loss became NaN or infinite. Lower lr if it happens often."
    )


def test_an_interruption_before_anything_is_finished_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        quick()


@pytest.mark.filterwarnings("ignore:features are as large as")
def test_a_strength_that_diverges_is_not_chosen() -> None:
    loud = replace(GRAPH, x=100 * np.asarray(GRAPH.x))
    result = fit(loud, "gcn", 3e38, method="laplacian", scale="none", **QUICK)
    assert np.isnan(result.val[1]).any()
    assert result.mu == 0.0
    assert result.finished


def test_a_plain_model_that_always_fails_leaves_nothing_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(*arguments: Any) -> Iterator[Any]:
        for number, run in train_all(*arguments):
            yield number, replace(run, failed_at=3) if run.replica.strength == 0 else run

    monkeypatch.setattr("propreg.fitting.fit.train_all", some)
    result = quick(mu=0.2)
    assert result.mu == 0.2
    assert result.plain.runs == 0
    assert np.isnan([result.plain.mean, result.plain.low, result.difference.mean, result.difference.p_value]).all()
    assert result.chosen.runs == 4
    assert not result.helps
    assert result.summary().startswith("Inconclusive: there is no pair of finished runs to compare")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"model": "gnc"}, ValueError, "Did you mean 'gcn'"),
        ({"model": Own()}, TypeError, r"pass a function, like lambda: MyGNN\(...\)"),
        ({"method": "prag"}, ValueError, "Did you mean 'preg'"),
        ({"preset": "code"}, ValueError, "preset must be one of 'paper', 'reference'"),
        ({"mu": "automatic"}, ValueError, "mu must be one of 'auto', a number or a list"),
        ({"mu": []}, ValueError, "mu must hold finite numbers"),
        ({"mu": [float("nan")]}, ValueError, "mu must hold finite numbers"),
        ({"mu": [-0.1]}, ValueError, "at least 0"),
        ({"mu": object()}, TypeError, "a number or a list of numbers"),
        ({"mu": 1.5, "method": "label_smoothing"}, ValueError, "between 0 and 1 for label_smoothing"),
        ({"seeds": 0}, ValueError, "seeds must be a whole number of at least 1"),
        ({"splits": 0}, ValueError, "splits must be at least 1"),
        ({"splits": []}, ValueError, "splits is empty"),
        ({"splits": [random_split(np.arange(60) % 3, 5, 5)]}, DataError, r"must be bool \[120\], .* got bool \[60\]"),
        ({"splits": [1]}, TypeError, "must be a propreg Split"),
        ({"splits": 2.5}, TypeError, "splits must be a number or a list of splits"),
        ({"device": "abacus"}, ValueError, "device must be auto, cpu, cuda or"),
        ({"train_per_class": 60}, DataError, "Ask for fewer"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        quick(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="torch sees no CUDA device: use 'cpu', or run propreg doctor --devices"):
        quick(device="cuda")


def test_the_summary_names_the_method() -> None:
    text = quick(method="label_smoothing", mu=0.1).summary()
    assert text.startswith("plain")
    assert "label smoothing 0.1" in text


@pytest.mark.parametrize("chosen", [0.0, 0.5])
def test_the_summary_compares_with_the_best_strength_whatever_was_chosen(chosen: float) -> None:
    result = replace(quick(mu=0.5), mu=chosen)
    apart = result.against_plain(0.5)
    plain, other, difference, verdict, *why = result.summary().splitlines()
    assert plain.startswith(f"plain        {100 * result.plain.mean:.2f} ± ")
    assert other.startswith(f"P-reg 0.5    {100 * result.at(0.5).mean:.2f} ± ")
    assert difference.startswith(
        f"difference   {points(apart.mean)} points [{points(apart.low)}, {points(apart.high)}], p"
    )
    assert verdict == judge(result).sentence
    assert why[0].startswith("Possible reason: mu was picked on 30 validation nodes per split, fewer than 100")
    assert why[1].endswith(
        "2 splits are few: a difference is significant from 12.7 standard errors on, with 5 of them from 2.8 on. "
        "Use more with splits=…."
    )


def test_it_helps_only_where_that_is_sure() -> None:
    """Validation chose it, but it wins in one split of five: that is no claim."""
    result = quick(mu=0.5, splits=5, seeds=1, max_epochs=2)
    plain = np.full((5, 1), 0.7)
    sure, unsure = plain + 0.01 * np.arange(1, 6)[:, None], plain + 0.003 * np.array([[1.0], [0], [0], [0], [0]])
    helped = [
        replace(result, mu=mu, test=np.stack([plain, test])).helps for mu in (0.0, 0.5) for test in (sure, unsure)
    ]
    assert helped == [False, False, True, False]


def test_one_run_has_no_interval() -> None:
    text = quick(mu=0.5, splits=1, seeds=1).summary()
    assert text.count("(1 run, too few for an interval)") == 2
    assert "[" not in text


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="all labeled nodes are of one class"):
        fit(replace(GRAPH, y=np.zeros(120, np.int64)), **QUICK)


def test_results_can_be_compared_and_kept_in_a_set() -> None:
    """By which they are: arrays have no one answer."""
    first, second = (quick(mu=0.5, splits=1, seeds=1, max_epochs=2) for _ in range(2))
    assert first == first  # noqa: PLR0124
    assert first != second
    assert len({first, second}) == 2


def test_masks_of_the_data_have_no_part_in_a_run_on_other_splits() -> None:
    """Nor in its random numbers: a run is named by edges, features and labels, and by its split's name."""
    mine, other = random_split(GRAPH.y, 4, 6, seed=9), random_split(GRAPH.y, 5, 5, seed=3)
    graphs = [replace(GRAPH, split=split) for split in (None, mine, other)]
    alone, *others = (
        fit(to_data(graph), mu=0.2, splits=[mine], seeds=1, max_epochs=3, progress=False) for graph in graphs
    )
    read = read_graph(to_data(graphs[1]))
    published = replace(read, digests={**read.digests, "split_0": "of a benchmark"})
    for result in (*others, fit(published, mu=0.2, splits=[mine], seeds=1, max_epochs=3, progress=False)):
        for run, expected in zip(result.runs, alone.runs, strict=True):
            assert np.array_equal(run.history["loss"], expected.history["loss"])
