"""Every file in examples/ runs, and every Python block of the README does."""

import csv
import importlib.util
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
import torch

import propreg
from quick_start import run_script

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own import warns of its use of torch.jit
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import k_hop_subgraph

ROOT = Path(__file__).parent.parent
STARTED_BY_TORCHRUN = "large_graph_ddp"  # tests/scale/test_ddp.py runs it; it has options, and more than 40 lines
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != STARTED_BY_TORCHRUN)
NEEDS = {"lightning_module": "lightning"}


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_is_short(path: Path, tmp_path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 40
    needed = NEEDS.get(path.stem)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed: pip install {needed}")
    done = run_script(path, tmp_path, seconds=300)
    assert done.code == 0, done.stderr
    assert done.stdout.strip()


def test_an_example_runs_as_a_user_starts_it() -> None:
    """The test above saves each of them the import of torch; this one does not."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:propreg", "plain_loop.py"],
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise KeyError('mine')", "KeyError: 'mine'"),
        ("import propreg, warnings\nwarnings.warn_explicit('oh', UserWarning, 'a', 1, module='propreg')", "oh"),
        ("import sys\nsys.exit('no')", "no"),
    ],
)
def test_an_example_that_fails_is_noticed(tmp_path: Path, code: str, says: str) -> None:
    (tmp_path / "bad.py").write_text(f"print('begun', __name__)\n{code}\n")
    done = run_script(tmp_path / "bad.py", tmp_path, seconds=300)
    assert done.code == 1
    assert done.stdout == "begun __main__\n"
    assert says in done.stderr


def test_every_kind_of_use_has_its_example() -> None:
    expected = {
        "plain_loop",
        "own_model",
        "mini_batches",
        "lightning_module",
        "graph_level",
        "heterogeneous",
        "tracking",
    }
    assert {path.stem for path in EXAMPLES} >= expected


def test_mini_batches_with_a_hop_more_than_layers_give_the_whole_graphs_value() -> None:
    """With subgraphs of exact hops the batches' values, weighted by their nodes, are the term on the whole graph."""
    torch.manual_seed(0)
    data = propreg.load_dataset("digits", split=0)
    first, second = SAGEConv(64, 16).double(), SAGEConv(16, 10).double()
    x = data.x.double() / 16

    def logits(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = second(first(x, edges).relu(), edges)
        return z

    def batched(hops: int) -> float:
        total = 0.0
        for nodes in torch.randperm(data.num_nodes).chunk(6):
            around, edges, inner, _ = k_hop_subgraph(nodes, hops, data.edge_index, relabel_nodes=True)
            total += len(nodes) * propreg.preg(logits(x[around], edges), edges, mask=inner).item()
        return total / len(x)

    whole = propreg.preg(logits(x, data.edge_index), data.edge_index).item()
    assert batched(3) == pytest.approx(whole, rel=1e-12)
    assert batched(2) != pytest.approx(whole, rel=1e-9), "two hops are not enough"


def _tracking() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tracking", ROOT / "examples" / "tracking.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fitted() -> propreg.FitResult:
    data = propreg.load_dataset("digits", split=0)
    return propreg.fit(data, "mlp", 0.5, seeds=1, max_epochs=4, progress=False)


def test_the_csv_tracker_writes_every_epoch(fitted: propreg.FitResult, tmp_path: Path) -> None:
    tracking = _tracking()
    tracking.track(tracking.CsvTracker(str(tmp_path / "metrics.csv")), fitted)
    with open(tmp_path / "metrics.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == sum(run.epochs for run in fitted.runs)
    assert rows[0] == ["validation, mu 0, seed 0", str(float(fitted.runs[0].history["val"][0])), "1"]


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_the_tensorboard_tracker_writes_events(fitted: propreg.FitResult, tmp_path: Path) -> None:
    tracking = _tracking()
    tracking.track(tracking.TensorBoardTracker(str(tmp_path)), fitted)
    assert any(path.stat().st_size > 0 for path in tmp_path.iterdir())


def test_the_blocks_of_the_readme_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them saves a model
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
