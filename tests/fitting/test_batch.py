"""``fit(batch=)``: mini-batches on request, or where the whole graph does not fit, and the same kind of result."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from communities import communities
from fitting.own_modules import DATA, GRAPH, QUICK, Base, Tied
from propreg import load_graph, load_model
from propreg.cli.app import app
from propreg.data.features import from_dense
from propreg.data.graph import Split
from propreg.data.own import write_stored
from propreg.data.scaling import Scaling
from propreg.engine import Method, Model
from propreg.engine.ops.features import Features
from propreg.fitting import batching
from propreg.fitting.fit import fit
from propreg.running.compare import record_of
from propreg.scale import blocks


class Normed(Base):
    """Has running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return super().forward(self.norm(x), edge_index)


@pytest.mark.parametrize("model", ["gcn", "mlp", "gat", Base, Normed])
def test_a_fit_in_mini_batches_is_a_fit(model: Any, tmp_path: Path) -> None:
    result = fit(DATA, model, batch=8, refit="train+val", **QUICK)
    assert result.settings["batch"] == 8
    assert result.batches in result.summary()
    assert result.batches in record_of(result)["notes"]
    assert result.finished
    assert not any(run.failed for run in result.runs)
    assert result.refit is not None
    best = result.best_run
    assert len(best.history["loss"]) == best.epochs
    # The reported accuracies are those of the weights that are kept, on the whole graph.
    whole = fit(DATA, model, batch=8, **QUICK)
    right = whole.predict() == GRAPH.y
    assert best.test == pytest.approx(right[GRAPH.split.test].mean() if GRAPH.split else -1)
    module = whole.model
    with torch.no_grad():
        expected = module(DATA.x, DATA.edge_index).softmax(-1).numpy()
    np.testing.assert_allclose(whole.predict_proba(), expected, atol=1e-5)
    whole.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors", *([] if isinstance(model, str) else [model()]))
    with torch.no_grad():
        np.testing.assert_allclose(loaded(DATA.x, DATA.edge_index).softmax(-1).numpy(), expected, atol=1e-6)
    first, other = whole.runs[0], fit(DATA, model, batch=8, **QUICK).runs[0]
    assert all(torch.equal(first.weights[name], other.weights[name]) for name in first.weights), "reproducible"


def test_all_training_nodes_in_a_batch_learn_what_full_batches_learn() -> None:
    given = QUICK | {"dropout": 0.0}
    full, mini = fit(DATA, "gcn", batch="full", **given), fit(DATA, "gcn", batch=500, **given)
    np.testing.assert_array_equal(full.val[0], mini.val[0])
    plain = [(run, other) for run, other in zip(full.runs, mini.runs, strict=True) if not run.replica.strength]
    for run, other in plain:  # every node has at most ten neighbors, or nearly: P-reg alone is of some nodes
        np.testing.assert_allclose(run.history["loss"][:3], other.history["loss"][:3], rtol=0.02)


def memory(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(batching, "available_bytes", lambda: free)


def test_auto_takes_mini_batches_where_the_graph_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not fit(DATA, "gcn", **QUICK).batches
    memory(monkeypatch, 1 << 20)
    result = fit(DATA, "gcn", **{**QUICK, "progress": "lines"})
    sentence = (
        r"The whole graph does not fit in memory \(0.0 GiB are needed and 0.0 GiB are free\): trained on mini-batches "
        r"of 1,024 training nodes, whose neighbors are sampled."
    )
    assert re.fullmatch(sentence, result.batches)
    assert "trained on mini-batches" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ValueError, match=r"batch='full' does not fit in memory \(.*\): pass batch='auto', or a number"):
        fit(DATA, "gcn", batch="full", **QUICK)
    for size in ("auto", "full"):
        assert not fit(DATA, "appnp", batch=size, **QUICK).batches, "there is no other way than to try"


def test_a_module_of_the_user_s_own_that_sees_all_nodes_can_be_tried_where_memory_seems_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Pooled(Base):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return super().forward(x + x.mean(0), edge_index)

    memory(monkeypatch, 1 << 20)
    with pytest.raises(ValueError, match=r"looks further than 4 hops, .* or pass batch='full'"):
        fit(DATA, Pooled, **QUICK)
    assert not fit(DATA, Pooled, batch="full", **QUICK).batches


def test_what_torch_holds_of_a_gpu_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1 << 20, 1 << 40))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 1 << 10)
    spec, term, cuda = Model("gcn"), Method("preg"), torch.device("cuda")
    for reserved, size in ((1 << 10, 1024), (1 << 30, None)):
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _, held=reserved: held)
        assert batching.batching("auto", GRAPH, Scaling(), spec, term, cuda, own=False)[0] == size


def test_bad_sizes_and_what_needs_the_whole_graph_are_refused() -> None:
    for given, says in (
        ({"batch": 0}, "batch must be a whole number of at least 1, got 0: give a number of training nodes"),
        ({"batch": True}, "batch must be a whole number of at least 1, got True"),
        ({"batch": 2.5}, "batch must be a whole number of at least 1, got 2.5"),
        ({"batch": "big"}, "batch must be one of 'auto', 'full', or a number of training nodes, got 'big'"),
        ({"model": "appnp"}, "model='appnp' needs the whole graph, .* use gcn, gat, mlp or a module of your own"),
        ({"model": "grand"}, "model='grand' needs the whole graph"),
        ({"method": "laplacian"}, "method='laplacian' needs the whole graph, .*: use method='preg', or batch='full'"),
        ({"method": lambda z, _: z.sum()}, "needs the whole graph"),
    ):
        with pytest.raises(ValueError, match=says):
            fit(DATA, **{"model": "gcn", "batch": 8, **given, **QUICK})


@pytest.mark.parametrize("scale", ["standard", "rows", "none"])
def test_features_on_disk_stay_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scale: Any) -> None:
    """Only rows are scaled and made to tensors, and the result is that of a graph in memory."""
    part = np.arange(900) // 3 % 30
    split = Split(part == 0, part == 1, part > 1)
    write_stored(tmp_path / "graph", replace(communities(900, degree=1), split=split))
    data = load_graph(tmp_path / "graph")
    monkeypatch.setattr(blocks, "EDGES", 300)
    given = QUICK | {"batch": 4, "scale": scale, "max_epochs": 3}
    expected = fit(data.clone(), Tied, **given), fit(data.clone(), "gcn", **given)
    scaled, called, made = [], Scaling.__call__, Features.of

    def scaling(self: Scaling, x: Any) -> Any:
        scaled.append(len(x))
        return called(self, x)

    def features(graph: Any, *rest: Any) -> Any:
        scaled.append(graph.num_nodes)
        return made(graph, *rest)

    monkeypatch.setattr(Scaling, "__call__", scaling)
    monkeypatch.setattr(Features, "of", staticmethod(features))
    found = fit(data, Tied, **given), fit(data, "gcn", **given)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine.test, theirs.test)
    assert 0 < max(scaled) < 900


def test_sparse_features_and_weighted_edges() -> None:
    sparse = replace(GRAPH, x=from_dense(np.asarray(GRAPH.x).round()), digests={"edges": "the same draws"})
    weighted = replace(sparse, edge_weight=np.ones(GRAPH.edge_index.shape[1], np.float32))
    one, two = (fit(graph, "gcn", batch=8, scale="rows", **QUICK) for graph in (sparse, weighted))
    np.testing.assert_array_equal(one.test, two.test)


def test_the_command_takes_a_size(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    write_stored(tmp_path / "graph", GRAPH)
    asked = [
        "run",
        "--graph",
        str(tmp_path / "graph"),
        "--mu",
        "0.5",
        "--seeds",
        "1",
        "--max-epochs",
        "2",
        "--no-progress",
    ]
    done = CliRunner().invoke(app, [*asked, "--batch", "8", "-o", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "mini-batches of 8 training nodes" in " ".join(done.output.split())
    for size, says in (("0", "at least 1"), ("big", "'auto', 'full'")):
        refused = CliRunner().invoke(app, [*asked, "--batch", size, "-o", str(tmp_path / "other")])
        assert refused.exit_code == 2
        assert says in refused.output
