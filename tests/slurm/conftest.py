"""A real SLURM on this machine for the tests that ask for it, or a message that says why there is none."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sweep"))
from cluster_sandbox import ClusterSandbox
from sweep_sandbox import FAKE_WORKER

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def cluster():
    with tempfile.TemporaryDirectory(prefix="lcat-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # munged requires every folder above its socket to be readable
        port = 20000 + random.Random(os.getpid()).randrange(500) * 20
        started = subprocess.run(
            ["bash", str(HERE / "start.sh"), str(folder), str(port)], capture_output=True, text=True, check=False
        )
        if started.returncode == 3:
            pytest.skip(started.stderr.strip())
        try:
            assert started.returncode == 0, started.stderr
            yield folder / "slurm.conf"
        finally:
            subprocess.run(["bash", str(HERE / "stop.sh"), str(folder)], check=False)


@pytest.fixture
def sandbox(tmp_path, monkeypatch, cluster) -> ClusterSandbox:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_CONF", str(cluster))
    monkeypatch.setenv("LCAT_WORKER", shlex.join([sys.executable, "-S", str(FAKE_WORKER)]))
    yield ClusterSandbox(tmp_path)
    subprocess.run(["scancel", "--me"], check=False)
