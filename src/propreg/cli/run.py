"""``propreg run``: compare the plain model with a regularized one on any graph, and write a page."""

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from propreg import _choices
from propreg.cli.complete import node_datasets
from propreg.cli.guard import INTERRUPTED, terminated_like_interrupted
from propreg.cli.shared import Columns, columns_of, page_of, say
from propreg.engine.models import MODELS
from propreg.engine.regularizers import tunable

if TYPE_CHECKING:
    from propreg.fitting.picking import Select
    from propreg.report.live import Live
    from propreg.running.folder import Claim
    from propreg.running.plan import Plan, Source


METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision")  # shown in per cent
SELECTIONS = ("accuracy", "balanced", "reweighted", "loss")  # of propreg.fitting.picking, which imports NumPy


class Scale(StrEnum):
    """What is done to the features."""

    auto = "auto"
    standard = "standard"
    rows = "rows"
    none = "none"


class Test(StrEnum):
    """How test nodes are chosen."""

    cv = "cv"


class Preset(StrEnum):
    """The two forms of a regularizer."""

    paper = "paper"
    reference = "reference"


def run(
    context: typer.Context,
    dataset: Annotated[
        str | None,
        typer.Option(help="A benchmark dataset; the default, digits, needs no download.", autocompletion=node_datasets),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Your own graph: a folder with edges.csv and nodes.csv, or an .npz file.")
    ] = None,
    molecules: Annotated[
        Path | None, typer.Option(help="A CSV file of molecules with a header line; needs RDKit (propreg[molecules]).")
    ] = None,
    smiles_column: Annotated[str, typer.Option(help="The column of --molecules with SMILES.")] = "smiles",
    target: Annotated[
        list[str] | None, typer.Option(help="A column of --molecules to learn; repeat it for more.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="The architecture or the training method, see propreg methods; several, like gcn,mlp, are compared. "
            "For molecules: gin (the default) or gcn.",
            metavar=f"<{'|'.join(MODELS)}>",
            callback=lambda names: ",".join(
                name if name == "gin" else _known("model", name.strip(), MODELS) for name in names.split(",")
            ),
            autocompletion=lambda: list(MODELS),
        ),
    ] = "gcn",
    method: Annotated[
        str,
        typer.Option(
            help="The regularizer: P-reg, or a baseline of the paper.",
            metavar=f"<{'|'.join(tunable())}>",
            callback=lambda name: _known("method", name, tunable()),
            autocompletion=lambda: list(tunable()),
        ),
    ] = "preg",
    preset: Annotated[
        Preset, typer.Option(help="The paper form or the official-code form (reference).")
    ] = Preset.paper,
    mu: Annotated[
        str, typer.Option(help="The strength: auto, a number, or a list like 0.2,0.5 to choose from on validation.")
    ] = "auto",
    splits: Annotated[
        int | None, typer.Option(min=1, help="Splits to train on; default 10 for digits, else 6.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, help="Trainings per split and strength; default 1 for digits, else 3 (10 for one split)."
        ),
    ] = None,
    max_epochs: Annotated[
        int | None, typer.Option(min=1, help="Maximum epochs per training; default 100 for digits, else 1000.")
    ] = None,
    batch: Annotated[
        str,
        typer.Option(
            help="full: the whole graph in each step; a number: mini-batches of so many training nodes; auto: "
            "mini-batches only if the whole graph does not fit in memory."
        ),
    ] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write; if it exists, a number is added to the name.")
    ] = Path("propreg-run"),
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite the folder if it holds a run.")] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume an interrupted or killed run in its folder; give the same options."),
    ] = False,
    train_per_class: Annotated[
        int | None, typer.Option(min=1, help="Training nodes per class if your graph has no split; default 20.")
    ] = None,
    val_per_class: Annotated[
        int | None,
        typer.Option(min=1, help="Validation nodes per class if your graph has no split; default 30."),
    ] = None,
    test: Annotated[
        Test | None,
        typer.Option(
            help="cv: cross-validation with --splits folds (default 6), each with its own strength; it tests every "
            "labeled node once."
        ),
    ] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Read edges.csv as directed, source → target.")] = False,
    columns: Columns = None,
    scale: Annotated[
        Scale | None,
        typer.Option(
            help="How features are scaled: standard standardizes each column, rows divides each row by its sum; "
            "default auto: rows for bags of words, else standard."
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="The score by which strengths are chosen and compared.",
            metavar=f"<{'|'.join(METRICS)}>",
            callback=lambda name: _known("metric", name, METRICS),
            autocompletion=lambda: list(METRICS),
        ),
    ] = "accuracy",
    select: Annotated[
        str | None,
        typer.Option(
            help="What mu is picked by on validation, if not --metric: balanced is the mean recall of the classes; "
            "reweighted weighs them by their estimated frequency among the nodes outside training and validation; loss "
            "is the cross-entropy.",
            metavar=f"<{'|'.join(SELECTIONS)}>",
            callback=lambda name: name and _known("select", name, SELECTIONS),
            autocompletion=lambda: list(SELECTIONS),
        ),
    ] = None,
    lr: Annotated[float | None, typer.Option(min=0, help="Learning rate; default the model's own.")] = None,
    weight_decay: Annotated[float | None, typer.Option(min=0, help="Weight decay; default the model's own.")] = None,
    dropout: Annotated[float | None, typer.Option(min=0, max=1, help="Dropout; default the model's own.")] = None,
    patience: Annotated[
        int | None, typer.Option(min=0, help="Epochs without improvement before a training stops.")
    ] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Width of a hidden layer.")] = None,
    layers: Annotated[int | None, typer.Option(min=2, help="Number of layers.")] = None,
    normalize_features: Annotated[
        bool, typer.Option("--normalize-features", help="Deprecated: use --scale rows.", hidden=True)
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the estimated memory and time, and train nothing.")
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="Serve the page on this computer while the run trains; it fills as runs finish."),
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    progress: Annotated[bool, typer.Option(help="Show progress and the time left.")] = True,
) -> None:
    """Compare the plain model with a regularized one on a graph, and write a page with the results."""
    if resume and replace:
        raise typer.BadParameter("--resume replaces what the interrupted run has written: leave --replace out.")
    if molecules is not None:
        from propreg.cli.run_molecules import run_molecules

        return run_molecules(context, molecules, smiles_column, target or [])
    if target or "gin" in model.split(","):
        raise typer.BadParameter(f"{'--target' if target else '--model gin'} is for --molecules: leave it out.")
    if dataset is not None and graph is not None:
        raise typer.BadParameter("--dataset and --graph name two graphs: give one of them.")
    if graph is None:
        _only_for_own_graphs(
            {
                "--train-per-class": train_per_class is not None,
                "--val-per-class": val_per_class is not None,
                "--directed": directed,
                "--columns": columns is not None,
            }
        )
    if normalize_features:
        typer.echo("--normalize-features is deprecated: use --scale rows.", err=True)
        scale = scale or Scale.rows
    from propreg.console import StatusLine
    from propreg.devices import DeviceError, check_device_name
    from propreg.running.plan import make_plan, parse_mu

    try:
        strengths = parse_mu(mu, method)
        check_device_name(device)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with StatusLine("loading PyTorch …"):  # takes seconds
        from propreg.running import text
        from propreg.running.folder import claim, claim_again

    own = {"train_per_class": train_per_class, "val_per_class": val_per_class}
    read = {"directed": directed, "columns": columns_of(columns)}
    source = _source(dataset, graph, own, read, splits=splits, folds=test is not None)
    names = list(dict.fromkeys(model.split(",")))
    if not any(MODELS[name].trained for name in names):
        raise typer.BadParameter(
            f"{names[0]} is not trained, so no regularizer changes it: add a model, as in --model gcn,{names[0]}."
        )
    try:
        plans = [
            make_plan(
                source,
                model=name,
                method=method,
                preset=preset.value,
                mu=strengths,
                seeds=seeds,
                max_epochs=max_epochs,
                device=device,
                scale=scale.value if scale else None,
                metric=metric,
                select=cast("Select | None", select),
                dropout=dropout,
                training={"lr": lr, "weight_decay": weight_decay, "patience": patience},
                architecture={"hidden": hidden, "layers": layers},
                batch=int(batch) if batch.isdecimal() else batch,  # type: ignore[arg-type]  # checked by the plan
            )
            for name in names
        ]
    except DeviceError:
        raise
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if plan:
        from propreg.running.forecast import forecast

        return say(forecast(plans))
    with suppress(BrokenPipeError):  # a closed pipe must not stop the run: the folder is still written
        say(text.before(plans[0], names))
    claimed = claim_again(output) if resume else claim(output, replace=replace)
    earlier = len(list(claimed.training.glob("*/*")))
    say(text.kept(claimed.folder, earlier, resumed=resume))
    with terminated_like_interrupted():
        finished, folder = _train_and_write(plans, claimed, output, progress, live)
    _end(finished, folder if open_ else None)


def _end(finished: bool, shown: Path | None) -> None:
    """Open the page, if that is wanted; the exit code of a run that was interrupted."""
    from propreg.running import text
    from propreg.running.folder import PAGE

    if shown is not None and (shown / PAGE).exists():
        import webbrowser

        webbrowser.open((shown / PAGE).resolve().as_uri())
    if not finished:
        say(text.to_resume())
        raise typer.Exit(INTERRUPTED)


def _source(
    dataset: str | None, graph: Path | None, per_class: dict[str, Any], read: dict[str, Any], *,
    splits: int | None, folds: bool,
) -> "Source":  # fmt: skip
    """The graph and its splits, or folds of all labeled nodes."""
    from propreg.running.plan import load_own, load_source

    for name, given in per_class.items():
        if folds and given is not None:
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{option} does not apply with --test cv, which divides all labeled nodes.")
    test: Literal["cv"] | None = "cv" if folds else None
    if graph is None:
        return load_source(dataset or "digits", splits=splits, test=test)
    named = ",".join(f"{what}={name}" for what, name in (read["columns"] or {}).items())
    asked = {**per_class, "columns": named, "directed": read["directed"]}
    found = load_own(graph, **read, splits=splits, test=test, **per_class)
    return dataclasses.replace(found, options={name: value for name, value in asked.items() if value})


def _train_and_write(
    plans: "list[Plan]", claimed: "Claim", output: Path, progress: bool, live: bool
) -> "tuple[bool, Path | None]":
    """Write the folder and print the result; returns whether all trainings are finished, and the folder."""
    from propreg.running import text
    from propreg.running.compare import compare_models

    with ExitStack() as stack:
        try:
            served = stack.enter_context(_served(plans[0].device)) if live else None
            comparison = compare_models(
                plans,
                progress="lines" if progress else False,
                resume=claimed.training,
                watch=None if served is None else served.update,
            )
        except BaseException:
            claimed.give_up()
            raise

        def page(record: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
            made = page_of(record)
            if served is not None:
                served.end(made[0])
            return made

        def tell(folder: Path | None) -> None:
            if comparison.board is not None:
                say(["", *comparison.board.table()])
            say(["", *text.table(comparison), "", *text.remarks(comparison)])
            if folder is not None:
                left_alone = f"{output} already exists and was left alone. " if folder != output else ""
                say(["", *text.predicted(comparison.plan.source.graph), *text.written(folder, left_alone)])

        return comparison.result.finished, claimed.finish(comparison, page, tell)


def _served(device: str) -> "Live":
    """The live page, whose address is printed."""
    from propreg.report.live import Live

    found = Live(partial(typer.echo, err=True), in_thread=device == "cpu")
    with suppress(BrokenPipeError):
        say([f"Live: {found.url} (Ctrl-C stops)"])
    return found


def _known(option: str, name: str, entries: Iterable[str]) -> str:
    try:
        _choices.one_of(option, name, entries)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return name


def _only_for_own_graphs(given: dict[str, bool]) -> None:
    """Refuse options that would be ignored: a benchmark has its own splits and features."""
    if names := [name for name, there in given.items() if there]:
        are = "is" if len(names) == 1 else "are"
        out = "it" if len(names) == 1 else "them"
        raise typer.BadParameter(
            f"{' and '.join(names)} {are} for your own graph: give one with --graph, or leave {out} out."
        )
