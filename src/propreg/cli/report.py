"""``propreg report``: the study, or a run, as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from propreg.cli.recorded import RULE, read

DEFAULT = Path("propreg-report")
PAGE = "index.html"
PAGES = (".html", ".htm")
OURS = b'<meta name="generator" content="propreg '


def report(
    source: Annotated[
        Path | None,
        typer.Argument(help="A folder written by propreg run, or its run.json; without it, the page is of the study."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to, created if missing, or a page: FILE.html.")
    ] = DEFAULT,
    study: Annotated[bool, typer.Option("--study", help="The page of the study; the default without a run.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    results: Annotated[
        Path | None,
        typer.Option(help=f"For the study: a store, an export, or a folder of exports; {RULE}."),
    ] = None,
) -> None:
    """Write one self-contained HTML page: every table and figure of the paper from recorded runs, or a run of yours."""
    from propreg.store.errors import UsageError

    target = output if output.suffix.lower() in PAGES else output / PAGE
    _check_target(target)
    if source is None:
        from propreg.report.study_html import machines, page_of
        from propreg.study.figures.tsne_record import find_tsne
        from propreg.study.spec.experiment import load_experiment, study_names

        reading = read([load_experiment(name) for name in study_names()], results)
        page = page_of(reading.results, machines(reading.path), find_tsne(reading.paths))
    elif study or results is not None:
        given = "--study" if study else "--results"
        raise UsageError(f"{given} is for the study's page: leave it out, or leave out the run.")
    else:
        from propreg.report.run_html import run_page
        from propreg.running.record import read_record

        page = run_page(read_record(_record(source)))
    _write(target, page)
    typer.echo(f"Written to {target} ({len(page.encode()) / 1e6:.1f} MB): open it in a browser.")
    if open_:
        import webbrowser

        webbrowser.open(target.resolve().as_uri())


def _record(source: Path) -> Path:
    """The run.json of a folder, or the file itself."""
    from propreg.store.errors import StudyError

    file = source / "run.json" if source.is_dir() else source
    if file.suffix.lower() in PAGES:
        raise StudyError(f"{file} is a page, not a record: give the folder of the run, or the run.json in it.")
    if not file.is_file():
        raise StudyError(
            f"There is no run at {source}: give a folder written by propreg run, or recorded runs with --results."
        )
    return file


def _check_target(target: Path) -> None:
    """Raise before any work is done if the page cannot be written, or would overwrite a file that is not ours."""
    from propreg.store.errors import StudyError

    if target.is_dir():
        raise StudyError(f"{target} is a folder, not a page: choose another with -o.")
    if target.exists() and OURS not in target.read_bytes()[:4096]:
        raise StudyError(f"{target} was not written by propreg and is kept: choose another folder or page with -o.")
    if target.parent.exists() and not target.parent.is_dir():
        raise StudyError(f"{target.parent} is not a folder: choose another with -o.")


def _write(target: Path, page: str) -> None:
    from propreg.jsonio import atomic_write
    from propreg.store.errors import StudyError

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(
            f"{target.parent}: cannot be created: {error.strerror or error}; choose another with -o."
        ) from error
    with atomic_write(target) as file:
        file.write(page.encode())
