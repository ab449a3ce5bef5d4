"""A sweep that takes milliseconds: the real launcher with the fake worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from lcat_run import cli
from lcat_run.sweep.folder import SweepFolder

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
GRID = """\
name: small
seeds: 2
models: [gcn, lcat]
axes:
  dataset.name: [Cora, CiteSeer]
"""


class Sandbox:
    """A working directory with a grid in it."""

    def __init__(self, path: Path):
        self.path = path
        self.folder = SweepFolder(path / "results" / "small")
        self.write_grid(GRID)

    def write_grid(self, text: str) -> None:
        (self.path / "grid.yaml").write_text(textwrap.dedent(text))

    def sweep(self, *arguments: str) -> int:
        """Execute `lcat sweep grid.yaml …` in this process."""
        return cli.main(["sweep", "grid.yaml", *arguments])

    def launch(self, *arguments: str) -> subprocess.Popen:
        """Start `lcat sweep grid.yaml …` as its own process."""
        command = [sys.executable, "-m", "lcat_run.cli", "sweep", "grid.yaml", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(os.environ),
            preexec_fn=_reset_signals,
        )

    def launch_and_wait(self, *arguments: str) -> int:
        launcher = self.launch(*arguments)
        said, _ = launcher.communicate(timeout=600)
        print(said)
        return launcher.returncode

    def results(self) -> dict[str, dict]:
        return {
            path.parent.name: json.loads(path.read_text()) for path in sorted(self.folder.runs.glob("*/result.json"))
        }

    def completions(self) -> dict[str, int]:
        """Return how often each run was completed."""
        return {
            path.parent.name: len(path.read_text().splitlines())
            for path in sorted(self.folder.runs.glob("*/completions"))
        }


def _reset_signals() -> None:
    """React to these signals; tests that run in the background, or under nohup, inherit that they are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
