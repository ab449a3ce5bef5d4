"""A measurement in its own process, so that its memory and its imports end with it: the parent's side and the child's."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lcat_core.errors import LcatError

OUT_OF_MEMORY = "out of memory"
DONE = "done"


class MeasurementFailed(LcatError):
    """The process of a measurement ended with an error."""


def measure_in_child(what: str, module: str, options: Mapping[str, object], python: str = sys.executable) -> Any:
    """Run ``python -m lcat_benchmarks.<module> --name=value …`` and return its last line of output, which is JSON."""
    command = [
        python,
        "-P",
        "-m",  # without the current folder, which may hold another version
        f"lcat_benchmarks.{module}",
    ]
    command += [f"--{name}={value}" for name, value in options.items()]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise MeasurementFailed(f"{what} ended with status {run.returncode}:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def memory_options(memory_gib: float, threads: int) -> dict[str, int]:
    """Return the options that :func:`measure_with_limit` reads."""
    return {"threads": threads, "memory-bytes": int(memory_gib * 2**30)}


def measure_with_limit(parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], Any]) -> None:
    """In the child: measure with limited memory and threads, and print the result; too little memory is a result too."""
    import torch

    for name in ("threads", "memory-bytes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (args.memory_bytes, args.memory_bytes))
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    try:
        result = measure(args)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        result = {"outcome": OUT_OF_MEMORY}
    print(json.dumps(result))


def peak_bytes_of_process() -> int:
    """Return the largest memory that this process has used so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory_limit_text(outcome: str, memory_gib: float) -> str:
    return f"  {outcome} (limit {memory_gib:.3g} GiB)"
