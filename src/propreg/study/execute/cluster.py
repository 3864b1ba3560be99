"""Training on a Ray cluster: the driver hands out batches, takes records back as they are finished, and alone writes.

Ray could retry a lost task by itself, but a generator that is retried goes on at the number of its last record, and
runs finish in another order the second time: some would be lost, others come twice. So nothing is retried by Ray. What
the store still lacks of a batch is sent again by key.
"""

import os
import signal
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from propreg import __version__
from propreg._lazy import MissingPackageError
from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.leases import Heartbeat, claim, release
from propreg.store.locks import Worker
from propreg.store.provenance import engine_digest
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.executors import Begun, Event, Failure, Finished, Lost, Pace, Stops, Trains

GIB = 2**30
TRIES = 3
"""How often a batch is begun: one that kills its workers must not do so for ever."""
PATIENCE, CONNECT, POLL = 300.0, 5.0, 0.2
"""Seconds: to wait for a first worker, for an address to answer, and between looks at the time limit."""

_QUIET = {
    # Some twenty lines about each lost worker or node, on standard output; the driver says it in one sentence.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class Share:
    """What a worker takes of its node.

    Args:
        gpus: GPUs, also a part of one; None for one where the cluster has any.
        memory: GiB; None for no limit. By it and ``gpus`` the worker decides how many runs fit.
        cpus: Cores.
    """

    gpus: float | None = None
    memory: float | None = None
    cpus: float = 1.0

    def resources(self) -> dict[str, float]:
        """In Ray's units."""
        found = {"CPU": self.cpus, "GPU": self.gpus or 0.0, "memory": (self.memory or 0.0) * GIB}
        return {name: amount for name, amount in found.items() if amount}

    def __str__(self) -> str:
        parts = [f"{self.cpus:g} CPU"]
        parts += [f"{self.gpus:g} GPU"] if self.gpus else []
        return ", ".join([*parts, f"{self.memory:g} GiB of memory"] if self.memory else parts)


class RayExecutor:
    """Trains batches on the workers of a Ray cluster, one each at a time; see :class:`.executors.Executor`.

    A worker that dies, with its node or alone, is replaced where there is room, and what its batch still lacks is
    trained again. Nodes that join get workers, too.

    Args:
        store: Where the leases are, and which runs are recorded.
        trainer: Makes a worker's trainer, in the worker.
        address: The cluster, as ``host:6379``; None for the one that this machine is part of, or else a new one on it.
        share: What each worker takes.
    """

    def __init__(
        self, store: Store, trainer: Callable[[], Trains], address: str | None = None, share: Share | None = None
    ) -> None:
        self._store, self._make, self._address, self._share = store, trainer, address, share or Share()
        self._me, self._pace, self._tries = Worker.me(), Pace(), Counter[str]()
        self._hands: list[_Hand] = []
        self._todo: deque[Batch] = deque()
        self._ready_at: float | None = None
        self._ray: Any = None

    def about(self) -> dict[str, Any]:
        """The driver; which node and device trained a batch is noted beside it."""
        self._connect()
        return {**_versions(), "cluster": "ray"}

    def run(self, batches: Sequence[Batch], stop: Stops) -> Generator[Event, None, None]:
        """See :class:`.executors.Executor`."""
        self._connect()
        self._todo, self._ready_at = deque(batches), None
        try:
            with Heartbeat(self._store.path, self._me):
                began = time.monotonic()
                while self._todo or any(hand.batch for hand in self._hands):
                    if stop():
                        return
                    self._hire(began)
                    for hand in self._hands:
                        yield from self._give(hand, stop)
                    yield from self._wait()
        finally:
            for hand in self._hands:
                if hand.batch is not None:
                    release(self._store, hand.batch.id, self._me)
            self._disconnect()

    def _hire(self, began: float) -> None:
        """Start workers where there is room for them, as many as can be used."""
        busy = sum(hand.batch is not None for hand in self._hands)
        room = _places(self._ray.nodes(), self._share.resources())
        if not room and self._ready_at is None:
            raise StudyError(
                f"No node of the Ray cluster has room for a worker of {self._share}: give a smaller share with --gpus "
                "or --memory, or add nodes."
            )
        if any(hand.maker for hand in self._hands):
            self._ready_at = time.monotonic()
        elif time.monotonic() - (self._ready_at or began) > PATIENCE:
            raise StudyError(
                f"The Ray cluster has had no worker of {self._share} for {PATIENCE:.0f} s: other jobs may hold its "
                "nodes; recorded runs are kept, run again later."
            )
        while len(self._hands) < min(room, busy + len(self._todo)):
            self._hands.append(_Hand.start(self._ray, self._make, self._share))

    def _wait(self) -> Iterator[Event]:
        """Wait a moment for workers, and take what they have."""
        watched = {hand.watched: hand for hand in self._hands if hand.watched is not None}
        if not watched:
            time.sleep(POLL)
            return
        for each in self._ray.wait(list(watched), timeout=POLL)[0]:
            yield from self._take(watched[each])

    def _give(self, hand: "_Hand", stop: Stops) -> Iterator[Event]:
        """Give an idle worker the next batch that can be trained."""
        while hand.maker is not None and hand.batch is None and self._todo:
            batch = self._todo.popleft()
            if self._pace.estimate(batch) > stop.left():
                yield Failure(batch, "would not end before the time limit")
            elif not claim(self._store, batch.id, self._me):
                yield Failure(batch, "another process is training it")
            else:
                hand.known = self._store.recorded(batch)
                hand.batch = batch
                yield Begun(batch, hand.known, hand.maker)
                if batch.missing(hand.known):
                    hand.begin()
                else:  # another process has trained it
                    self._end(hand)
                    yield Finished(batch, None)

    def _take(self, hand: "_Hand") -> Iterator[Event]:
        """What a worker has to hand back: that it is ready, a record, its end, or an error."""
        from ray.exceptions import RayError, RayTaskError

        batch = hand.batch
        try:
            found = hand.next(self._ray)
        except StopIteration:
            seconds, again = time.monotonic() - hand.began, bool(hand.known)
            ended = self._end(hand)
            if again or self._tries[ended.id]:  # it was a part, whose time is not the batch's
                yield Finished(ended, None)
                return
            self._pace.add(ended, seconds)
            yield Finished(ended, seconds)
        except RayTaskError as error:
            cause = error.cause
            if batch is None or isinstance(cause, StudyError) or not isinstance(cause, Exception):
                raise StudyError(f"A worker of the Ray cluster cannot train: {_first_line(cause)}") from error
            self._end(hand)
            yield Failure(batch, f"{type(cause).__name__}: {_first_line(cause)}")
        except RayError as error:
            self._hands.remove(hand)
            yield from self._lost(hand, _first_line(error))
        else:
            if isinstance(found, Record):
                yield found
            else:
                _refuse_other_versions(found)
                self._tries[""] = 0  # a worker has started: only deaths one after another end the sweep

    def _lost(self, hand: "_Hand", why: str) -> Iterator[Event]:
        """Send a batch again whose worker died, unless it may be the batch that kills them."""
        hand.kill(self._ray)
        if hand.batch is None:
            self._tries[""] += 1
            if self._tries[""] >= TRIES * max(1, len(self._hands)):
                raise StudyError(f"Workers of the Ray cluster die when they are started: {why}")
            return
        batch = self._end(hand)
        self._tries[batch.id] += 1
        if self._tries[batch.id] >= TRIES:
            yield Failure(batch, f"its worker died {TRIES} times; the last time: {why}")
            return
        self._todo.appendleft(batch)
        yield Lost(batch, f"a worker on {hand.node} was lost; its unfinished runs are trained again")

    def _end(self, hand: "_Hand") -> Batch:
        batch = hand.batch
        assert batch is not None, "only a busy worker ends a batch"
        hand.batch = hand.stream = None
        release(self._store, batch.id, self._me)
        return batch

    def _connect(self) -> Any:
        if self._ray is None:
            self._ray = connect(self._address)
            if self._share.gpus is None:
                gpus = 1.0 if any(node["Resources"].get("GPU") for node in self._ray.nodes() if node["Alive"]) else 0.0
                self._share = Share(gpus, self._share.memory, self._share.cpus)
        return self._ray

    def _disconnect(self) -> None:
        for hand in self._hands:
            hand.kill(self._ray)
        self._hands.clear()
        self._ray.shutdown()
        self._ray = None


class _Hand:
    """A worker, as the driver sees it: being started (no maker), idle (no batch), or busy."""

    def __init__(self, actor: Any) -> None:
        self.actor, self.starting = actor, actor.about.remote()
        self.maker: Mapping[str, Any] | None = None
        self.batch: Batch | None = None
        self.known: Set[str] = frozenset()
        self.stream: Any = None
        self.began = 0.0

    @classmethod
    def start(cls, ray: Any, trainer: Callable[[], Trains], share: Share) -> "_Hand":
        """Ask the cluster for a worker."""
        settings: dict[str, Any] = {"num_cpus": share.cpus, "num_gpus": share.gpus or 0.0}
        settings |= {"memory": int(share.memory * GIB)} if share.memory else {}
        remote = ray.remote(max_restarts=0, max_task_retries=0, **settings)(Crew)
        return cls(remote.remote(trainer, share))

    @property
    def watched(self) -> Any:
        """What to wait for; None while it is idle."""
        return self.starting if self.maker is None else self.stream

    @property
    def node(self) -> str:
        """The name of its node."""
        return "a node" if self.maker is None else str(self.maker["node"])

    def begin(self) -> None:
        """Train its batch."""
        self.began = time.monotonic()
        self.stream = self.actor.train.options(num_returns="streaming").remote(self.batch, frozenset(self.known))

    def next(self, ray: Any) -> Any:
        """The note of a worker that is ready, or the next record."""
        if self.maker is None:
            self.maker = ray.get(self.starting)
            return self.maker
        return ray.get(next(self.stream))

    def kill(self, ray: Any) -> None:
        """End it, if it is still there."""
        with suppress(Exception):
            ray.kill(self.actor)


class Crew:
    """What runs in a worker: it keeps its trainer, and with it torch and graphs, from batch to batch."""

    def __init__(self, trainer: Callable[[], Trains], share: Share) -> None:
        self._make, self._share = trainer, share

    def about(self) -> dict[str, Any]:
        """Who it is: node, device, versions."""
        import ray

        limit_memory(self._share)
        self._trainer = self._make()
        node = f"{socket.gethostname()} ({ray.get_runtime_context().get_node_id()[:8]})"
        return {**self._trainer.about(), **_versions(), "node": node}

    def train(self, batch: Batch, known: Set[str]) -> Iterator[Record]:
        """Train a batch. The driver ends it by ending the worker."""
        yield from self._trainer.train(batch, lambda: False, known)


def limit_memory(share: Share) -> None:
    """Have the engine count only the worker's share as free: each would take all memory for its own."""
    if not share.memory and not 0 < (share.gpus or 0.0) < 1:
        return
    from propreg.engine.training.memory import SHARE

    SHARE.memory = int(share.memory * GIB) if share.memory else None
    SHARE.gpu = min(share.gpus or 1.0, 1.0)


def connect(address: str | None) -> Any:
    """Ray, connected to a cluster.

    Raises:
        StudyError: If there is no cluster at the address, or it has other versions.
        MissingPackageError: If Ray is not installed.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError("--engine ray needs Ray: run pip install 'propreg[cluster]'.", name="ray") from error
    if address is not None:
        _look(address)
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises what it likes: ConnectionError, RuntimeError, ValueError, its own
        raise StudyError(_no_cluster(address, error)) from error
    finally:
        if main:  # Ray's own handler would exit at once
            signal.signal(signal.SIGTERM, before)
    return ray


def _look(address: str) -> None:
    """Whether anybody answers, before Ray tries for a minute."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in address:
        raise StudyError(
            f"--address must be like host:6379, as ray start --head prints it, got {address!r}: run propreg on a node "
            "of the cluster."
        )
    try:
        socket.create_connection((host, int(port)), CONNECT).close()
    except (OSError, OverflowError) as error:
        raise StudyError(_no_cluster(address, error)) from error


def _no_cluster(address: str | None, error: Exception) -> str:
    why = " ".join(str(getattr(error, "strerror", None) or error).split())[:300].rstrip(".")
    if "ersion mismatch" in why:
        return f"The Ray cluster has other versions than this process: install the same on all nodes. {why}."
    where = f" at {address}" if address else ""
    return (
        f"There is no Ray cluster{where} that this process can use ({why}): start one with ray start --head, or leave "
        "--address out to use this machine alone."
    )


def _versions() -> dict[str, str]:
    return {"propreg": __version__, "engine": engine_digest()}


def _refuse_other_versions(maker: Mapping[str, Any]) -> None:
    """Refuse workers that would train with other code than the driver's."""
    for name, mine in _versions().items():
        if maker[name] != mine:
            raise StudyError(
                f"The worker on {maker['node']} has {name} {maker[name]}, and the driver {mine}: install the same "
                "propreg on all nodes; recorded runs are kept."
            )


def _places(nodes: Sequence[Mapping[str, Any]], share: Mapping[str, float]) -> int:
    """How many workers of a share the nodes have room for.

    Example:
        >>> nodes = [{"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}, {"Alive": True, "Resources": {"CPU": 4.0}}]
        >>> _places(nodes, {"CPU": 1.0}), _places(nodes, {"CPU": 1.0, "GPU": 0.5})
        (12, 4)
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    return sum(min(int(each.get(name, 0.0) / amount + 1e-6) for name, amount in share.items()) for each in alive)


def _first_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
