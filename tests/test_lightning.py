"""The Lightning callback: the same training as with the line in the step, its logs, schedule and checkpoint."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from propreg import PReg, Term, annealed, linear_warmup, preg
from samples import PATH, gaussian, pyg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing Lightning stumbles over deprecations of others
    lightning = pytest.importorskip("lightning")
    from propreg.lightning import RegularizerCallback

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's hints about workers and loggers
Y = torch.tensor([0, 1, 0, 1])


def data() -> Any:
    return pyg("torch_geometric.data").Data(x=gaussian(4, 3).float(), edge_index=PATH.edge_index, y=Y)


class Net(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, mu: float = 0.0, returns: str = "tensor") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mu, self.returns, self.layer = mu, returns, torch.nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Any:
        z = self.layer(x)
        return (z,) if self.returns == "tuple" else z

    def training_step(self, batch: Any, batch_idx: int) -> Any:  # noqa: ARG002
        z = self.layer(batch.x) if self.returns == "no call" else self(batch.x)
        z = z[0] if self.returns == "tuple" else z
        loss = torch.nn.functional.cross_entropy(z, batch.y)
        if self.mu:
            loss = loss + self.mu * preg(z, batch.edge_index)
        return {"loss": loss, "more": 1} if self.returns == "dict" else loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)


def fitted(net: Any, *callbacks: Any, epochs: int = 3, **options: Any) -> tuple[Any, Any]:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    options = {"enable_checkpointing": False, **quiet, **options}
    trainer = lightning.Trainer(max_epochs=epochs, callbacks=list(callbacks), **options)
    trainer.fit(net, pyg("torch_geometric.loader").DataLoader([data()], batch_size=1))
    return trainer, net


@pytest.mark.parametrize("returns", ["tensor", "dict"])
def test_it_trains_as_with_the_line_in_the_step(returns: str) -> None:
    _, by_hand = fitted(Net(mu=0.7))
    trainer, net = fitted(Net(returns=returns), RegularizerCallback(Term(PReg(), mu=0.7)))
    torch.testing.assert_close(net.state_dict(), by_hand.state_dict())
    assert {"preg", "preg_mu"} <= trainer.logged_metrics.keys()
    assert trainer.logged_metrics["preg_mu"].item() == pytest.approx(0.7)
    assert not torch.equal(net.layer.weight, fitted(Net())[1].layer.weight)


def test_the_module_is_given_back_and_the_schedule_went_on() -> None:
    term = Term(PReg(), mu=0.25, schedule=annealed)
    net = Net()
    fitted(net, RegularizerCallback(term))
    assert term.epoch == 4
    assert "training_step" not in vars(net)
    assert not net._forward_hooks


def test_a_checkpoint_goes_on_with_the_right_strength(tmp_path: Path) -> None:
    def term() -> Term:
        return Term(PReg(), mu=0.9, schedule=lambda mu, epoch: linear_warmup(mu, epoch, epochs=10))

    trainer, _ = fitted(Net(), RegularizerCallback(term()), epochs=2, default_root_dir=str(tmp_path))
    trainer.save_checkpoint(tmp_path / "saved.ckpt")
    loaded = torch.load(tmp_path / "saved.ckpt", weights_only=False)
    callback = RegularizerCallback(term())
    callback.load_state_dict(next(iter(loaded["callbacks"].values())))
    assert callback.term.epoch == 3
    assert callback.term.strength == pytest.approx(0.27)


def test_what_the_term_was_made_with_is_logged_as_hyper_parameters(tmp_path: Path) -> None:
    logger = lightning.pytorch.loggers.CSVLogger(str(tmp_path))
    fitted(Net(), RegularizerCallback(Term(PReg("kl"), mu=0.25, schedule=annealed)), epochs=1, logger=logger)
    text = Path(logger.log_dir, "hparams.yaml").read_text()
    assert "preg_mu: 0.25" in text
    assert "preg: PReg(phi='kl', norm='rw', add_self_loops=False)" in text
    assert "preg_schedule: annealed" in text


@pytest.mark.parametrize(("returns", "got"), [("no call", "got no call"), ("tuple", "got a tuple")])
def test_a_step_without_logits_is_one_sentence(returns: str, got: str) -> None:
    net = Net(returns=returns)
    with pytest.raises(TypeError, match=rf"training_step must call self\(...\) .*{got}: compute the logits in forward"):
        fitted(net, RegularizerCallback(Term(PReg())))
    assert "training_step" not in vars(net)
    with pytest.raises(TypeError, match=r"term must be a propreg\.Term"):
        RegularizerCallback(PReg())  # type: ignore[arg-type]


def test_another_graph_than_edge_index() -> None:
    seen = []

    def graph(batch: Any) -> tuple[Any, ...]:
        seen.append(batch)
        return batch.edge_index, torch.ones(batch.edge_index.shape[1])

    fitted(Net(), RegularizerCallback(Term(PReg()), graph), epochs=1)
    assert len(seen) == 1
