"""Which devices torch sees, asked in a process of its own: CUDA is started there, and a crash stays there."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

TIMEOUT = 180.0

# A small product is really computed: a driver that is too old shows only then.
_PROBE = """
import json, torch
found = {"torch": torch.__version__, "built_for": torch.version.cuda or torch.version.hip, "devices": []}
try:
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        torch.ones(8, 8, device=f"cuda:{number}").mm(torch.ones(8, 8, device=f"cuda:{number}")).sum().item()
        found["devices"].append({"name": about.name, "memory": about.total_memory})
except Exception as error:
    found["error"] = str(error).strip().splitlines()[0]
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Gpu:
    """A device that works."""

    name: str
    memory: int


@dataclass(frozen=True)
class Devices:
    """What the probe found; ``error`` says why it, or a device, did not work."""

    built_for: str | None = None
    gpus: tuple[Gpu, ...] = ()
    error: str | None = None


def probe_devices(timeout: float = TIMEOUT) -> Devices:
    """Import torch in another process and let it compute on every GPU it sees."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Devices(error=f"the probe did not end: {error}")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        gpus = tuple(Gpu(str(gpu["name"]), int(gpu["memory"])) for gpu in found["devices"])
        return Devices(found["built_for"], gpus, found.get("error"))
    except (IndexError, KeyError, TypeError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Devices(error=last)


def cores() -> int:
    """The CPU cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def has_nvidia_driver() -> bool:
    """Whether there is an NVIDIA driver; looking starts nothing."""
    return os.path.exists("/proc/driver/nvidia/version") or shutil.which("nvidia-smi") is not None
