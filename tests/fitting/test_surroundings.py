"""Whatever the caller has set in torch, or lies in the caller's folder, a fit is the same and hands back the same."""

import copy
import glob
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

import propreg
from fitting.own_modules import DATA, GRAPH, QUICK, Base
from propreg.fitting.fit import fit


def same(first: propreg.FitResult, second: propreg.FitResult) -> None:
    assert (first.val == second.val).all()
    state = second.model.state_dict()
    for name, t in first.model.state_dict().items():
        assert state[name].dtype == torch.float32
        assert torch.equal(t, state[name])


@pytest.mark.parametrize("model", ["gcn", "gat", Base])
@pytest.mark.parametrize(
    "modes",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["no_grad", "inference_mode", "autocast"],
)
def test_modes_have_no_part_in_it(model: str | type[Base], modes: Callable[[], AbstractContextManager[None]]) -> None:
    usual = fit(GRAPH, model, device="cpu", **QUICK)
    with modes():
        inside = fit(GRAPH, model, device="cpu", **QUICK)
    same(usual, inside)
    inside.model.train()(DATA.x, DATA.edge_index).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_default_type_has_no_part_in_it(dtype: torch.dtype, tmp_path: Path) -> None:
    usual = fit(GRAPH, "gcn", **QUICK)
    torch.set_default_dtype(dtype)
    try:
        inside = fit(GRAPH, "gcn", **QUICK)
        inside.save(tmp_path / "model.npz")
        read = propreg.load_model(tmp_path / "model.npz")
    finally:
        torch.set_default_dtype(torch.float32)
    same(usual, inside)
    assert torch.equal(read(DATA.x, DATA.edge_index), usual.model(DATA.x, DATA.edge_index))


def test_a_model_of_another_type_is_saved_as_float32(tmp_path: Path) -> None:
    result = fit(GRAPH, "gcn", **QUICK)
    before = result.model(DATA.x, DATA.edge_index)
    result.model.double()
    result.save(tmp_path / "model.npz")
    assert torch.equal(propreg.load_model(tmp_path / "model.npz")(DATA.x, DATA.edge_index), before)


def test_nothing_of_the_callers_folder_is_run(tmp_path: Path) -> None:
    """PyG's Sequential imports the file that called it, by its bare name, from wherever Python looks first."""
    from propreg.fitting import pyg_modules as export

    name = Path(str(export.__file__)).name
    (tmp_path / name).write_text("import sys\nprint('it was run')\nsys.exit(3)\n")
    (tmp_path / "go.py").write_text(
        "import copy, propreg\n"
        "data = propreg.load_dataset('digits', split=0)\n"
        "result = propreg.fit(data, mu=0.5, seeds=1, max_epochs=2)\n"
        "result.save('model.npz')\n"
        "copy.deepcopy(propreg.load_model('model.npz'))\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "go.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_nothing_is_written_and_no_random_number_of_pythons_is_drawn() -> None:
    left, before = glob.glob(f"{tempfile.gettempdir()}/torch_geometric.nn.sequential*"), random.getstate()
    result = fit(GRAPH, "gat", **QUICK)
    assert random.getstate() == before
    assert glob.glob(f"{tempfile.gettempdir()}/torch_geometric.nn.sequential*") == left
    again = copy.deepcopy(result.model)
    assert torch.equal(again(DATA.x, DATA.edge_index), result.model(DATA.x, DATA.edge_index))


def test_a_strength_that_was_not_tried() -> None:
    with pytest.raises(ValueError, match=r"mu = 0.3 was not tried: the strengths are 0, 0.5\."):
        fit(GRAPH, "mlp", **QUICK).at(0.3)


WITHOUT = """
import sys, warnings
class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "propreg":
            raise ImportError(name)
sys.meta_path.insert(0, Nobody())
warnings.simplefilter("ignore")
import torch
for name in sys.argv[1:]:
    module, x, edge_index, expected = torch.load(name, weights_only=False)
    assert torch.equal(module(x, edge_index), expected), name
assert "propreg" not in sys.modules
print("done")
"""


def test_the_model_needs_no_propreg_to_run(tmp_path: Path) -> None:
    models = ["gcn", "gat", "mlp", "appnp"]
    for model in models:
        module = fit(GRAPH, model, **QUICK).model
        with torch.no_grad():
            torch.save((module, DATA.x, DATA.edge_index, module(DATA.x, DATA.edge_index)), tmp_path / model)
    command = [sys.executable, "-c", WITHOUT, *models]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
