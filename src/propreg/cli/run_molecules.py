"""``propreg run --molecules``: the comparison on a table of SMILES."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from propreg.cli.guard import INTERRUPTED, terminated_like_interrupted
from propreg.cli.shared import page_of, say

if TYPE_CHECKING:
    from propreg.running.folder import Claim
    from propreg.running.molecules import MoleculePlan

PASSED_ON = ("preset", "mu", "seeds", "max_epochs", "device", "lr", "dropout", "hidden", "layers")
"""Options of ``propreg run`` that molecules have, too."""
OTHERS = ("molecules", "smiles_column", "target", "model", "splits", "output", "replace", "resume", "progress")


def run_molecules(context: typer.Context, path: Path, smiles_column: str, targets: list[str]) -> None:
    """Compare the plain model with P-reg on molecules, and write a page with the results."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    named = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if odd := sorted(named - {*PASSED_ON, *OTHERS}):
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in odd)
        raise typer.BadParameter(f"{listed} is not for molecules: leave it out.")
    from propreg.console import StatusLine
    from propreg.devices import check_device_name
    from propreg.running.plan import parse_mu

    given: dict[str, Any] = {name: context.params[name] for name in PASSED_ON}
    model = context.params["model"] if "model" in named else "gin"
    try:
        given["mu"] = parse_mu(given["mu"])
        check_device_name(given["device"])
        if model not in ("gin", "gcn"):
            raise ValueError(f"--model must be gin or gcn with --molecules, got {model!r}.")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with StatusLine("loading PyTorch …"):
        from propreg.running import text
        from propreg.running.folder import claim, claim_again
        from propreg.running.molecules import plan_molecules
    given |= {"model": model, "preset": given["preset"].value, "splits": context.params["splits"]}
    plan = plan_molecules(path, smiles_column, targets, **given)
    output, resume = context.params["output"], context.params["resume"]
    with suppress(BrokenPipeError):
        say(text.before_molecules(plan))
    claimed = claim_again(output) if resume else claim(output, replace=context.params["replace"])
    say(text.kept(claimed.folder, len(list(claimed.training.glob("*/*"))), resumed=resume))
    with terminated_like_interrupted():
        finished = _train_and_write(plan, claimed, output, context.params["progress"])
    if not finished:
        say(text.to_resume())
        raise typer.Exit(INTERRUPTED)


def _train_and_write(plan: "MoleculePlan", claimed: "Claim", output: Path, progress: bool) -> bool:
    """Write the folder and print the result; returns whether all trainings are finished."""
    from propreg.running import text
    from propreg.running.molecules import compare_molecules

    try:
        comparison = compare_molecules(plan, progress="lines" if progress else False, resume=claimed.training)
    except BaseException:
        claimed.give_up()
        raise

    def tell(folder: Path | None) -> None:
        say(["", *text.table(comparison), "", *text.remarks(comparison)])
        if folder is not None:
            left_alone = f"{output} already exists and was left alone. " if folder != output else ""
            say(["", *text.written(folder, left_alone, "molecule", "load_graph_model")])

    claimed.finish(comparison, page_of, tell)
    return comparison.result.finished
