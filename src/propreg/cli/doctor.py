"""``propreg doctor``: check the installation and print the command that fixes each problem."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.shared import DEFAULT_STORE, Json

if TYPE_CHECKING:
    from propreg.doctor import Examination


def doctor(
    devices: Annotated[
        bool, typer.Option("--devices", help="Also start torch, in another process, to see which devices work.")
    ] = False,
    root: Annotated[Path | None, typer.Option(help="A folder to look for datasets first.")] = None,
    as_json: Json = False,
) -> None:
    """Check the installation and print the command that fixes each problem; exit code 1 if there is one."""
    from propreg.doctor import examine

    found = examine(DEFAULT_STORE, Path("results"), root=root, probe=devices)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=1))
    else:
        for line in _lines(found):
            typer.echo(line)
    if not found.healthy:
        raise typer.Exit(1)


def _lines(found: "Examination") -> Iterator[str]:
    from propreg import __version__
    from propreg.doctor import machine

    about = machine()
    yield f"propreg {__version__}, Python {about['python']} ({about['executable']}), {about['system']}"
    yield "\nPackages"
    for p in found.packages:
        version = p.version or ("–" if p.fine else "missing")
        mark = "" if p.fine else f"  ← at least {p.least}" if p.least else "  ← needed"
        yield f"  {p.name:<16} {version:<12} {p.purpose}{mark}"
    yield "\nDevices"
    cores = about["cores"]
    yield f"  {cores} CPU core{'s' if cores > 1 else ''}"
    if found.devices is None:
        yield "  GPUs are not checked: use propreg doctor --devices"
    else:
        for gpu in found.devices.gpus:
            yield f"  {gpu.name}, {gpu.memory / 2**30:.0f} GiB"
        if not found.devices.gpus:
            yield f"  no GPU that torch can use (built for {found.devices.built_for or 'CPUs only'})"
    yield "\nData"
    for d in found.data:
        splits = ", but not its official splits" if d.where and d.splits is False else ""
        yield f"  {d.name:<16} {d.where or 'not on disk'}{splits}"
    yield "\nFolders"
    for f in found.folders:
        yield f"  {f.what:<16} {f.path}{'' if f.exists else ' (does not exist yet)'}"
    yield ""
    for remark in found.remarks:
        yield f"{'Problem' if remark.problem else 'Hint'}: {remark.what}\n  {remark.fix}"
    if found.healthy:
        yield "Everything that propreg needs is installed."
