"""The engine's kernels on a GPU: each checked against float64, then timed against plain torch and the memory's limit.

The matrices are synthetic and of the size of Cora, Photo and Physics: degrees and word counts fall as power laws. The
limit is the time to read every input once and to write every output once at 4.3 TB/s, what a copy reaches on an H200;
a gather through the L2 cache cannot reach it, so its rate is printed too.
"""

import gc
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from common import Record, arguments, seconds, show
from propreg.engine import kernels
from propreg.engine.models import gat
from propreg.engine.ops.dropout import Masks, dropped_linear
from propreg.engine.ops.features import DENSE_FROM, Features
from propreg.engine.ops.loss import preg
from propreg.engine.ops.sparse import Matrix
from regularizer import power_law

BANDWIDTH = 4.3e12
WIDTH, HEADS, PER_HEAD = 64, 8, 16
ALLOWED = 2e-5  # of float32 against float64, relative

Work = Callable[[], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Size:
    """A dataset in numbers; ``edges`` counts both directions, ``words`` the non-zero features."""

    name: str
    nodes: int
    edges: int
    features: int
    words: int
    classes: int
    replicas: int


SIZES = [
    Size("Cora", 2708, 10556, 1433, 49_216, 7, 64),
    Size("Cora", 2708, 10556, 1433, 49_216, 7, 256),
    Size("Photo", 7650, 238_162, 745, 1_979_909, 8, 64),
    Size("Physics", 34_493, 495_924, 8415, 1_137_311, 5, 64),
]


@dataclass(frozen=True)
class Case:
    """An operation as a function of dtype and number of replicas, with its least traffic and the bytes it gathers."""

    name: str
    make: Callable[[torch.dtype, int], Work]
    moved: float
    gathered: float = 0.0
    repeats: int = 3  # of the plain version, which can be slow


def distinct(row: Tensor, col: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """The distinct places."""
    key = torch.unique(row * columns + col)
    return key // columns, key % columns


def graph(size: Size, dtype: torch.dtype) -> Matrix:
    """A symmetric power-law graph with loops, normalized by rows."""
    ends = power_law(size.nodes, size.edges // 2, "cuda")
    loops = torch.arange(size.nodes, device="cuda")
    row, col = distinct(torch.cat([ends[0], loops]), torch.cat([ends[1], loops]), size.nodes)
    degree = torch.bincount(row, minlength=size.nodes)
    return Matrix(row, col, (1.0 / degree[row]).to(dtype), (size.nodes, size.nodes))


def words(size: Size, dtype: torch.dtype) -> Matrix:
    """Bags of words: lengths vary a little, words a lot."""
    generator = torch.Generator("cuda").manual_seed(1)
    wanted = int(1.1 * size.words)
    row = torch.randint(size.nodes, (wanted,), device="cuda", generator=generator)
    col = (torch.rand(wanted, device="cuda", generator=generator) ** 2 * size.features).long()
    row, col = distinct(row, col, size.features)
    values = torch.rand(len(row), device="cuda", generator=generator, dtype=torch.float64)
    return Matrix(row, col, values.to(dtype), (size.nodes, size.features))


def numbers(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Normal float32 numbers in another dtype; those of replica r do not depend on the number of replicas."""
    generator = torch.Generator("cuda").manual_seed(seed)
    drawn = torch.randn(shape[1:], device="cuda", generator=generator)
    scale = torch.linspace(1, 2, 16, device="cuda").repeat(-(-shape[0] // 16))[: shape[0]]
    return (drawn * scale.view(-1, *([1] * (len(shape) - 1)))).to(dtype)


def masks(replicas: int, rate: float) -> Masks:
    """A mask per replica."""
    keys = torch.arange(2 * replicas, device="cuda", dtype=torch.int32).view(-1, 2) * 747_796_405 + 1
    return Masks(keys, torch.full((replicas,), rate, device="cuda"))


def product(matrices: dict[torch.dtype, Matrix], width: int, transposed: bool, dtype: torch.dtype, r: int) -> Work:
    """One sparse product."""
    matrix = matrices[dtype]
    x = numbers(r, matrix.pattern.shape[0 if transposed else 1], width, dtype=dtype)
    return lambda: (matrix.multiply(x, transposed),)


def dense(
    known: dict[torch.dtype, Matrix], width: int, rate: float, backward: bool, dtype: torch.dtype, r: int
) -> Work:
    """Features with many non-zeros times the first weights, dropped or not, and the gradient to these."""
    features, drawn = Features(known[dtype]), masks(r, rate) if rate else None
    w = numbers(r, features.shape[1], width, dtype=dtype).requires_grad_()
    grad = numbers(r, features.shape[0], width, dtype=dtype, seed=2)
    return lambda: with_gradients(features(w, drawn), (w,), grad if backward else None)


def linear(size: Size, backward: bool, dtype: torch.dtype, r: int) -> Work:
    """Dropout and the map to the classes."""
    h = numbers(r, size.nodes, WIDTH, dtype=dtype).relu_().requires_grad_()
    w = numbers(r, WIDTH, size.classes, dtype=dtype, seed=1).requires_grad_()
    grad, drawn = numbers(r, size.nodes, size.classes, dtype=dtype, seed=2), masks(r, 0.5)
    return lambda: with_gradients(dropped_linear(h, w, drawn), (h, w), grad if backward else None)


def adam(size: Size, dtype: torch.dtype, r: int) -> Work:
    """One step of Adam on the first layer's weights, in place: its own state goes on from step to step."""
    from propreg.engine.ops.adam import Adam

    p = {"w": numbers(r, size.features, WIDTH, dtype=dtype)}
    setting = torch.full((r,), 0.01, device="cuda", dtype=dtype)
    optimizer, grad = Adam(p, setting, {"w": setting}), {"w": numbers(r, size.features, WIDTH, dtype=dtype, seed=1)}
    optimizer.advance()

    def step() -> tuple[Tensor, ...]:
        optimizer.step(p, grad)
        return (p["w"],)

    return step


def term(size: Size, matrices: dict[torch.dtype, Matrix], dtype: torch.dtype, r: int) -> Work:
    """P-reg, forward and backward."""
    z = numbers(r, size.nodes, size.classes, dtype=dtype).requires_grad_()
    weights = torch.full((size.nodes,), 1 / size.nodes, device="cuda", dtype=dtype)
    ones = torch.ones(r, device="cuda", dtype=dtype)
    return lambda: with_gradients(preg(matrices[dtype], z, z, weights), (z,), ones)


def attention(size: Size, matrices: dict[torch.dtype, Matrix], backward: bool, dtype: torch.dtype, r: int) -> Work:
    """GAT's first attention with dropout."""
    h = numbers(r, size.nodes, HEADS * PER_HEAD, dtype=dtype).requires_grad_()
    vectors = [(0.3 * numbers(r, HEADS, PER_HEAD, dtype=dtype, seed=i)).requires_grad_() for i in (1, 2)]
    grad, drawn = numbers(r, size.nodes, HEADS, PER_HEAD, dtype=dtype, seed=3), masks(r, 0.6)
    pattern = matrices[dtype].pattern
    return lambda: with_gradients(
        gat.attention(pattern, h, vectors[0], vectors[1], drawn), (h, *vectors), grad if backward else None
    )


def with_gradients(value: Tensor, inputs: tuple[Tensor, ...], grad: Tensor | None) -> tuple[Tensor, ...]:
    """A value, and the gradients to its inputs where a gradient comes."""
    return (value.detach(), *([] if grad is None else torch.autograd.grad(value, inputs, grad)))


def cases(size: Size) -> Iterator[Case]:
    """The operations of an epoch."""
    a = {dtype: graph(size, dtype) for dtype in (torch.float32, torch.float64)}
    x = {dtype: words(size, dtype) for dtype in (torch.float32, torch.float64)}
    r, n, c, f = size.replicas, size.nodes, size.classes, size.features
    e, nnz = a[torch.float32].pattern.nnz, x[torch.float32].pattern.nnz
    cell = 4.0 * r
    wide, heads = cell * WIDTH, cell * HEADS * PER_HEAD
    yield Case("X W", partial(product, x, WIDTH, False), wide * (n + f) + 8 * nnz, wide * nnz)
    yield Case("Xᵀ dH", partial(product, x, WIDTH, True), wide * (n + f) + 8 * nnz, wide * nnz)
    if nnz > DENSE_FROM * n * f:
        moved = wide * (n + f) + 4 * n * f
        yield Case("dense X W", partial(dense, x, WIDTH, 0.0, False), moved)
        yield Case("dense X W with backward", partial(dense, x, WIDTH, 0.0, True), 2 * moved)
        moved = heads * (n + f) + 4 * n * f
        dropped = partial(dense, x, HEADS * PER_HEAD, 0.6, True)
        yield Case("dropped dense X W with backward", dropped, 2 * moved, repeats=1)
    yield Case("Â H", partial(product, a, WIDTH, False), wide * 2 * n + 8 * e, wide * e)
    yield Case("Â Z", partial(product, a, c, False), cell * c * 2 * n + 8 * e, cell * c * e)
    yield Case("dropped linear", partial(linear, size, False), wide * n + cell * c * (n + WIDTH))
    yield Case("dropped linear with backward", partial(linear, size, True), 3 * wide * n + cell * c * 2 * (n + WIDTH))
    yield Case("Adam", partial(adam, size), 7 * wide * f)
    yield Case("P-reg with backward", partial(term, size, a), cell * c * 6 * n + 16 * e, cell * c * 2 * e)
    yield Case("attention", partial(attention, size, a, False), 2 * heads * n + 4 * e, heads * e, repeats=1)
    both = partial(attention, size, a, True)
    yield Case("attention with backward", both, 7 * heads * n + 8 * e, 2 * heads * e, repeats=1)


def error(case: Case) -> float:
    """The largest relative error of two replicas, ‖ours − float64‖ / ‖float64‖; NaN counts as infinite."""
    ours = case.make(torch.float32, 2)()
    with kernels.switched_off():
        reference = case.make(torch.float64, 2)()
    errors = [float((o.double() - t).norm() / t.norm()) for o, t in zip(ours, reference, strict=True)]
    return max(float("inf") if math.isnan(e) else e for e in errors)


def recorded(work: Work, repeats: int = 9) -> float:
    """The median time of a replayed CUDA graph, in which launches cost nothing: as the engine runs it."""
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):  # kernels compile and tables are built outside of the recording
        for _ in range(2):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1e-3 * begin.elapsed_time(end))
    return float(statistics.median(times))


def measure(size: Size, case: Case, against_plain: bool) -> list[Record]:
    """The time and its distance from the limit; a wrong kernel is not timed."""
    wrong = error(case)
    if not wrong < ALLOWED:
        raise SystemExit(f"{size.name}, {case.name}: the relative error is {wrong:.1e}, and nothing is timed.")
    work = case.make(torch.float32, size.replicas)
    ours = recorded(work)
    label, unit = f"{size.name} R={size.replicas} {case.name}", "µs a replica"
    ratio = None
    if against_plain:
        with kernels.switched_off():
            ratio = seconds(work, "cuda", repeats=case.repeats) / ours
    over = ours / (case.moved / BANDWIDTH)
    rate = f", gathering {case.gathered / ours / 1e12:.1f} TB/s" if case.gathered else ""
    return [
        Record(label, "cuda", f"time (error {wrong:.0e})", 1e6 * ours / size.replicas, unit, "plain torch", ratio),
        Record(label, "cuda", f"time over the limit{rate}", over, "×", "4.3 TB/s"),
    ]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    if options.device != "cuda" or not kernels.installed():
        raise SystemExit("kernels run on a GPU with Triton: there is nothing to measure here.")
    records = []
    for size in SIZES:
        for case in cases(size):
            records += measure(size, case, against_plain=not options.quick and size.replicas == 64)
        gc.collect()
        torch.cuda.empty_cache()
    show(records, options.device, options.json, options.save)


if __name__ == "__main__":
    main()
