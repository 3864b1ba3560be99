"""P-reg in Lightning: a callback that adds the term to the loss of any module and logs it.

Needs Lightning (``pip install lightning``); nothing else in propreg does.
"""

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from propreg._lazy import MissingPackageError
from propreg._term import Term

try:
    import lightning
except ModuleNotFoundError as error:
    raise MissingPackageError("propreg.lightning needs Lightning: pip install lightning.") from error


def edges_of(batch: Any) -> tuple[Any, ...]:
    """What a term takes after the logits: the edges of a PyG batch."""
    return (batch.edge_index,)


class RegularizerCallback(lightning.Callback):
    """Adds a term to the loss that ``training_step`` returns, logs it, and steps its schedule after every epoch.

    The logits are what the module's own ``forward`` returns in ``training_step``: call ``self(...)`` there once, and
    let it return a row per node of the batch. The term's strength and epoch are part of the checkpoint. Logged are
    ``preg``, the term without its strength, and ``preg_mu``, its strength; and as hyper-parameters what the term was
    made with.

    Args:
        term: The term, with its strength.
        graph: What the term takes after the logits, a tuple, from the batch; default ``(batch.edge_index,)``.

    Example:
        >>> from propreg import PReg, Term
        >>> from propreg.lightning import RegularizerCallback
        >>> callback = RegularizerCallback(Term(PReg(), mu=0.5))  # lightning.Trainer(callbacks=[callback])
        >>> callback.state_dict()["term"]["_extra_state"]
        {'mu': 0.5, 'epoch': 1}
    """

    def __init__(self, term: Term, graph: Callable[[Any], tuple[Any, ...]] = edges_of) -> None:
        if not isinstance(term, Term):
            raise TypeError(f"term must be a propreg.Term, for example Term(PReg()), got a {type(term).__name__}.")
        self.term, self.graph = term, graph
        self._undo: list[Callable[[], object]] = []

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Put the term between ``training_step`` and the trainer."""
        self._restore()
        term, schedule = self.term, self.term.schedule
        made_with: dict[str, Any] = {"preg_mu": "learned" if term.learned else term.mu}
        made_with |= {"preg": repr(term.regularizer), "preg_schedule": getattr(schedule, "__name__", repr(schedule))}
        for logger in trainer.loggers:
            logger.log_hyperparams(made_with)
        self.term.to(pl_module.device)
        step = pl_module.training_step
        seen: list[object] = []

        @functools.wraps(step)
        def with_term(batch: Any, *arguments: Any, **options: Any) -> Any:
            seen.clear()
            output = step(batch, *arguments, **options)
            if output is None:  # a step that is skipped
                return None
            z = seen[-1] if seen else None
            if not isinstance(z, Tensor):
                raise TypeError(
                    "training_step must call self(...) and let it return the logits, a tensor with a row per node, got "
                    f"{'no call' if z is None else f'a {type(z).__name__}'}: compute the logits in forward."
                )
            added = self.term(z, *self.graph(batch))
            if self.term.last is not None:
                pl_module.log("preg", self.term.last, batch_size=z.shape[0])
            pl_module.log("preg_mu", self.term.strength, batch_size=z.shape[0])
            return {**output, "loss": output["loss"] + added} if isinstance(output, dict) else output + added

        hook = pl_module.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
        pl_module.training_step = with_term  # type: ignore[method-assign]
        self._undo = [hook.remove, lambda: delattr(pl_module, "training_step")]

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Go on in the schedule."""
        self.term.step()

    def teardown(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:  # noqa: ARG002
        """Give the module its ``training_step`` back."""
        self._restore()

    def on_exception(
        self,
        trainer: lightning.Trainer,  # noqa: ARG002
        pl_module: lightning.LightningModule,  # noqa: ARG002
        exception: BaseException,  # noqa: ARG002
    ) -> None:
        """As after a training."""
        self._restore()

    def state_dict(self) -> dict[str, Any]:
        """Part of Lightning's checkpoint."""
        return {"term": self.term.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As saved."""
        self.term.load_state_dict(state_dict["term"])

    def _restore(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []
