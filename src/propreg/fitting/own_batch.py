"""How many replicas of a model of the user's own are trained at a time."""

import torch

from propreg.engine.problem import Problem
from propreg.engine.spec import Method, Replica
from propreg.fitting.own_model import OwnNetwork


def replicas_together(network: OwnNetwork, problem: Problem, method: Method, wanted: int) -> int:
    """One where they do not train as one program, else as many as the GPU's memory takes."""
    if not network.together or problem.device.type != "cuda":
        return 1
    try:
        activations = _bytes_of_two(network) / 2
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return 1
    free, _ = torch.cuda.mem_get_info(problem.device)
    reusable = torch.cuda.memory_reserved(problem.device) - torch.cuda.memory_allocated(problem.device)
    passes = 2 if method.second_pass else 1
    per = passes * activations + _bytes_beside(network, problem, method)
    return max(1, min(wanted, int(0.7 * (free + reusable) / per)))


def _bytes_of_two(network: OwnNetwork) -> int:
    """The peak of a pass and its gradients, measured: nothing else tells what a module of somebody else's keeps.

    Of two replicas, since a batch of one is not always computed as a batch.
    """
    device = network.device
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    p = network.initial([Replica(0), Replica(1)])
    with torch.enable_grad():
        z = network.finish(p, None, lambda _: None)
        trained = [t for t in p.values() if t.requires_grad]
        torch.autograd.grad(z.square().sum(), trained, allow_unused=True)
    return torch.cuda.max_memory_allocated(device) - before


def _bytes_beside(network: OwnNetwork, problem: Problem, method: Method) -> int:
    """What the measured pass does not have: Adam's moments, the best weights, a copy; and the losses' tensors."""
    parameters = sum(p.numel() * p.element_size() for p in network.base.parameters())
    edges = problem.graph.edge_index.shape[1] if method.name == "laplacian" and method.variant == "official" else 0
    return 5 * parameters + 4 * problem.num_classes * (12 * problem.num_nodes + 3 * edges)
