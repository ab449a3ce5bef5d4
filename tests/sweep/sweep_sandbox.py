"""A sweep of milliseconds: the real launcher with the fake worker."""

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
        """`lcat sweep grid.yaml …` in this process."""
        return cli.main(["sweep", "grid.yaml", *arguments])

    def launch(self, *arguments: str) -> subprocess.Popen:
        """`lcat sweep grid.yaml …` as a process of its own."""
        command = [sys.executable, "-m", "lcat_run.cli", "sweep", "grid.yaml", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(os.environ),
            preexec_fn=_heed_signals,
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
        """How many times each run was brought to its end."""
        return {
            path.parent.name: len(path.read_text().splitlines())
            for path in sorted(self.folder.runs.glob("*/completions"))
        }


def _heed_signals() -> None:
    """Tests that run in the background, or under nohup, pass on that these signals are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
