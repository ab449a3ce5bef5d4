"""Builds the fused kernels, a plain C library; everything declarative stands in setup.cfg."""

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, PlatformError

SOURCES = Path("graphgym_lcat/kernels/csrc")
FLAGS = ["-std=gnu11", "-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi", "-Wno-pass-failed"]
# Compiled besides the generic code where the compiler knows it; the processor decides at run time. AVX-512 was no faster.
INSTRUCTION_SETS = {"avx2": ["-mavx2", "-mfma", "-mf16c"]}
OPENMP_FLAGS = (["-fopenmp"], ["-Xpreprocessor", "-fopenmp"])  # the second is Apple's
# How the rows of nodes are stored; kernels compute with float for all types but double.
NUMBERS = {
    "float": [],
    "double": ["-DREAL_IS_DOUBLE"],
    "bfloat16": ["-DSTORED_AS_BFLOAT16"],
    "float16": ["-DSTORED_AS_FLOAT16"],
}
# Compiled for each number type and instruction set, longest first.
KERNELS = (
    *("gatv2", "gat", "gat_coefficients", "pna", "pna_backward"),
    *("adjacency", "convolution", "adjacency_gatv2", "pairs", "scores", "loops"),
)
# Those that can read rows of half the size. For the others the caller converts.
HALF_KERNELS = ("gatv2", "gat", "convolution", "scores")
NO_GCC = "#ifndef __clang__\n#error\n#endif\n"
PROBE = "typedef float vec __attribute__((vector_size(32)));\nvoid twice(vec *x) { *x += *x; }\n"


class BuildKernels(build_ext):
    """Compiles every kernel for each number type and instruction set, and links them into one library for ctypes.

    The library is not linked with an OpenMP runtime: at run time it finds the one that torch has loaded, so that both
    share one pool of threads. A failure does not stop the installation: the torch path computes the same results.
    """

    def get_ext_filename(self, fullname):
        return str(Path(*fullname.split("."))) + ".so"

    def get_export_symbols(self, ext):
        return ext.export_symbols

    def build_extension(self, ext):
        try:
            self._build_library(Path(self.get_ext_fullpath(ext.name)))
        except (CompileError, LinkError, PlatformError, OSError) as error:
            print(f"graphgym-lcat: no fused kernels ({error}); the torch path will serve.", file=sys.stderr)

    def _build_library(self, target):
        if not self._accepts([]):
            raise CompileError("they need a C compiler with vector types, gcc or clang")
        sets = {name: flags for name, flags in INSTRUCTION_SETS.items() if self._accepts(flags)}
        openmp = next((flags for flags in OPENMP_FLAGS if self._accepts(flags)), [])
        if sys.platform == "linux" and self._accepts([], NO_GCC):
            # Its OpenMP calls another runtime than the one that torch brings on Linux, which is gcc's.
            openmp = []
        if not openmp:
            print("graphgym-lcat: no OpenMP that fits torch's, the fused kernels use one thread.", file=sys.stderr)

        def optimize(level):
            return [] if "-O" in os.environ.get("CFLAGS", "") else [level]

        def variant(number, instruction_set, level, flags=()):
            kernels = HALF_KERNELS if number in ("bfloat16", "float16") else KERNELS
            suffix = f"{number}_{instruction_set}"
            flags = [f"-DSUFFIX={suffix}", *optimize(level), *NUMBERS[number], *flags]
            return [(kernel, suffix, flags) for kernel in kernels]

        jobs = []
        for name, flags in sets.items() or [("generic", [])]:
            for number in NUMBERS:
                jobs += variant(number, name, "-O2" if number == "double" else "-O3", flags)
        if sets:
            # Few processors need it, so it is not worth the time to optimize it, or to compile it for other numbers.
            jobs += variant("float", "generic", "-O1")
        jobs.sort(key=lambda job: KERNELS.index(job[0]))
        jobs.append(("sampling", "sampling", optimize("-O3")))
        jobs.append(("layout", "layout", [*optimize("-O2"), *(f"-DLCAT_HAVE_{name.upper()}" for name in sets)]))

        def compile_kernel(job):
            kernel, folder, flags = job
            return self.compiler.compile(
                [str(SOURCES / f"{kernel}.c")],
                output_dir=str(Path(self.build_temp, folder)),
                extra_postargs=[*FLAGS, *openmp, *flags],
            )

        with ThreadPoolExecutor() as pool:
            objects = [name for names in pool.map(compile_kernel, jobs) for name in names]
        target.parent.mkdir(parents=True, exist_ok=True)
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        self.compiler.link_shared_object(objects, str(target), extra_postargs=undefined)

    def _accepts(self, flags, probe=PROBE):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(probe)
            try:
                self.compiler.compile([str(source)], output_dir=folder, extra_postargs=["-Werror", *flags])
            except CompileError:
                return False
        return True


setup(
    ext_modules=[
        Extension(
            "graphgym_lcat.kernels._fused",
            sources=[str(path) for path in sorted(SOURCES.glob("*.c"))],
            depends=[str(path) for path in sorted(SOURCES.glob("*.h"))],
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
