"""A run and what it leaves behind."""

import json

import numpy as np
import pytest
from run_outcomes import make_run, outcome, stats

from graphgym_lcat.gym.loops import LOOPS
from graphgym_lcat.gym.runner import Run, execute
from lcat_core.run_folder import is_done


def test_result_and_logs(tmp_path, small):
    run = make_run(tmp_path, small, **{"optim.max_epoch": 12, "seed": 5})
    result = execute(run)
    assert is_done(run.run_dir)
    assert result == json.loads((run.run_dir / "result.json").read_text())
    assert (result["schema"], result["run_id"], result["model"], result["seed"]) == (1, "some-run", "lcat", 5)
    assert result["dataset"] == {"name": "BlockModel", "nodes": 60, "edges": 240, "avg_degree": 4.0}
    assert result["params"] == {"gnn.dim_inner": 8}
    assert [line["epoch"] for line in stats(run, "val")] == list(range(12))
    assert {"epoch", "loss", "lr", "params", "accuracy"} == stats(run, "val")[0].keys()
    assert (run.run_dir / "lambdas.csv").read_text().splitlines()[:3] == [
        "epoch,layer,head,lambda1,lambda2",
        "0,0,,0.5,0.5",
        "0,1,,0.5,0.5",
    ]
    assert not (run.run_dir / "checkpoint.pt").exists()


def test_the_first_of_the_best_validation_epochs_counts(tmp_path, small):
    run = make_run(tmp_path, small, **{"optim.max_epoch": 40})
    result = execute(run)
    validation = [line["accuracy"] for line in stats(run, "val")]
    assert result["best_epoch"] == validation.index(max(validation))
    assert round(result["test"]["accuracy"], 4) == stats(run, "test")[result["best_epoch"]]["accuracy"]


def test_a_finished_run_is_not_repeated(tmp_path, small, monkeypatch):
    run = make_run(tmp_path, small)
    first = execute(run)
    monkeypatch.setitem(LOOPS, "train", lambda: pytest.fail("built again"))
    assert execute(run) == first


def test_equal_seeds_give_equal_results_and_others_do_not(tmp_path, small):
    runs = [make_run(tmp_path / str(i), small, seed=seed) for i, seed in enumerate((1, 1, 2))]
    for run in runs:
        execute(run)
    assert outcome(runs[0]) == outcome(runs[1])
    assert outcome(runs[0])[1] != outcome(runs[2])[1]


def test_early_stopping(tmp_path, small):
    result = execute(make_run(tmp_path, small, **{"optim.max_epoch": 500, "lcat.patience": 3}))
    assert result["epochs"] == result["best_epoch"] + 4 < 500


def test_dense_model_has_no_lambdas(tmp_path, small):
    run = make_run(tmp_path, small, **{"gnn.layer_type": "linear"})
    assert execute(run)["lambdas"] == []
    assert not (run.run_dir / "lambdas.csv").exists()


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("act", ["relu", "elu"])
def test_normalisations_and_activations(tmp_path, small, norm, act):
    result = execute(make_run(tmp_path, small, **{"gnn.batchnorm": True, "lcat.norm": norm, "gnn.act": act}))
    assert result["epochs"] == 6


def test_lambda_per_head_is_logged_per_head(tmp_path, small):
    run = make_run(tmp_path, small, **{"lcat.lambda_per_head": True, "optim.max_epoch": 1})
    result = execute(run)
    assert len(result["lambdas"][0][0]) == 2
    rows = (run.run_dir / "lambdas.csv").read_text().splitlines()[1:]
    assert [row.split(",")[:3] for row in rows] == [["0", str(layer), str(head)] for layer in (0, 1) for head in (0, 1)]


def test_a_synthetic_point_is_a_run_like_any_other(tmp_path):
    settings = {"lcat.loop": "csbm", "dataset.name": "csbm", "csbm.model": "cat", "csbm.n": 200, "csbm.mu_norm": 4.29}
    run = Run(tmp_path / "point", "cat", {**settings, "seed": 3}, {"csbm.q": 0.1}, threads=1)
    result = execute(run)
    assert is_done(run.run_dir)
    assert (result["dataset"]["name"], result["seed"], result["params"]) == ("csbm", 3, {"csbm.q": 0.1})
    assert result["test"]["accuracy"] > 0.9
    assert set(result["extra"]["gamma"]) == {"same", "opposite", "rest"}
    assert not (run.run_dir / "train").exists()


def test_the_block_model_of_the_paper_is_a_dataset_too(tmp_path, small):
    result = execute(make_run(tmp_path, small, **{"dataset.name": "csbm", "csbm.n": 100}))
    assert result["dataset"]["nodes"] == 100


def test_splits_are_shared_by_models_and_seeds(tmp_path, small):
    small |= {"lcat.save_predictions": True}
    runs = [
        make_run(tmp_path / "a", small, seed=1),
        make_run(tmp_path / "b", small, seed=2, **{"gnn.layer_type": "linear"}),
    ]
    nodes = []
    for run in runs:
        execute(run)
        nodes.append(np.load(run.run_dir / "predictions.npz")["test_nodes"])
    np.testing.assert_array_equal(*nodes)
