"""Every kernel of a step on molecules compiles for real GPUs, though none is here."""

import pytest
import torch

from engine.kernels.test_compiled import Compiled, compiled  # noqa: F401  (a fixture)
from molecules.made_up import molecules
from propreg.engine import kernels
from propreg.engine.models.molecules import MoleculeModel
from propreg.molecules.packing import assemble
from propreg.molecules.regularizers import Form
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.tasks import MoleculeTask
from propreg.molecules.train import MoleculeRun, Training

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not kernels.installed(), reason="Triton is not installed: there are no kernels to compile"),
    pytest.mark.skipif(kernels.interpreted(), reason="the interpreter compiles nothing"),
]
STEPS: list[tuple[MoleculeModel, Form]] = [
    (MoleculeModel("mol-gin", layers=2, virtual_node=True), "paper"),
    (MoleculeModel("mol-gcn", layers=2), "reference"),
]


@pytest.mark.parametrize("compiled", [90], indirect=True, ids=["H200"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_step_compiles(compiled: Compiled, dtype: torch.dtype) -> None:  # noqa: F811
    task = MoleculeTask(molecules(), "regression", torch.device("cpu"), dtype)
    for model, form in STEPS:
        training = Training(task, model, form, [MoleculeRun(0, 0.3), MoleculeRun(1, 0.3)], MoleculeProtocol(1, 8))
        training.keys.advance(1)
        training.adam.advance()
        training.step(assemble(task.packed, torch.arange(16).view(2, 8), 70, 130))
        training.outputs("valid")
    assert compiled.keys() >= {"_normalize", "_normalize_backward", "_messages", "_table_gradient", "_agreement"}
