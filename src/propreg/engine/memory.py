"""How much memory a replica takes, and by that how long its epoch is."""

import torch

from propreg.engine.problem import Problem
from propreg.engine.spec import Method, Model


def bytes_per_replica(problem: Problem, model: Model, method: Method) -> int:
    """An estimate of what one more replica adds to the peak: parameters with their optimiser, and activations."""
    nodes, classes = problem.num_nodes, problem.num_classes
    width = model.width
    inner = (model.layers - 2) * width * (width + 1) if model.name in ("gcn", "mlp") else 0
    parameters = problem.features.shape[1] * width + inner + width * classes * max(model.out_heads, 1)
    passes = 2 if method.second_pass else 1
    hidden = 4 + 2 * passes * (model.layers - 1)  # the shared first layer and its gradient; per pass, kept and dropped
    narrow = 12 * passes + (2 * model.steps if model.name == "appnp" else 0)
    if model.name == "gat":
        edges = problem.graph.edge_index.shape[1] + nodes
        extra = 6 * passes * edges * (model.heads + model.out_heads)
    else:
        extra = problem.features.matrix.pattern.nnz * passes if model.input_dropout > 0 else 0
    if method.name == "laplacian" and method.variant == "official":
        extra += 3 * problem.graph.edge_index.shape[1] * classes  # the one method with a value per edge and class
    numbers = 5 * parameters + nodes * (hidden * width + narrow * classes) + extra
    return int(numbers * torch.finfo(problem.dtype).bits // 8)
