"""A working directory on a machine with SLURM."""

from __future__ import annotations

import subprocess
import sys
import time

from sweep_sandbox import Sandbox

from lcat_run.engines.slurm_queue import slurm_folder


class ClusterSandbox(Sandbox):
    """A working directory on a machine with SLURM."""

    def submit(self, *arguments: str, status: int = 0) -> str:
        """Execute `lcat sweep grid.yaml --engine slurm …` as its own process; return what it printed."""
        launcher = self.launch("--engine", "slurm", *arguments)
        said, _ = launcher.communicate(timeout=60)
        assert launcher.returncode == status, said
        return said

    def status(self) -> str:
        command = [sys.executable, "-m", "lcat_run.cli", "status", "small"]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=True).stdout

    def wait_for(self, condition, seconds: float = 90.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s\n{self.status()}\n{self.logs()}"
            time.sleep(0.1)

    def wait_until_done(self, runs: int, seconds: float = 90.0) -> None:
        self.wait_for(lambda: len(self.results()) == runs, seconds)

    def wait_until_idle(self) -> None:
        self.wait_for(lambda: not queue())

    def logs(self) -> str:
        return "\n".join(
            path.read_text()[-2000:] for path in sorted((slurm_folder(self.folder) / "jobs").glob("*_log.*"))
        )

    def started(self) -> int:
        return len(list(self.folder.runs.glob("*/checkpoint.pt")))


def queue() -> list[str]:
    command = ["squeue", "--me", "-h", "-r", "-o", "%i|%T|%r"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
