"""The replica-first networks against plain modules, and against PyG's layer."""

import pytest
import torch
from torch import Tensor

from molecules import plain
from molecules.made_up import graphs, molecules
from propreg import preg
from propreg.data.graph_list import BOND_DIMS
from propreg.engine.models.molecules import MoleculeModel
from propreg.molecules.networks import Encoders, MoleculeNetwork, buffers_of, weights_of
from propreg.molecules.packing import Packed, assemble
from propreg.molecules.regularizers import preg_term

CPU, WIDTH, TASKS = torch.device("cpu"), 16, 3
MODELS = [
    MoleculeModel(name, WIDTH, 3, virtual_node=virtual) for name in ("mol-gcn", "mol-gin") for virtual in (False, True)
]
CHOSEN = [[0, 5, 1, 7, 9], [3, 1, 2, 11]]  # 0 is a single atom, 1 has no bond


def modules(model: MoleculeModel, columns: tuple[int, int] | None = None) -> list[plain.Plain]:
    made = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        module = plain.Plain(model, TASKS, columns or (None, None)).double()
        with torch.no_grad():
            for p in module.parameters():
                p.add_(0.1 * torch.randn_like(p))
        made.append(module)
    return made


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("columns", [None, (4, 2), (4, 0)])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_outputs_gradients_and_running_statistics_are_those_of_plain_layers(
    model: MoleculeModel, columns: tuple[int, int] | None
) -> None:
    data = molecules(tasks=TASKS) if columns is None else graphs(columns=columns)
    network, packed = MoleculeNetwork(model), Packed.of(data, CPU, torch.float64)
    found = [plain.named(module) for module in modules(model, columns)]
    names = weights_of(model, TASKS, encoders=Encoders.of(packed))
    p = {name: torch.stack([f[name] for f in found]).detach().requires_grad_() for name in names}
    b = {name: torch.stack([f[name] for f in found]).detach().clone() for name in buffers_of(model)}
    padded = [row + [-1] * (5 - len(row)) for row in CHOSEN]
    batch = assemble(packed, torch.tensor(padded), 64, 128)
    h = network.atoms(p, b, batch, lambda _: None, training=True)
    out = network.predict(p, h, batch)
    total = (out.sin() * (torch.tensor(padded) >= 0)[:, None, :, None]).sum()
    total = total + (h.cos() * batch.real[:, None, :, None]).sum()
    gradients = dict(zip(p, torch.autograd.grad(total, list(p.values())), strict=True))
    for row, (module, chosen) in enumerate(zip(modules(model, columns), CHOSEN, strict=True)):
        z, y = module(*plain.together(data, chosen))
        torch.testing.assert_close(h[row, 0, : len(z)], z)
        torch.testing.assert_close(out[row, 0, : len(chosen)], y)
        torch.autograd.backward(y.sin().sum() + z.cos().sum())
        known = plain.named(module)
        for name in b:
            torch.testing.assert_close(b[name][row], known[name], msg=name)
        for t in module.parameters():
            with torch.no_grad():
                t.copy_(torch.zeros_like(t) if t.grad is None else t.grad)
        for name, expected in plain.named(module).items():
            if name in gradients:
                torch.testing.assert_close(gradients[name][row], expected, rtol=1e-6, atol=1e-9, msg=name)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_evaluation_uses_the_running_statistics(model: MoleculeModel) -> None:
    data, module = molecules(tasks=TASKS), modules(model)[0]
    module(*plain.together(data, CHOSEN[0]))
    module.eval()
    known = plain.named(module)
    p = {name: known[name].detach().unsqueeze(0) for name in weights_of(model, TASKS)}
    b = {name: known[name].detach().clone().unsqueeze(0) for name in buffers_of(model)}
    batch = assemble(Packed.of(data, CPU, torch.float64), torch.tensor(CHOSEN[1:]), 40, 80)
    network = MoleculeNetwork(model)
    h = network.atoms(p, b, batch, lambda _: None, training=False)
    z, y = module(*plain.together(data, CHOSEN[1]))
    torch.testing.assert_close(network.predict(p, h, batch)[0, 0], y)
    torch.testing.assert_close(h[0, 0, : len(z)], z)


def test_a_gin_layer_is_pygs_with_its_gradients() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    model = MoleculeModel("mol-gin", WIDTH, 1)
    module = modules(model)[0].eval()
    layer = module.convs[0]
    assert isinstance(layer, plain.Gin)
    twin = geometric.GINEConv(layer.mlp, eps=0.25).double()
    with torch.no_grad():
        layer.epsilon.fill_(0.25)
    atoms, edges, features, _ = plain.together(molecules(), CHOSEN[0])
    h = module.atoms(atoms).detach()
    x, y = h.clone().requires_grad_(), h.clone().requires_grad_()
    ours, theirs = layer(x, edges, features), twin(y, edges, layer.bonds(features))
    torch.testing.assert_close(ours, theirs)
    weights = [*layer.bonds.parameters(), *layer.mlp.parameters()]
    gradients = (torch.autograd.grad(out.sin().sum(), [at, *weights]) for out, at in ((ours, x), (theirs, y)))
    for mine, known in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, known)


def terms(form: str) -> tuple[Tensor, Tensor, Tensor, plain.Encoder, Tensor]:
    """P-reg of random embeddings by the engine, and what the check needs: embeddings, edges, bonds, root."""
    torch.manual_seed(0)
    data = molecules()
    batch = assemble(Packed.of(data, CPU, torch.float64), torch.tensor([CHOSEN[0]]), 40, 80)
    passes = [torch.randn(1, 1, 40, WIDTH, dtype=torch.float64) for _ in range(3)]
    bonds, root = plain.Encoder(BOND_DIMS, WIDTH).double(), torch.randn(WIDTH, dtype=torch.float64)
    table = torch.cat([t.weight for t in bonds.tables])  # type: ignore[misc]
    p = {"propagation.bonds": table.unsqueeze(0), "propagation.root": root.unsqueeze(0)}
    term = preg_term(form, passes, p, batch)  # type: ignore[arg-type]
    assert term is not None
    return term, torch.stack(passes)[:, 0, 0], plain.together(data, CHOSEN[0])[1], bonds, root


def test_the_paper_form_is_the_librarys_preg() -> None:
    term, (h, _, _), edges, _, _ = terms("paper")
    atoms = int(edges.max()) + 1 if edges.numel() else 0
    count = len(plain.together(molecules(), CHOSEN[0])[0])
    assert atoms <= count
    torch.testing.assert_close(term.squeeze(), preg(h[:count], edges))


def test_the_reference_form_is_the_official_formula() -> None:
    term, (_, target, source), edges, bonds, root = terms("reference")
    atoms, _, features, _ = plain.together(molecules(), CHOSEN[0])
    n = len(atoms)
    q = plain.propagated(source[:n], bonds(features), root, edges).log_softmax(-1)
    torch.testing.assert_close(term.squeeze(), -(target[:n].softmax(-1) * q).sum(-1).mean())
