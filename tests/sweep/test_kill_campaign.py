"""Real workers, started cold, two launchers on one sweep: killed, stopped and hung up at random moments.

``pytest -m campaign tests/sweep/test_kill_campaign.py -s --kills 1000`` takes hours; every round prints what it has reached.
"""

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

KILLS_PER_ROUND = 40
TIMES = ("eta", "time_iter")


def outcome(run_dir):
    """Everything that a run has computed and recorded, without times and host."""
    result = json.loads((run_dir / "result.json").read_text())
    result.pop("timing")
    lines = [
        json.loads(line) for path in sorted(run_dir.glob("*/stats.json")) for line in path.read_text().splitlines()
    ]
    stats = [{key: value for key, value in line.items() if key not in TIMES} for line in lines]
    return result, stats, (run_dir / "lambdas.csv").read_text()


def outcomes(sandbox):
    return {path.parent.name: outcome(path.parent) for path in sorted(sandbox.folder.runs.glob("*/result.json"))}


def children(pid):
    """The live workers of a launcher, in whatever state they are: importing torch, training, or writing a checkpoint."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:  # it has just ended
            continue
    return found


def strike(launcher, rng):
    """Send a signal to a launcher or to one of its workers; return what was done."""
    workers = children(launcher.pid)
    chance = rng.random()
    if chance < 0.7 and workers:
        victim, number = rng.choice(workers), signal.SIGKILL
    elif chance < 0.8:
        victim, number = launcher.pid, signal.SIGKILL
    elif chance < 0.9 and workers:
        victim, number = rng.choice(workers), rng.choice((signal.SIGTERM, signal.SIGUSR2, signal.SIGSTOP))
    else:
        victim, number = launcher.pid, rng.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    try:
        os.kill(victim, number)
        if number == signal.SIGSTOP:
            time.sleep(0.3)
            os.kill(victim, signal.SIGCONT)
    except ProcessLookupError:
        return None
    return number.name


def round_under_fire(sandbox, rng, kills):
    """Keep two launchers alive until the sweep is complete; return how often which signal was sent."""
    sent = Counter()
    arguments = ("-j", "1", "--threads", "1")
    launchers = [sandbox.launch(*arguments) for _ in range(2)]
    while True:
        time.sleep(rng.expovariate(1 / 1.5))
        for number, launcher in enumerate(launchers):
            if launcher.poll() is None:
                continue
            said, _ = launcher.communicate()
            assert "Traceback" not in said, said
            if launcher.returncode == 0:
                break
            assert launcher.returncode in (1, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT), (
                said
            )
            launchers[number] = sandbox.launch(*arguments)
        else:
            if sent["SIGKILL"] < kills:
                done = strike(rng.choice(launchers), rng)
                sent.update([done] if done else [])
            continue
        break
    for launcher in launchers:
        launcher.communicate(timeout=600)
    return sent


@pytest.mark.campaign
def test_nothing_is_lost_repeated_or_different_whatever_is_killed(sandbox, monkeypatch, request):
    monkeypatch.delenv("LCAT_WORKER")
    sandbox.write_grid(
        """\
        name: small
        base: real.yaml
        models:
          full: {gnn.layer_type: lcatconv, optim.max_epoch: 400}
          sampled: {gnn.layer_type: lcatconv, train.sampler: neighbor, optim.max_epoch: 60}
        seeds: 3
        set: {dataset.name: BlockModel, block_model.num_nodes: 300, gnn.layers_mp: 2, train.batch_size: 64,
              train.neighbor_sizes: [5, 5], lcat.checkpoint_seconds: 0.1}
        """
    )
    assert sandbox.launch_and_wait("-j", "2", "--threads", "1") == 0
    reference = outcomes(sandbox)
    assert len(reference) == 6
    wanted = request.config.getoption("--kills", 1000)
    sent, number = Counter(), 0
    while sent["SIGKILL"] < wanted:
        sandbox.folder.path.rename(sandbox.path / f"round-{number}")
        sent += round_under_fire(sandbox, random.Random(number), min(KILLS_PER_ROUND, wanted - sent["SIGKILL"]))
        number += 1
        assert outcomes(sandbox) == reference, f"round {number}"
        print(f"{number} rounds of 6 runs, {dict(sent)}: 0 lost, 0 repeated, 0 different", flush=True)
