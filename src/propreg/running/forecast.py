"""``propreg run --plan``: what a run would take, without training anything."""

from collections.abc import Sequence

import numpy as np

from propreg.console import duration
from propreg.devices import cores
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Sizes
from propreg.engine.training.batches import CPU_CACHE, CPU_GROUP
from propreg.engine.training.cost import Device, estimate
from propreg.engine.training.memory import available_bytes
from propreg.fitting.batching import SIZE, sizes_of
from propreg.running.plan import Plan
from propreg.scale.cost import estimate_batches
from propreg.scale.trainer import NEIGHBORS

GIB = 2**30


def forecast(plans: Sequence[Plan]) -> list[str]:
    """The lines that people read: for each model the memory, and the time where its cost is known."""
    return [line for plan in plans for line in _lines(plan)]


def _lines(plan: Plan) -> list[str]:
    graph, model, gpu = plan.source.graph, plan.spec, plan.device.startswith("cuda")
    sizes = sizes_of(graph, kernels=gpu)
    method = REGULARIZERS[plan.method].preset(plan.preset)
    device: Device = "h200" if gpu else "cpu"
    cost = estimate(sizes, model, method, device)
    workers = 1 if gpu else cores()
    group = plan.runs if gpu else max(1, min(CPU_GROUP, CPU_CACHE // (4 * sizes.nodes * model.width)))
    at_once = min(plan.runs, workers * group)
    free = None if gpu else available_bytes()
    memory = cost.memory(at_once)
    there = "" if free is None else f"; {_size(free)} are free{': too little' if free < memory else ''}"
    what = (
        f"{model.architecture.title} on {plan.source.name}: {sizes.nodes:,} nodes, {sizes.edges:,} edges, "
        f"{plan.runs:,} runs of at most {plan.max_epochs:,} epochs"
    )
    if isinstance(plan.batch, int):
        unknown = "  memory  and time of mini-batches on a GPU are not known beforehand"
        return [f"{what}.", unknown if gpu else _in_batches(plan, sizes)]
    found = [
        f"{what}, {at_once:,} at once.",
        f"  memory  {_size(memory)} beyond the graph: {_size(cost.graph)} for its tables and {_size(cost.run)} for "
        f"each run{there}",
    ]
    each = cost.epoch(plan.runs if gpu else 1)
    if each is None:
        return [*found, "  time    not known beforehand for this model"]
    where = f"on an H200, all {plan.runs:,} together" if gpu else f"of a run on one core of {workers}"
    longest = each * plan.max_epochs * (1 if gpu else plan.runs / min(workers, plan.runs))
    found.append(f"  time    {_seconds(each)} for an epoch {where}; {duration(longest)} if no run stops early")
    short = plan.batch == "auto" and free is not None and free < memory
    return [*found, _in_batches(plan, sizes)] if short else found


def _in_batches(plan: Plan, sizes: Sizes) -> str:
    """What mini-batches take, where fit trains in them."""
    size, graph = SIZE if isinstance(plan.batch, str) else plan.batch, plan.source.graph
    kept = np.bincount(graph.edge_index[1], minlength=graph.num_nodes).clip(max=NEIGHBORS).mean()
    train = max(int(split.train.sum()) for split in plan.source.splits.values())
    method = REGULARIZERS[plan.method].preset(plan.preset)
    cost = estimate_batches(sizes, plan.spec, method, size, train, float(kept))
    seconds = cost.epoch()
    time = (
        "a time not known beforehand" if seconds is None else f"{_seconds(seconds)} for an epoch of a run on one core"
    )
    return f"  batches of {size:,} training nodes: {cost.nodes:,.0f} nodes, {cost.edges:,.0f} edges each; {time}"


def _size(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / 2**20:.0f} MiB"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 1 else f"{1e3 * seconds:.2g} ms"
