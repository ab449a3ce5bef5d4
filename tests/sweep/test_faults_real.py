"""Real training under kills: the results are the same to the last bit as without them."""

import json
import random

import pytest
from kills import sweep_under_fire

pytestmark = pytest.mark.slow


def outcome(run_dir):
    """Return everything that a run computed, without times and host."""
    result = json.loads((run_dir / "result.json").read_text())
    result.pop("timing")
    lambdas = run_dir / "lambdas.csv"
    return result, lambdas.read_bytes() if lambdas.exists() else b""


def outcomes(sandbox):
    return {path.parent.name: outcome(path.parent) for path in sorted(sandbox.folder.runs.glob("*/result.json"))}


def times_done(sandbox):
    """Return how often each run was reported as done."""
    events = [json.loads(line) for line in (sandbox.folder.path / "events.jsonl").read_text().splitlines()]
    done = [event["run_id"] for event in events if event["event"] == "done"]
    return {run_id: done.count(run_id) for run_id in done}


@pytest.mark.parametrize(
    ("seeds", "kills"), [(2, 3), pytest.param(30, 30, marks=pytest.mark.campaign)], ids=["4 runs", "60 runs"]
)
def test_a_sweep_under_kills_equals_an_undisturbed_one(sandbox, monkeypatch, seeds, kills):
    monkeypatch.delenv("LCAT_WORKER")
    sandbox.write_grid(
        f"""\
        name: small
        base: real.yaml
        models: [lcat, catv2]
        seeds: {seeds}
        set: {{dataset.name: BlockModel, block_model.num_nodes: 300, optim.max_epoch: 300,
              lcat.checkpoint_seconds: 0.1}}
        """
    )
    assert sandbox.launch_and_wait("-j", "2", "--threads", "1") == 0
    reference = outcomes(sandbox)
    assert len(reference) == 2 * seeds
    sandbox.folder.path.rename(sandbox.path / "undisturbed")

    done = sweep_under_fire(sandbox, kills, ["-j", "2", "--threads", "1"], random.Random(seeds))
    print(f"{2 * seeds} runs, killed: {done}")
    assert sum(done.values()) >= kills
    assert outcomes(sandbox) == reference
    assert max(times_done(sandbox).values()) == 1
