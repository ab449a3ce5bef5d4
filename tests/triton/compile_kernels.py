"""Compiles the kernels for GPUs that need not be there; reports registers, spills, atomic and double precision operations as JSON.

    TRITON_INTERPRET=0 python tests/triton/compile_kernels.py [sm_80,float32,8x8 …]

The operators run on a small graph on the CPU, but instead of being launched, every kernel is compiled for the arguments that it
would have got: what is compiled is what a GPU would run.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from graphgym_lcat.kernels import Graph
from graphgym_lcat.kernels.backend import Dropout, EdgeTerm, GATScore, GATv2Score
from graphgym_lcat.kernels.triton import attention, backend, sums

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
TYPES = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.int32: "*i32",
    torch.int64: "*i64",
}
DTYPES = ("float32", "bfloat16", "float16")
#: What people use: heads × channels of the hidden and output layers of GAT on Cora and PPI, of OGB's examples, and wide ones.
SHAPES = ((8, 8), (4, 256), (1, 7), (8, 16), (1, 128), (3, 250))
CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
NODES, EDGE_DIM = 6, 4


def record_launches(dtype, heads, channels):
    """The kernels that forward and backward passes of all operators launch, with their arguments."""
    launches = []

    def record(kernel, grid, tensor, *arguments, **options):
        launches.append((kernel, arguments, options))

    sums.launch = attention.launch = record
    hub = torch.stack([torch.arange(1200) % NODES, torch.zeros(1200, dtype=torch.long)])
    graph = Graph.from_edge_index(torch.cat([hub, hub.flip(0)], dim=1), NODES)

    def random(*shape):
        return torch.randn(shape).to(dtype).requires_grad_()

    wide, numbers = random(NODES, heads, channels), random(NODES, heads)
    dropout = Dropout(0.5, torch.tensor([1]))
    features, loops = torch.randn(2400, EDGE_DIM).to(dtype), torch.randn(NODES, EDGE_DIM).to(dtype)
    att = random(heads, channels)
    gat = (
        GATScore(numbers, numbers, 0.2),
        GATScore(numbers, numbers, 0.2, EdgeTerm(features, loops, random(heads, EDGE_DIM))),
    )
    gatv2 = (
        GATv2Score(wide, wide, att, 0.2),
        GATv2Score(wide, wide, att, 0.2, EdgeTerm(features, loops, random(heads, channels, EDGE_DIM))),
    )
    flat = wide.flatten(1)
    results = [backend.neighbor_mean(graph, flat), backend.convolve(graph, flat, flat, random(1))]
    for plain, extended in (gat, gatv2):
        results += [backend.attend(graph, plain, wide), backend.attend(graph, extended, wide, dropout)]
    for result in results:
        result.sum().backward()
    for score in (gat[0], gatv2[0]):
        backend.coefficients(graph, score).edges.sum().backward()
    return launches


def source(kernel, arguments, options):
    """What Triton compiles for a call, as its launcher would derive it."""
    names = kernel.arg_names
    signature, constants, attributes = {}, {}, {}
    for place, name in enumerate(names):
        value = arguments[place] if place < len(arguments) else options[name]
        if isinstance(value, torch.Tensor):
            signature[name] = TYPES[value.dtype]
            attributes[(place,)] = [["tt.divisibility", 16]]
        elif value is None or name in options:
            signature[name], constants[name] = "constexpr", value
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i32"
    return ASTSource(kernel, signature, constants, attributes)


def resources(target, compiled, folder):
    """Registers and bytes of spilled ones."""
    if target.startswith("gfx"):
        text = compiled.asm["amdgcn"]
        read = {
            name: int(re.search(rf"\.{name}:\s+(\d+)", text)[1])
            for name in ("vgpr_count", "vgpr_spill_count", "sgpr_spill_count")
        }
        return read["vgpr_count"], read["vgpr_spill_count"] + read["sgpr_spill_count"]
    path = Path(folder) / "kernel.cubin"
    path.write_bytes(compiled.asm["cubin"])
    text = subprocess.run([CUOBJDUMP, "--dump-resource-usage", path], capture_output=True, text=True, check=True).stdout
    # Triton's kernels have no local memory but for spilled registers, which the compiler puts on the stack.
    found = {name: int(number) for name, number in re.findall(r"(REG|STACK|LOCAL):(\d+)", text)}
    return found["REG"], found["STACK"] + found["LOCAL"]


def has_atomics(target, compiled):
    if target.startswith("gfx"):
        return bool(re.search(r"\b\w+_atomic_\w+", compiled.asm["amdgcn"]))
    return bool(re.search(r"\b(atom|red)\.", compiled.asm["ptx"]))


def compile_for(target, dtype, heads, channels, folder, seen):
    for kernel, arguments, options in record_launches(dtype, heads, channels):
        ast = source(kernel, arguments, options)
        warps = options["num_warps"]
        key = (ast.hash(), target, warps)
        if key in seen:
            continue
        seen.add(key)
        compiled = triton.compile(ast, target=TARGETS[target], options={"num_warps": warps})
        registers, spilled = resources(target, compiled, folder)
        yield {
            "kernel": kernel.__name__,
            "dtype": str(dtype).removeprefix("torch."),
            "shape": f"{heads}x{channels}",
            "target": target,
            "warps": warps,
            "registers": registers,
            "spilled": spilled,
            "atomics": has_atomics(target, compiled),
            "doubles": bool(re.search(r"\bf64\b|xf64\b", compiled.asm["ttgir"])),
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("selection", nargs="*", metavar="TARGET,DTYPE,HxC", help="default: everything")
    everything = [f"{t},{d},{h}x{c}" for t in TARGETS for d in DTYPES for h, c in SHAPES]
    rows, seen = [], set()
    with tempfile.TemporaryDirectory() as folder:
        for item in parser.parse_args().selection or everything:
            target, dtype, shape = item.split(",")
            heads, channels = map(int, shape.split("x"))
            rows += compile_for(target, getattr(torch, dtype), heads, channels, folder, seen)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
