"""Workers and launchers are killed at random moments; afterwards every run is done, exactly once."""

import random
import subprocess

import pytest
from kills import sweep_under_fire

pytestmark = pytest.mark.slow


def check(sandbox, reference, runs):
    results = sandbox.results()
    assert len(results) == runs
    assert results == reference
    assert set(sandbox.completions().values()) == {1}


@pytest.mark.parametrize(
    ("runs", "kills"), [(24, 5), pytest.param(60, 30, marks=pytest.mark.campaign)], ids=["5 kills", "30 kills"]
)
def test_nothing_is_lost_or_repeated_under_random_kills(sandbox, runs, kills):
    sandbox.write_grid(f"{{name: small, models: [gcn, lcat], seeds: {runs // 2}, set: {{optim.max_epoch: 20}}}}")
    assert sandbox.sweep("-j", "4") == 0
    reference = sandbox.results()
    sandbox.folder.path.rename(sandbox.path / "undisturbed")

    done = sweep_under_fire(sandbox, kills, ["-j", "2"], random.Random(runs))
    print(f"{runs} runs, killed: {done}, lost: 0, repeated: 0")
    assert sum(done.values()) >= kills
    check(sandbox, reference, runs)


def test_a_disk_that_fills_up_loses_nothing_that_is_finished(sandbox):
    disk = sandbox.path / "results"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        sandbox.write_grid("{name: small, models: [gcn, lcat], seeds: 40}")
        launcher = sandbox.launch("-j", "2")
        said, _ = launcher.communicate(timeout=60)
        assert launcher.returncode == 1
        assert "no space left in results/small" in said
        finished = sandbox.results()
        assert 0 < len(finished) < 80

        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        launcher = sandbox.launch("-j", "2")
        said, _ = launcher.communicate(timeout=60)
        assert launcher.returncode == 0, said
        assert finished.items() <= sandbox.results().items()
        assert len(sandbox.results()) == 80
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
