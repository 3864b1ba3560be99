"""``resume``: finished runs are kept as they finish, and the same fit goes on from them with the same bits."""

import inspect
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import propreg.fitting.fit as fitting
from communities import communities
from fitting.own_modules import DATA, GRAPH, QUICK, SPLIT, Base, K, Scaled
from fitting.test_raising import Raises
from propreg.data.errors import DataError
from propreg.data.graph import Split
from propreg.engine import train_all
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult
from store_faults import RESULTS, keep

MANY: dict[str, Any] = QUICK | {"mu": [0.1, 0.5], "seeds": 3}
RUNS = 9


def same(one: FitResult, other: FitResult) -> None:
    """Equal in everything, bit for bit."""
    assert (one.mu, one.mus, one.finished) == (other.mu, other.mus, other.finished)
    np.testing.assert_array_equal(one.test, other.test)
    np.testing.assert_array_equal(one.val, other.val)
    for mine, theirs in zip(one.runs, other.runs, strict=True):
        assert mine == theirs
        assert mine.reports == theirs.reports
        for name in theirs.history:
            np.testing.assert_array_equal(mine.history[name], theirs.history[name])
        assert mine.weights.keys() == theirs.weights.keys()
        assert all(torch.equal(mine.weights[name], w) for name, w in theirs.weights.items())
    for mu in other.predicted:
        np.testing.assert_array_equal(one.predicted[mu], other.predicted[mu])


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs each fit began to train."""
    found: list[int] = []

    def counting(*arguments: Any) -> Any:
        found.append(len(arguments[3]))
        return train_all(*arguments)

    monkeypatch.setattr(fitting, "train_all", counting)
    return found


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int, model: Any, folder: Path, **more: Any) -> FitResult:
    def some(*arguments: Any) -> Any:
        for number, item in enumerate(train_all(*arguments)):
            if number == after:
                raise KeyboardInterrupt
            yield item

    with monkeypatch.context() as patched:
        patched.setattr(fitting, "train_all", some)
        return fit(DATA, model, resume=folder, **{**MANY, **more})


@pytest.mark.parametrize(
    ("model", "batch"), [("gcn", "full"), ("gat", "full"), (Base, "full"), (Scaled, "full"), ("gcn", 8), (Base, 8)]
)
def test_an_interrupted_fit_goes_on_with_the_bits_of_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[int], model: Any, batch: Any
) -> None:
    given = MANY | {"batch": batch}
    whole = fit(DATA, model, **given)
    partial = interrupted(monkeypatch, 5, model, tmp_path / "runs", batch=batch)
    assert (partial.finished, len(partial.runs)) == (False, 5)
    assert partial.kept is not None
    assert len(list(partial.kept.iterdir())) == 5
    trained.clear()
    result = fit(DATA, model, resume=tmp_path / "runs", **given)
    (again,) = trained
    assert again < RUNS, "nothing that is whole is trained again"
    same(result, whole)
    trained.clear()
    same(fit(DATA, model, resume=tmp_path / "runs", **given), whole)
    assert trained == [0]


OTHERS: dict[str, Any] = {
    "data": replace(GRAPH, x=np.asarray(GRAPH.x) + np.float32(0.001) * K[:, None]),
    "model": "mlp",
    "method": "laplacian",
    "preset": "reference",
    "scale": "rows",
    "metric": "log_loss",
    "class_weight": "balanced",
    "splits": {"own": Split(SPLIT.train, SPLIT.val, SPLIT.test & (np.arange(120) > 50))},
    "lr": 0.02,
    "weight_decay": 0.01,
    "dropout": 0.1,
    "patience": 11,
    "max_epochs": 11,
    "optimizer": "sgd",
    "batch": 16,
}
"""Another value of each argument of ``fit`` that changes a training."""
ALIKE = {
    "mu", "seeds", "models", "regularizer", "test", "train_per_class", "val_per_class", "device", "progress",
    "on_error", "refit", "time_limit", "callbacks", "watch", "resume", "inputs", "task", "select",
}  # fmt: skip
"""Those that change which trainings there are, or what is done with them; and those with a test of their own below."""


def test_every_argument_of_fit_is_known_here() -> None:
    assert {*inspect.signature(fit).parameters} == {*OTHERS, *ALIKE}


@pytest.mark.parametrize("other", OTHERS)
def test_runs_of_other_settings_are_not_used(tmp_path: Path, trained: list[int], other: str) -> None:
    common = QUICK | {"model": "gcn", "data": GRAPH, "resume": tmp_path}
    fit(**common)
    fit(**{**common, other: OTHERS[other]})
    assert trained == [4, 4]
    fit(**common)
    assert trained == [4, 4, 0], "and the first ones stay"


def test_a_changed_module_is_trained_anew(tmp_path: Path, trained: list[int]) -> None:
    class Other(Base):
        def forward(self, x: Any, edge_index: Any) -> Any:
            return super().forward(x, edge_index) * 2

    for model in (Base, Other, Base, Other):
        fit(DATA, model, resume=tmp_path, **QUICK)
    assert trained == [4, 4, 0, 0]


def test_other_inputs_of_a_module_are_trained_anew(tmp_path: Path, trained: list[int]) -> None:
    class Weighted(Base):
        def forward(self, x: Any, edge_index: Any, factor: Any = 1.0) -> Any:
            return super().forward(x * factor, edge_index)

    for factor, names in ((2.0, None), (2.0, "factor"), (3.0, "factor"), (2.0, "factor")):
        data = DATA.clone()
        data.factor = torch.full((DATA.num_nodes, 1), factor)
        inputs = None if names is None else ("x", "edge_index", names)
        fit(data, Weighted, inputs=inputs, resume=tmp_path, **QUICK)
    assert trained == [4, 4, 4, 0]


def test_another_task_and_other_targets_are_trained_anew(tmp_path: Path, trained: list[int]) -> None:
    y = torch.stack([DATA.y == 0, DATA.y > 0], 1).float()
    flipped = y.clone()
    flipped[7] = 1 - flipped[7]
    tasks: list[tuple[torch.Tensor, Any]] = [(y, "multilabel"), (flipped, "multilabel"), (y, "regression")]
    for values, task in [*tasks, tasks[0]]:
        data = DATA.clone()
        data.y = values
        fit(data, "gcn", task=task, resume=tmp_path, **QUICK)
    assert trained == [4, 4, 4, 0]


def test_a_damaged_file_is_trained_again(tmp_path: Path) -> None:
    first = fit(DATA, "gcn", resume=tmp_path, **QUICK)
    assert first.kept is not None
    files = sorted(first.kept.iterdir())
    for number, file in enumerate(files):
        content = bytearray(file.read_bytes())
        content[-1 - number * 40] ^= 1
        file.write_bytes(content)
        with pytest.warns(UserWarning, match=r"SHA-256. The run is trained again"):
            same(fit(DATA, "gcn", resume=tmp_path, **QUICK), first)
    file.write_bytes(files[0].read_bytes())
    with pytest.warns(UserWarning, match=r"holds a different run than its name claims"):
        same(fit(DATA, "gcn", resume=tmp_path, **QUICK), first)


def test_what_raised_is_tried_again(tmp_path: Path, trained: list[int]) -> None:
    class Once(Raises):
        broken = True

        def forward(self, x: Any, edge_index: Any) -> Any:
            self.raises &= Once.broken
            return super().forward(x, edge_index)

    with pytest.warns(UserWarning, match="raised an exception"):
        assert [run.failed for run in fit(DATA, Once, resume=tmp_path, **QUICK).runs] == [False, True] * 2
    Once.broken = False
    result = fit(DATA, Once, resume=tmp_path, **QUICK)
    assert trained[1] == 2
    same(result, fit(DATA, Once, **QUICK))


def test_a_full_disk_ends_the_keeping_and_not_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise DataError("x: cannot be written: No space left on device.")

    monkeypatch.setattr("propreg.fitting.kept.write_safetensors", full)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = fit(DATA, "gcn", resume=tmp_path, **QUICK)
    assert [str(each.message) for each in said if each.category is UserWarning] == [
        "Finished runs cannot be kept (x: cannot be written: No space left on device): the fit continues without "
        "keeping them."
    ]
    same(result, fit(DATA, "gcn", **QUICK))


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="file: is not a folder: name another one with resume"):
        fit(DATA, "gcn", resume=tmp_path / "file", **QUICK)


SCRIPT = """
import sys
sys.path[:0] = {path!r}
from communities import communities
from propreg.fitting.fit import fit
fit(communities(), mu=[0.5], splits=3, seeds=12, train_per_class=5, val_per_class=5, max_epochs=60, progress=False,
    resume=sys.argv[1])
"""


def test_files_keep_the_names_that_earlier_versions_gave_them(tmp_path: Path) -> None:
    assert keep(tmp_path, RESULTS[:1])
    assert [file.name for file in tmp_path.glob("runs/*/*")] == ["bf9022c8bae5d39c8050f389abfd057a.safetensors"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_fit_loses_no_finished_run(tmp_path: Path, trained: list[int]) -> None:
    command = [sys.executable, "-c", SCRIPT.format(path=sys.path), str(tmp_path / "runs")]
    with subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}) as child:
        while child.poll() is None and len(list(tmp_path.glob("runs/*/*.safetensors"))) < 20:
            pass
        assert child.poll() is None, "it ended too early to be killed"
        child.send_signal(signal.SIGKILL)
    kept = len(list(tmp_path.glob("runs/*/*.safetensors")))
    settings: Any = {"mu": [0.5], "splits": 3, "seeds": 12, "train_per_class": 5, "val_per_class": 5}
    settings |= {"max_epochs": 60, "progress": False}
    result = fit(communities(), resume=tmp_path / "runs", **settings)
    assert trained[0] <= 72 - kept + 8, "two groups of four were in training"
    same(result, fit(communities(), **settings))
