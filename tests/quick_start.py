"""Processes that start at once: they are forked from one that has imported torch and PyG already."""

import multiprocessing
import os
import runpy
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

IMPORTED = [
    "propreg.study.execute.trainer",
    "propreg.study.execute.runner",
    "propreg.fitting.fit",
    "torch_geometric.nn",
    "torch_geometric.loader",
    "study.sweeping",
    "quick_start",
]


def begin(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Call a function in another process, which knows nothing of what happened in this one."""
    quick = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if quick else "spawn")
    context.set_forkserver_preload(IMPORTED)
    process: BaseProcess = context.Process(target=target, args=arguments, daemon=True)  # type: ignore[attr-defined]
    process.start()
    return process


@dataclass(frozen=True)
class Ended:
    """How a script ended, and what it said."""

    code: int | None
    stdout: str
    stderr: str


def run_script(path: Path, folder: Path, seconds: float) -> Ended:
    """Run a Python file from its own folder as ``python file`` does; a warning of propreg's is an error.

    Args:
        path: The file.
        folder: An empty one, for what it prints.
        seconds: It is ended after so long.
    """
    out, err = folder / "stdout", folder / "stderr"
    process = begin(_script, path, out, err)
    process.join(seconds)
    process.kill()
    process.join()
    return Ended(process.exitcode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


def _script(path: Path, out: Path, err: Path) -> None:
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(path.parent)
    sys.argv, sys.path[0] = [path.name], str(path.parent)
    warnings.filterwarnings("error", category=UserWarning, module="propreg")
    runpy.run_path(path.name, run_name="__main__")
