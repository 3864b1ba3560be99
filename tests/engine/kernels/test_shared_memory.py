"""Dense products compile for GPUs of several kinds, and need no more shared memory than these have."""

import os
from typing import Any

import pytest

from propreg.engine import kernels
from propreg.engine.kernels.linear import dense_fp16x2

# Compute capability and bytes of shared memory that a program may have there, by NVIDIA's tables.
GPUS = {"A100": (80, 166_912), "RTX 30": (86, 101_376), "RTX 40": (89, 101_376), "H200": (90, 232_448)}
POINTERS = {
    **{"x": "*fp16", "y": "*fp16", "x_largest": "*fp32", "y_largest": "*fp32", "bias": "*fp32", "out": "*fp32"},
    **{"numbers": "*i32", "keys": "*i32", "leasts": "*i16", "scale": "*fp64"},
}


@pytest.mark.skipif(not kernels.installed(), reason="Triton is not installed: there is nothing to compile")
@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("gpu", GPUS)
def test_shared_memory(gpu: str, drop: bool) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    capability, room = GPUS[gpu]
    tile = dense_fp16x2.DROPPING if drop else dense_fp16x2.tile_for(room)
    width, replicas = (128, 1) if drop else (64, 2)
    constants: dict[str, Any] = {  # in the order of the kernel's arguments
        **{"PADDED": 7680, "LENGTH": 768, "WIDTH": width, "REPLICAS": replicas, "ROWS": tile.rows, "INNER": tile.inner},
        **{"SHIFT": dense_fp16x2.SHIFT, "BIAS": not drop, "DROP": drop},
    }
    signature = {**POINTERS, "num_rows": "i32", "num_replicas": "i32", **dict.fromkeys(constants, "constexpr")}
    places = list(signature)
    source = ASTSource(
        fn=dense_fp16x2._multiply,
        signature=signature,
        constexprs={(places.index(name),): value for name, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(len(POINTERS))},
    )
    options = {"num_warps": tile.warps, "num_stages": tile.stages, "enable_fp_fusion": True}
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    assert 0 < compiled.metadata.shared <= room
