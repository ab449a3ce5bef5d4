"""A measurement in a process of its own: what it does to memory and to imports ends with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


class MeasurementFailed(RuntimeError):
    """The process of a measurement ended with an error."""


def measure_in_child(what: str, module: str, options: Mapping[str, object]) -> Any:
    """Runs ``python -m lcat_benchmarks.<module> --name=value …``; returns its last line of output, which is JSON."""
    command = [sys.executable, "-m", f"lcat_benchmarks.{module}"]
    command += [f"--{name}={value}" for name, value in options.items()]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise MeasurementFailed(f"{what} ended with status {run.returncode}:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])
