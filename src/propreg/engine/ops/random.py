"""Random numbers from a run's identity: the same alone, in a batch, after compaction, on any worker.

A stream is identified by (dataset digest, split, seed, architecture, stream name) and by nothing else, so that runs
that differ in method or strength share initial weights and dropout masks.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from propreg.engine.spec import Model, Replica

if TYPE_CHECKING:
    from propreg.engine.models.network import Start


def stream_key(digest: str, replica: Replica, model: Model, name: str) -> int:
    """A 64-bit key of one stream of one run."""
    identity = [digest, replica.split, replica.seed, model.identity(), name]
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=int)  # NumPy's whole numbers
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def generator(key: int) -> np.random.Generator:
    """NumPy's counter-based Philox generator: its output is fixed across platforms and versions."""
    return np.random.Generator(np.random.Philox(key=key))


def glorot(key: int, fan_in: int, fan_out: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Glorot-uniform weights."""
    bound = (6.0 / (fan_in + fan_out)) ** 0.5
    return generator(key).uniform(-bound, bound, shape)


def around(key: int, start: "Start", shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Weights around a center, uniform or normal."""
    drawn = generator(key)
    if start.kind == "normal":
        return drawn.normal(start.center, start.spread, shape)
    return drawn.uniform(start.center - start.spread, start.center + start.spread, shape)


def mask_keys(streams: NDArray[np.uint64], epoch: int, site: int) -> NDArray[np.int32]:
    """The two 32-bit keys of a dropout mask per replica: an odd multiplier and an offset. int32 [R, 2]."""
    with np.errstate(over="ignore"):
        mixed = _splitmix(streams ^ _splitmix(np.uint64(epoch) << np.uint64(32) | np.uint64(site)))
    words: NDArray[Any] = np.stack([mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32)], axis=-1).astype(np.uint32)
    words[:, 0] |= np.uint32(1)
    return words.view(np.int32)


def _splitmix(x: Any) -> Any:
    """Steele, Lea and Flood's 64-bit finalizer: every input bit reaches every output bit."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
