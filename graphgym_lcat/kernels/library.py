"""Loading the compiled kernels."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# LCAT_LIBRARY names another build, for example one with sanitizers.
PATH = Path(os.environ.get("LCAT_LIBRARY", Path(__file__).with_name("_fused.so")))
# Changes whenever the arguments of a function in csrc/ change, so that a library built from other sources is never called.
INTERFACE = 9
LANES = 8  # numbers in a vector of the kernels
INSTRUCTION_SETS = ("generic", "avx2")
ENVIRONMENT_VARIABLE = "LCAT_INSTRUCTION_SET"
# How the rows of nodes are stored. All types but double are summed in float32, and so is what belongs to heads of nodes or edges.
NUMBERS = {torch.float32: "float", torch.float64: "double", torch.bfloat16: "bfloat16", torch.float16: "float16"}
HALVES = (torch.bfloat16, torch.float16)

# Arguments of the functions in csrc/: n a 64-bit integer, p a pointer, d a double, t the number of threads.
_BY_ROW, _BOTH = "nppn", "nppnppn"
_EXTRAS = "nppnd"  # edges in the input, their numbers by row and by column, seed and probability of dropout
SIGNATURES = {
    "mean_forward": "nppnpnpt",
    "mean_backward": "npnppnpnppt",
    "convolve_forward": "nppp" + "ppn" + "pn" + "ppt",
    "convolve_backward": "npnppp" + "ppn" + "pn" + "pppt",
    "scores_forward": "nnn" + "ppppn" + "pt",
    "scores_backward": "nnn" + "ppppn" + "pp" + "ppppt",
    "gat_forward": _BY_ROW + _EXTRAS + "nn" + "pnpnppd" + "pppppt",
    "gat_backward": _BOTH + _EXTRAS + "nn" + "pnpnppd" + "pppppp" + "ppppt",
    "gat_coefficients_forward": _BY_ROW + _EXTRAS + "n" + "pnpnpd" + "pppt",
    "gat_coefficients_backward": _BOTH + _EXTRAS + "n" + "pnpnpd" + "pppp" + "pppt",
    "gatv2_forward": _BY_ROW + _EXTRAS + "nnn" + "ppppppnpd" + "pppt",
    "gatv2_backward": _BOTH + _EXTRAS + "nnn" + "ppppppnpd" + "pppp" + "pppppppt",
    "gatv2_backward_symmetric": _BY_ROW + _EXTRAS + "nnn" + "pppd" + "pppp" + "pppt",
    "gatv2_coefficients_forward": _BY_ROW + _EXTRAS + "nn" + "pppppnpd" + "pppt",
    "gatv2_coefficients_backward": _BOTH + _EXTRAS + "nn" + "pppppnpd" + "pppp" + "ppppppt",
    "fill_loops_forward": "pnpnnppt",
    "fill_loops_backward": "pnpnnppt",
    "adjacency_forward": "nppn" + "pnpnd" + "pt",
    "adjacency_backward": "nppnppn" + "pnpnd" + "pp" + "pppt",
    "adjacency_gatv2_forward": "nppnn" + "pppd" + "pt",
    "adjacency_gatv2_backward": "nppnpppnn" + "pppd" + "pp" + "ppppt",
    "pna_forward": "nppnn" + "ppp" + "np" + "pppt",
    "pna_backward": "nppnpppnn" + "ppp" + "np" + "ppp" + "pppt",
    "attend_pairs": "npppdd" + "nnp" + "pt",
}
# Without numbers of any type, so there is one of each.
SAMPLING = {
    "prefer_large_pages": ("pn", None),
    "in_edges": ("nppnnpp", ctypes.c_int),
    "sample_counts": ("nppnp", ctypes.c_int64),
    "sample_edges": ("npppnnpnpppt", None),
    "number_nodes": ("nppnp", ctypes.c_int64),
}
_TYPES: dict[str, Any] = {"n": ctypes.c_int64, "p": ctypes.c_void_p, "d": ctypes.c_double, "t": ctypes.c_int}


@dataclass(frozen=True)
class Library:
    """The kernels for this processor."""

    instruction_set: str
    has_openmp: bool
    layout: Callable[..., int]
    edge_numbers: Callable[..., int]
    slots: Callable[..., None]
    sampling: dict[str, Callable[..., int]]
    kernels: dict[tuple[str, torch.dtype], Callable[..., int]]

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        """The types of numbers that it has kernels for."""
        return tuple(dtype for dtype in NUMBERS if ("gat_forward", dtype) in self.kernels)

    def call(self, name: str, dtype: torch.dtype, *arguments: int | float) -> None:
        if self.kernels[name, dtype](*arguments):
            raise MemoryError(f"no memory for the workspace of {name}")


@functools.cache
def load() -> Library | str:
    """The library, or the reason why there is none."""
    if not PATH.exists():
        return "the C library was not built: there was no C compiler when graphgym-lcat was installed"
    _share_openmp_runtime()
    try:
        handle = ctypes.CDLL(str(PATH))
    except OSError as error:
        return f"the C library cannot be loaded: {error}"
    if handle.lcat_interface() != INTERFACE:
        return (
            f"{PATH.name} was built from other sources; build it again with `pip install --no-deps --force-reinstall "
            "graphgym-lcat`, or in a clone with `pip install --no-deps -e .`"
        )
    return _bind(handle)


def loaded() -> Library:
    """The library; raises if there is none."""
    found = load()
    if isinstance(found, str):
        raise RuntimeError(found)
    return found


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type of sums of numbers of ``dtype``."""
    return torch.float32 if dtype in HALVES else dtype


def why_unused() -> str | None:
    """A warning if the library exists but cannot be used.

    None if it works, was never built, or if the user chose the torch path.
    """
    found = load()
    if isinstance(found, Library) or not PATH.exists() or os.environ.get("LCAT_BACKEND") == "torch":
        return None
    return f"attention is computed by the slower torch path: {found}"


def _bind(handle: ctypes.CDLL) -> Library | str:
    handle.lcat_instruction_set.restype = ctypes.c_char_p
    best = handle.lcat_instruction_set().decode()
    allowed = INSTRUCTION_SETS[: INSTRUCTION_SETS.index(best) + 1]
    wanted = os.environ.get(ENVIRONMENT_VARIABLE)
    if wanted and wanted not in allowed:
        return f"{ENVIRONMENT_VARIABLE} must be one of {', '.join(allowed)} on this processor, got {wanted!r}"
    chosen = allowed[: allowed.index(wanted) + 1] if wanted else allowed
    kernels = {}
    for name, arguments in SIGNATURES.items():
        for dtype, number in NUMBERS.items():
            variants = [f"{name}_{number}_{s}" for s in reversed(chosen) if hasattr(handle, f"{name}_{number}_{s}")]
            if not variants:  # not every kernel is compiled for every type
                continue
            function = getattr(handle, variants[0])
            function.argtypes = [_TYPES[a] for a in arguments]
            function.restype = ctypes.c_int
            kernels[name, dtype] = function
    layout = handle.lcat_layout
    layout.argtypes = [_TYPES[a] for a in "nppnntpppppp"]
    layout.restype = ctypes.c_int64
    edge_numbers = handle.lcat_edge_numbers
    edge_numbers.argtypes = [_TYPES[a] for a in "nppnntpppp"]
    edge_numbers.restype = ctypes.c_int
    slots = handle.lcat_slots
    slots.argtypes = [_TYPES[a] for a in "nppnppp"]
    slots.restype = None
    sampling = {name: getattr(handle, f"lcat_{name}") for name in SAMPLING}
    for name, (arguments, result) in SAMPLING.items():
        sampling[name].argtypes = [_TYPES[a] for a in arguments]
        sampling[name].restype = result
    return Library(chosen[-1], bool(handle.lcat_has_openmp()), layout, edge_numbers, slots, sampling, kernels)


def _share_openmp_runtime() -> None:
    """Makes torch's OpenMP runtime visible to our library, which brings none, so that both share one pool of threads."""
    for path in _openmp_runtimes():
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return
        except OSError:
            continue


def _openmp_runtimes() -> Iterator[str]:
    names = ("libgomp", "libiomp5", "libomp")
    maps = Path("/proc/self/maps")
    if maps.exists():
        loaded = dict.fromkeys(
            line.split(maxsplit=5)[5] for line in os.fsdecode(maps.read_bytes()).splitlines() if "/" in line
        )
        runtimes = [path for path in loaded if Path(path).name.startswith(names)]
        # torch's own first: other packages may have loaded a runtime too.
        yield from sorted(runtimes, key=lambda path: "/torch" not in path)
    for name in names:
        yield from (str(path) for path in sorted(Path(torch.__file__).parent.glob(f"lib/{name}*")))
    yield from filter(None, (ctypes.util.find_library(name.removeprefix("lib")) for name in names))
