"""Devices by the names that users give, CPU cores, and the processor as far as results depend on it."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_CPUINFO = Path("/proc/cpuinfo")


_NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "std::bad_alloc",
    # Of CUDA, where the allocation is not by torch's allocator.
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "insufficient resources",
)


class DeviceError(ValueError):
    """A device that cannot be used here."""


class DeviceNameError(DeviceError):
    """A name that is no device's: the command line is wrong, not the machine."""


def check_device_name(name: object, label: str = "--device", *, auto: bool = True) -> None:
    """Refuse a name that no device has, without importing torch.

    Raises:
        DeviceNameError: If it is none of ``auto``, ``cpu``, ``cuda`` and ``cuda:0``, ``cuda:1``, ….

    Example:
        >>> check_device_name("cuda:x")
        Traceback (most recent call last):
        ...
        propreg.devices.DeviceNameError: --device must be auto, cpu, cuda or one GPU like cuda:0, got 'cuda:x'.
    """
    if not (auto and name == "auto") and not re.fullmatch(r"cpu|cuda(:\d+)?", str(name)):
        known = "auto, cpu" if auto else "cpu"
        shown = name if isinstance(name, str) or name is None else str(name)
        raise DeviceNameError(f"{label} must be {known}, cuda or one GPU like cuda:0, got {shown!r}.")


def check_device(name: str) -> None:
    """Refuse a device that is not known or not here. Only a GPU that is named imports torch.

    Raises:
        DeviceNameError: If no device has such a name.
        DeviceError: If torch does not see it.
    """
    check_device_name(name)
    if name not in ("auto", "cpu"):
        find_device(name, "--device")


def find_device(name: "str | torch.device", label: str = "device", *, auto: bool = True) -> "torch.device":
    """The device, refused here if torch does not see it, not in the middle of a training.

    Raises:
        DeviceNameError: If no device has such a name.
        DeviceError: If torch does not see it.

    Example:
        >>> find_device("cpu:0")
        device(type='cpu')
    """
    import torch

    text = "cpu" if str(name) == "cpu:0" else str(name)
    check_device_name(text if text == "cpu" else name, label, auto=auto)
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if text == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise DeviceError(
            f"{label} is {text!r}, but torch sees no CUDA device: use 'cpu', or run propreg doctor --devices to see "
            "why."
        )
    if int(text.partition(":")[2] or 0) >= count:
        raise DeviceError(f"{label} is {text!r}, but torch sees {count}: the last one is 'cuda:{count - 1}'.")
    return torch.device(text)


def device_title(device: str) -> str:
    """The device in words.

    Example:
        >>> device_title("cpu").partition(" ")[2] in ("CPU core", "CPU cores")
        True
    """
    if not device.startswith("cuda"):
        return f"{cores()} CPU core{'s' if cores() > 1 else ''}"
    import torch

    return torch.cuda.get_device_name(device)


def cores() -> int:
    """The number of CPU cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def processor(cpuinfo: Path = _CPUINFO) -> str:
    """The processor's name, with the numbers that distinguish processors of one name; empty if the OS has none."""
    try:
        first = cpuinfo.read_text(errors="replace").partition("\n\n")[0]
    except OSError:
        return ""
    pairs = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs}
    numbers = (f"{name} {found[name]}" for name in ("cpu family", "model", "stepping") if name in found)
    return ", ".join((found["model name"], *numbers)) if "model name" in found else ""


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch has its own error type for one allocator only, others are known by their message.

    Example:
        >>> out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."))
        True
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
