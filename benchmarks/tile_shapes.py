"""The fastest tile for each sparse product of an epoch: the numbers behind ``spmm.product.tile_for``.

Prints, for each product, the time of the tile in use and of the fastest others, in µs per replica.
"""

from functools import partial

import torch
from torch import Tensor

from common import Record, arguments, show
from kernels import SIZES, WIDTH, Size, graph, numbers, recorded, words
from propreg.engine import kernels
from propreg.engine.kernels.spmm.product import Tile, multiply, tile_for
from propreg.engine.kernels.spmm.segments import segments
from propreg.engine.ops.sparse import Matrix

# (segments, entries, columns, warps, replicas)
WIDE = [
    *(Tile(s, e, 64, 1) for s, e in ((2, 4), (2, 8), (4, 4))),
    *(Tile(s, e, 64, 1, 2) for s, e in ((1, 4), (2, 4))),
    *(Tile(s, e, 64, 1, 4) for s, e in ((1, 4), (2, 2), (2, 4))),
    *(Tile(s, e, 32, 1, 4) for s, e in ((1, 4), (1, 8), (2, 4))),
    *(Tile(s, e, 32, 1, 8) for s, e in ((1, 4), (2, 4))),
    Tile(4, 4, 32, 1),
    Tile(4, 4, 64, 2),
    Tile(8, 4, 64, 4),
]
NARROW = [
    *(Tile(s, e, 8, 1) for s, e in ((4, 4), (8, 4), (4, 8), (8, 8), (16, 4))),
    *(Tile(s, e, 8, 1, 4) for s, e in ((1, 8), (2, 4))),
    *(Tile(s, e, 8, 1, 8) for s, e in ((1, 4), (1, 8))),
    Tile(16, 4, 8, 4),
]


def sweep(size: Size, name: str, matrix: Matrix, width: int, transposed: bool, best: int) -> list[Record]:
    """The tile in use and the fastest others."""
    x = numbers(size.replicas, matrix.pattern.shape[0 if transposed else 1], width, dtype=torch.float32)
    values = matrix.column_values if transposed else matrix.values
    used = tile_for(segments(matrix.pattern, transposed), width)

    def product(tile: Tile) -> tuple[Tensor]:
        return (multiply(matrix.pattern, values, x, transposed, tile=tile),)

    tried = dict.fromkeys((used, *(WIDE if width == WIDTH else NARROW)))
    times = {tile: recorded(partial(product, tile), repeats=5) for tile in tried}
    label = f"{size.name} R={size.replicas} {name}"
    fastest = sorted(times, key=lambda tile: times[tile])[:best]
    return [
        Record(
            label, "cuda", f"{'in use ' if tile == used else ''}{tuple(tile)}", time, "µs a replica", "in use", ratio
        )
        for tile in dict.fromkeys((used, *fastest))
        for time, ratio in [(1e6 * times[tile] / size.replicas, times[used] / times[tile])]
    ]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    if options.device != "cuda" or not kernels.installed():
        raise SystemExit("kernels run on a GPU with Triton: there is nothing to measure here.")
    records = []
    for size in SIZES[1:2] if options.quick else SIZES[1:]:
        x, a = words(size, torch.float32), graph(size, torch.float32)
        for name, matrix, width, transposed in (
            ("X W", x, WIDTH, False),
            ("Xᵀ dH", x, WIDTH, True),
            ("Â H", a, WIDTH, False),
            ("Â Z", a, size.classes, False),
        ):
            records += sweep(size, name, matrix, width, transposed, best=4)
    show(records, options.device, options.json, options.save)


if __name__ == "__main__":
    main()
