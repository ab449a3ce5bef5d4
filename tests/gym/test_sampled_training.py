"""``train.sampler: neighbor``: the same training on sampled batches, resumed to the bit after any step."""

import os

import pytest
import torch
from run_outcomes import Stop, interrupt_at_step, make_run, outcome

from graphgym_lcat.gym import sampled_training
from graphgym_lcat.gym.build import build_loop
from graphgym_lcat.gym.network import TrimmingStage
from graphgym_lcat.gym.runner import execute
from graphgym_lcat.gym.settings import check_settings
from lcat_core.errors import SettingsError
from lcat_core.outcomes import PAUSE_SIGNALS, RunPaused

SAMPLED = {"train.sampler": "neighbor", "train.batch_size": 8, "train.neighbor_sizes": [5, 4]}
ALL = {"train.batch_size": 1000, "train.neighbor_sizes": [-1, -1], "lcat.convolve_hops": 2}


@pytest.fixture
def sampled(small):
    return {**small, **SAMPLED}


@pytest.mark.parametrize("layer", ["lcatconv", "lcatgcn2conv", "lcatginconv", "lcatpnaconv"])
def test_one_batch_with_all_neighbours_trains_as_the_full_batch_does(layer, small, sampled, tmp_path):
    small["gnn.layer_type"] = layer
    full = execute(make_run(tmp_path / "full", small))
    batch = execute(make_run(tmp_path / "batch", {**sampled, **ALL, "gnn.layer_type": layer}))
    assert batch["val"]["loss"] == pytest.approx(full["val"]["loss"], rel=1e-4)
    assert batch["lambdas"][0] == pytest.approx(full["lambdas"][0], rel=1e-4)


def test_small_batches_make_more_steps_in_an_epoch(sampled, tmp_path):
    losses = {}
    for size in (1000, 9):
        settings = {**sampled, "train.batch_size": size, "metric_best": "loss"}
        losses[size] = execute(make_run(tmp_path / str(size), settings))["train"]["loss"]
    assert losses[9] < losses[1000]


@pytest.mark.parametrize(("epoch", "step"), [(0, 1), (2, 5), (3, 3)])
def test_a_run_that_dies_within_an_epoch_resumes_to_the_bit(epoch, step, sampled, tmp_path):
    settings = {**sampled, "gnn.dropout": 0.3, "lcat.dropout": 0.2, "lcat.checkpoint_seconds": 0.0}
    complete, dying = make_run(tmp_path / "complete", settings), make_run(tmp_path / "dying", settings)
    execute(complete)
    with pytest.raises(Stop):
        execute(dying, on_step=interrupt_at_step(epoch, step))
    torch.manual_seed(12345)
    resumed = []
    execute(dying, on_step=lambda loop, taken: resumed.append((loop.epoch, taken.done)))
    assert resumed[0] == (epoch, step)  # the step that died was not saved
    assert outcome(dying) == outcome(complete)


def test_a_pause_within_an_epoch_saves_the_step(sampled, tmp_path):
    complete, paused = make_run(tmp_path / "complete", sampled), make_run(tmp_path / "paused", sampled)
    execute(complete)

    def pause(loop, taken):
        if (loop.epoch, taken.done) == (1, 2):
            os.kill(os.getpid(), PAUSE_SIGNALS[0])

    with pytest.raises(RunPaused):
        execute(paused, on_step=pause)
    assert "paused after epoch 1 of 6 and 2 of" in (paused.run_dir / "log.txt").read_text()
    execute(paused)
    assert outcome(paused) == outcome(complete)


def test_samples_depend_on_the_seed_of_the_run(sampled):
    first, again, other = (build_loop({**sampled, "seed": seed}).batches for seed in (0, 0, 1))
    nodes = [next(batches.batches(0)).n_id for batches in (first, again, other)]
    assert torch.equal(nodes[0], nodes[1])
    assert not torch.equal(nodes[0], nodes[2])


def test_layer_by_layer_evaluation_scores_as_the_full_batch_does(sampled, tmp_path):
    full = execute(make_run(tmp_path / "full", sampled))
    blocks = execute(make_run(tmp_path / "blocks", {**sampled, "lcat.eval_batch_size": 7}))
    assert blocks["best_epoch"] == full["best_epoch"]
    assert blocks["test"] == pytest.approx(full["test"], rel=1e-5)


@pytest.mark.parametrize("stage", ["stack", "skipsum", "skipconcat"])
def test_a_trimmed_batch_has_the_outputs_of_the_whole_batch(stage, sampled):
    loop = build_loop({**sampled, "gnn.stage_type": stage, "lcat.convolve_hops": 2, "train.batch_size": 3})
    assert isinstance(loop.model.model.mp, TrimmingStage)
    loop.model.eval()
    batch = next(loop.batches.batches(0))
    rows = []
    loop.model.model.mp.layer1.register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0].x.size(0)))
    trimmed = loop._forward(batch)
    loop.model.model.mp.reach = None
    torch.testing.assert_close(trimmed, loop._forward(batch))
    assert rows[0] == sum(batch.num_sampled_nodes[:3]) < rows[1] == batch.num_nodes


def test_convolve_hops_need_a_sampler(small):
    with pytest.raises(SettingsError, match=r"needs `train\.sampler: neighbor`"):
        check_settings({**small, "lcat.convolve_hops": 1})


@pytest.mark.parametrize(("key", "value"), [("train.batch_size", 0), ("train.neighbor_sizes", [5, -2])])
def test_sizes_out_of_range_are_refused(key, value, sampled):
    with pytest.raises(SettingsError, match=f"`{key}` must be"):
        check_settings({**sampled, key: value})


def test_building_a_run_does_not_change_how_the_process_frees_memory(sampled, monkeypatch):
    calls = []
    monkeypatch.setattr(sampled_training, "keep_freed_memory", lambda: calls.append(1))
    loop = build_loop(sampled)
    assert not calls
    next(iter(loop.epochs()))
    assert calls == [1]
