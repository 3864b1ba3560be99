"""``fit_graphs``: what is learned, chosen and compared, and what an interruption leaves."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from fitting.graphs.lists import listed
from molecules.made_up import molecules
from propreg.data.errors import DataError
from propreg.data.graph_list import of_molecules
from propreg.data.own.graph_list import read_graphs
from propreg.fitting.graphs.splits import named_splits
from propreg.molecules.train import Training

pytest.importorskip("torch_geometric")
SMALL: dict[str, Any] = {"hidden": 8, "layers": 2, "max_epochs": 4, "splits": 2, "seeds": 2, "mu": [0.3]}


@pytest.mark.parametrize("model", ["gin", "gcn"])
def test_classes_are_learned(model: str) -> None:
    graphs = listed(200, classes=3)
    result = propreg.fit_graphs(
        graphs, model, [0.1], splits=1, seeds=2, hidden=16, layers=2, max_epochs=30, lr=0.01, dropout=0.0
    )
    assert result.judging.what == "test accuracy"
    assert result.chosen.mean > 0.7
    truth = np.array([int(graph.y) for graph in graphs])
    assert (result.predict() == truth).mean() > 0.8
    np.testing.assert_allclose(result.predict_proba(graphs[:5]).sum(1), 1, rtol=1e-5)


def test_numbers_are_predicted_in_their_own_units() -> None:
    graphs = listed(120)
    for graph in graphs:
        graph.y = 1e4 + 100 * graph.y
    result = propreg.fit_graphs(graphs, mu=[0.1], splits=1, seeds=2, hidden=16, layers=2, max_epochs=40, lr=0.01)
    truth = np.array([float(graph.y) for graph in graphs])
    assert result.judging.what == "test RMSE"
    assert np.corrcoef(result.predict()[:, 0], truth)[0, 1] > 0.8
    assert result.chosen.mean < truth.std()
    assert "lower is better" in result.summary()


def test_questions_with_missing_answers_are_learned() -> None:
    graphs, random = listed(120, classes=2), np.random.default_rng(0)
    for graph in graphs:
        answer = float(graph.y)
        graph.y = torch.tensor([[answer, 1 - answer if random.random() < 0.5 else torch.nan]])
    result = propreg.fit_graphs(graphs, mu=[0.1], splits=1, seeds=2, hidden=16, layers=2, max_epochs=25, lr=0.01)
    assert result.judging.what == "test ROC-AUC"
    assert result.chosen.mean > 0.8
    chance = result.predict_proba()
    assert ((chance > 0.5) == result.predict()).all()
    assert np.corrcoef(*chance.T)[0, 1] < -0.5


def questions(missing: str = "") -> list[Any]:
    """Graphs with two yes/no questions; the second one's labels are missing in a part of the first split."""
    graphs, random = listed(60, classes=2), np.random.default_rng(0)
    for graph in graphs:
        graph.y = torch.tensor([[float(graph.y), float(random.random() < 0.5)]])
    if missing:
        for i in named_splits(read_graphs(graphs), 2)["random-0"][missing]:
            graphs[i].y[0, 1] = torch.nan
    return graphs


@pytest.mark.parametrize("missing", ["", "test"])
def test_the_score_of_a_run_is_the_mean_over_its_targets(missing: str) -> None:
    result = propreg.fit_graphs(questions(missing), **SMALL)
    assert result.by_task.shape == (2, 2, 2, 2)
    assert np.isnan(result.by_task[:, 0, :, 1]).all() == bool(missing)
    np.testing.assert_allclose(np.nanmean(result.by_task, -1), result.test, rtol=1e-6)
    assert result.model.tasks == ("y[0]", "y[1]")


def test_the_rmse_of_a_run_is_the_mean_over_its_targets(tmp_path: Path) -> None:
    graphs = listed(60)
    for graph in graphs:
        graph.y = torch.tensor([[float(graph.y), 100 * float(graph.x.mean())]])
    result = propreg.fit_graphs(graphs, **SMALL, resume=tmp_path)
    np.testing.assert_allclose(result.by_task.mean(-1), result.test, rtol=1e-5)
    mu, name, seed = result.best_run
    chosen, place = result.splits[name]["test"], (result.mus.index(mu), list(result.splits).index(name), seed)
    truth = np.array([graphs[i].y[0, 1] for i in chosen])
    second = np.sqrt(np.square(result.predict()[chosen, 1] - truth).mean())
    assert result.by_task[place][1] == pytest.approx(second, rel=1e-4)
    np.testing.assert_array_equal(propreg.fit_graphs(graphs, **SMALL, resume=tmp_path).by_task, result.by_task)


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_the_scores_are_those_of_the_engine_and_the_choice_is_on_validation(preset: Any) -> None:
    result = propreg.fit_graphs(listed(), **{**SMALL, "mu": [0.3, 0.9]}, preset=preset)
    assert result.val.shape == (3, 2, 2)
    means = result.val.mean((1, 2))
    assert result.mu == result.mus[int(means.argmin())]  # RMSE
    for (mu, name, seed), run in result.runs.items():
        place = result.mus.index(mu), list(result.splits).index(name), seed
        assert result.val[place] == run.val.min()
        assert result.test[place] == run.test[run.val.argmin()]
    assert len(result.runs) == result.val.size


def test_the_model_is_the_best_run_with_the_weights_of_its_reported_epoch() -> None:
    graphs = listed()
    result = propreg.fit_graphs(graphs, **SMALL)
    mu, name, seed = result.best_run
    assert mu == result.mu
    chosen = result.splits[name]["test"]
    truth = np.array([float(graphs[i].y) for i in chosen])
    rmse = float(np.sqrt(np.square(result.predict()[chosen, 0] - truth).mean()))
    assert rmse == pytest.approx(result.test[result.mus.index(mu), list(result.splits).index(name), seed], rel=1e-4)


def test_strengths_are_paired_and_0_is_the_plain_model_in_both_forms() -> None:
    paper, official = (propreg.fit_graphs(listed(), **SMALL, preset=preset) for preset in ("paper", "reference"))
    np.testing.assert_allclose(paper.test[0], official.test[0], rtol=1e-4)


def test_runs_do_not_depend_on_how_many_train_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together = propreg.fit_graphs(listed(), **SMALL)
    monkeypatch.setattr("propreg.fitting.graphs.fit.CPU_BYTES", 1)
    np.testing.assert_allclose(propreg.fit_graphs(listed(), **SMALL).test, together.test, rtol=1e-3)


def test_integer_codes_of_atoms_are_embedded_and_floats_mapped() -> None:
    coded = of_molecules(molecules(60))
    result = propreg.fit_graphs(coded, **{**SMALL, "splits": None})
    assert list(result.splits) == ["own"]
    assert result.model.encoders.nodes is None
    assert result.predict().shape == (60, 1)
    assert propreg.fit_graphs(listed(columns=(3, 0)), **SMALL).model.encoders.edges == 0


def test_an_interruption_keeps_the_splits_that_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls, epoch = propreg.fit_graphs(listed(), **SMALL), itertools.count(1), Training.epoch

    def interrupted(self: Training, number: int) -> None:
        if next(calls) == SMALL["max_epochs"] + 2:  # in the second split
            raise KeyboardInterrupt
        epoch(self, number)

    monkeypatch.setattr(Training, "epoch", interrupted)
    result = propreg.fit_graphs(listed(), **SMALL)
    assert not result.finished
    np.testing.assert_array_equal(result.test[:, 0], whole.test[:, 0])
    assert np.isnan(result.test[:, 1]).all()
    assert result.summary().startswith("Interrupted: 4 of 8 trainings are finished.")


def test_a_fit_goes_on_from_its_folder_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls, epoch = propreg.fit_graphs(listed(), **SMALL), itertools.count(1), Training.epoch
    monkeypatch.setattr("propreg.molecules.checkpoint.SECONDS", 0)

    def killed(self: Training, number: int) -> None:
        if next(calls) == SMALL["max_epochs"] + 3:
            raise SystemError("killed")
        epoch(self, number)

    monkeypatch.setattr(Training, "epoch", killed)
    with pytest.raises(SystemError):
        propreg.fit_graphs(listed(), **SMALL, resume=tmp_path)
    trained: list[int] = []

    def counted(self: Training, number: int) -> None:
        trained.append(number)
        epoch(self, number)

    monkeypatch.setattr(Training, "epoch", counted)
    again = propreg.fit_graphs(listed(), **SMALL, resume=tmp_path)
    assert len(trained) < SMALL["max_epochs"]  # the first split is finished, and the second has begun
    np.testing.assert_array_equal(again.test, whole.test)
    assert (again.predict() == whole.predict()).all()


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"model": "gat"}, ValueError, "model must be one of 'gin', 'gcn' or a MoleculeModel, got 'gat'"),
        ({"task": "clustering"}, ValueError, "task must be one of 'auto', 'classification', 'binary', 'regression'"),
        ({"batch_size": 1}, ValueError, "batch_size must be a whole number of at least 2"),
        ({"dropout": 1}, ValueError, "dropout must be below 1, got 1"),
        ({"hidden": 0}, ValueError, "hidden must be a whole number of at least 1"),
        ({"groups": [1, 2]}, ValueError, "groups must name the group of each of 40 graphs, got 2"),
        ({"task": "classification"}, DataError, "y must be whole numbers from 0"),
        ({"virtual_node": 1}, TypeError, "virtual_node must be True or False"),
    ],
)
def test_bad_settings_are_refused_before_the_training(
    settings: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        propreg.fit_graphs(listed(), **{**SMALL, **settings})


def with_targets(y: Any) -> list[Any]:
    graphs = listed()
    for graph in graphs:
        graph.y = y
    return graphs


@pytest.mark.parametrize(
    ("graphs", "sentence"),
    [
        ([], "graphs is empty: give a list with one PyG Data per graph"),
        ([*listed(), *listed(2, columns=(4, 2))], "graph 40: x has 4 columns, but that of graph 0 has 3"),
        (with_targets(torch.tensor(torch.nan)), "no graph has a label"),
        (with_targets(None), "no graph has a label"),
        (with_targets("toxic"), r"graph 0: y is text \('toxic'\)"),
    ],
)
def test_bad_graphs_are_one_sentence_and_what_is_kept_stays(tmp_path: Path, graphs: Any, sentence: str) -> None:
    whole = propreg.fit_graphs(listed(), **SMALL, resume=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DataError, match=sentence) as caught:
        propreg.fit_graphs(graphs, **SMALL, resume=tmp_path)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    np.testing.assert_array_equal(propreg.fit_graphs(listed(), **SMALL, resume=tmp_path).test, whole.test)
