"""ROC-AUC and RMSE against scikit-learn's, on awkward inputs."""

import numpy as np
import pytest
import torch

from propreg.molecules.scores import accuracy, mean_over_tasks, rmse_by_task, roc_auc_by_task

metrics = pytest.importorskip("sklearn.metrics")


def awkward() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores with many ties, missing labels, one task with a single class, one without labels."""
    random = np.random.default_rng(0)
    scores = torch.from_numpy(random.integers(0, 7, (3, 60, 4)) / 7)
    y = torch.from_numpy(random.integers(0, 2, (60, 4)))
    labeled = torch.from_numpy(random.random((60, 4)) < 0.7)
    y[:, 2] = 1
    labeled[:, 3] = False
    return scores, y * labeled, labeled


def test_roc_auc_is_scikit_learns_averaged_over_tasks_with_both_classes() -> None:
    scores, y, labeled = awkward()
    for replica, found in zip(scores, mean_over_tasks(*roc_auc_by_task(scores, y, labeled)), strict=True):
        each = [metrics.roc_auc_score(y[known, t], replica[known, t]) for t in (0, 1) for known in [labeled[:, t]]]
        assert found.item() == pytest.approx(np.mean(each), abs=1e-12)


def test_without_a_task_of_two_classes_there_is_no_score() -> None:
    scores, y, labeled = awkward()
    assert mean_over_tasks(*roc_auc_by_task(scores[..., 2:], y[:, 2:], labeled[:, 2:])).isnan().all()


def test_outputs_that_are_nan_have_no_score() -> None:
    scores, y, labeled = awkward()
    scores[1, 3, 0] = torch.nan
    labeled[3, 0] = True
    assert mean_over_tasks(*roc_auc_by_task(scores, y, labeled)).isnan().tolist() == [False, True, False]


def test_rmse_is_scikit_learns() -> None:
    scores, _, labeled = awkward()
    y = torch.linspace(-2, 3, 240).view(60, 4)
    labeled[:, 3] = True
    for replica, found in zip(scores, mean_over_tasks(*rmse_by_task(scores, y, labeled)), strict=True):
        each = [
            metrics.mean_squared_error(y[known, t], replica[known, t]) ** 0.5
            for t in range(4)
            for known in [labeled[:, t]]
        ]
        assert found.item() == pytest.approx(np.mean(each), abs=1e-9)


def test_a_task_without_labels_has_no_part_in_the_mean() -> None:
    scores, _, labeled = awkward()  # the last task has none
    y = torch.linspace(-2, 3, 240).view(60, 4)
    by_task, counted = rmse_by_task(scores, y, labeled)
    assert counted.tolist() == [True, True, True, False]
    assert by_task.isnan().tolist() == [[False, False, False, True]] * 3
    first = rmse_by_task(scores[..., :3], y[:, :3], labeled[:, :3])
    torch.testing.assert_close(mean_over_tasks(by_task, counted), mean_over_tasks(*first))
    assert mean_over_tasks(*rmse_by_task(scores, y, labeled & False)).isnan().all()


def test_each_task_has_its_own_score() -> None:
    scores, y, labeled = awkward()
    by_task, counted = roc_auc_by_task(scores, y, labeled)
    assert counted.tolist() == [True, True, False, False]
    for task in (0, 1):
        known = labeled[:, task]
        expected = metrics.roc_auc_score(y[known, task], scores[1, known, task])
        assert by_task[1, task].item() == pytest.approx(expected, abs=1e-12)


def test_accuracy_is_scikit_learns() -> None:
    scores, _, labeled = awkward()
    y = torch.arange(60).view(60, 1) % 4
    labeled[0, 0] = False
    scores = scores + torch.linspace(0, 0.01, 4)  # no ties
    scores[2, 0, 0] = torch.nan
    found = accuracy(scores, y, labeled[:, :1])
    known = labeled[:, 0]
    for replica in (0, 1):
        expected = metrics.accuracy_score(y[known, 0], scores[replica, known].argmax(1))
        assert found[replica].item() == pytest.approx(expected)
    assert found[2].isnan()
