"""Devices by the name that a user gives, and the processor as far as results depend on it."""

import re
from pathlib import Path

from propreg.study.errors import StudyError, UsageError

_CPUINFO = Path("/proc/cpuinfo")


def check_device(name: str) -> None:
    """Refuse a device that is not known or not here. Only a GPU that is named has to be looked for, with torch.

    Raises:
        UsageError: If no device has such a name.
        StudyError: If it is not here.

    Example:
        >>> check_device("auto")
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise UsageError(f"--device must be auto, cpu or cuda, but {name!r} came.")
    if name in ("auto", "cpu"):
        return
    import torch

    number, there = int(name.partition(":")[2] or 0), torch.cuda.device_count()
    if number >= there:
        what = "no CUDA device" if not there else f"no {name}, only cuda:0" + f" to cuda:{there - 1}" * (there > 1)
        raise StudyError(f"There is {what} here: leave --device out, or pass --device cpu.")


def processor(cpuinfo: Path = _CPUINFO) -> str:
    """The processor's name, with the numbers that tell those of one name apart; empty where the system does not say."""
    try:
        first = cpuinfo.read_text(errors="replace").partition("\n\n")[0]
    except OSError:
        return ""
    pairs = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs}
    numbers = (f"{name} {found[name]}" for name in ("cpu family", "model", "stepping") if name in found)
    return ", ".join((found["model name"], *numbers)) if "model name" in found else ""
