"""How many runs of a user's module train at a time: as many as memory takes, by measuring one pass.

On a GPU they are one program; on a CPU each has a process, with torch's random numbers for itself.
"""

from collections.abc import Sequence

import torch

from propreg.devices import cores
from propreg.engine import Method, Problem, Protocol, Replica
from propreg.engine.models.network import NoDropout
from propreg.engine.models.user_module import OwnNetwork
from propreg.engine.spec import Sizes
from propreg.engine.training.memory import available_bytes, peak_bytes
from propreg.engine.training.processes import can_fork

LEAST = 1000  # epochs, of the smallest module about 2 seconds; a fork takes 50 ms


def processes_for(replicas: Sequence[Replica], protocol: Protocol) -> int:
    """The number of processes to train runs of a user's module in; 1 is the caller's, with all threads of torch.

    It does not depend on how long anything took: with one thread a sum may have other bits than with several, and a fit
    that goes on has to give those of an undisturbed one.
    """
    if sum(min(replica.patience, protocol.max_epochs) for replica in replicas) < LEAST or not can_fork():
        return 1
    free, peak = available_bytes(), peak_bytes()  # the peak is after a training pass
    fitting = 1 if free is None or peak is None else free // peak
    return max(1, min(cores(), torch.get_num_threads(), len(replicas), fitting))


def replicas_together(network: OwnNetwork, problem: Problem, method: Method, wanted: int) -> int:
    """The number of runs of a user's module that train at a time: as many as the GPU's memory takes, else one."""
    if not network.together or problem.device.type != "cuda":
        return 1
    try:
        activations = _bytes_of_two(network) / 2
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return 1
    free, _ = torch.cuda.mem_get_info(problem.device)
    reusable = torch.cuda.memory_reserved(problem.device) - torch.cuda.memory_allocated(problem.device)
    passes = method.regularizer.passes(method)
    per = passes * activations + _bytes_beside(network, problem, method)
    return max(1, min(wanted, int(0.7 * (free + reusable) / per)))


def _bytes_of_two(network: OwnNetwork) -> int:
    """The peak of a pass and its gradients, measured: nothing else shows what a user's module allocates.

    Of two replicas, since a batch of one is not always computed as a batch.
    """
    device = network.device
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    p = network.stacked([Replica(0), Replica(1)])
    with torch.enable_grad():
        z = network.finish(p, None, NoDropout(training=True))
        trained = [t for t in p.values() if t.requires_grad]
        torch.autograd.grad(z.square().sum(), trained, allow_unused=True)
    return torch.cuda.max_memory_allocated(device) - before


def _bytes_beside(network: OwnNetwork, problem: Problem, method: Method) -> int:
    """Memory outside the measured pass: Adam's moments, the best weights, a copy; and the losses' tensors."""
    parameters = sum(p.numel() * p.element_size() for p in network.base.parameters())
    sizes = Sizes(problem.num_nodes, problem.graph.edge_index.shape[1], 0, problem.num_classes)
    logits = 12 * problem.num_nodes * problem.num_classes
    return 5 * parameters + 4 * (logits + method.regularizer.memory(method, sizes))
