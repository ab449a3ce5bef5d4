"""Runs on OGB's datasets: their networks, losses, evaluators and batches."""

from importlib import resources

import pytest
import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.model_builder import create_model

from graphgym_lcat.data.ogb import OGB_DATASETS
from graphgym_lcat.gym.build import build_loop
from graphgym_lcat.gym.metrics import mean_area_under_curve, ogb_evaluation
from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.settings import apply_settings, check_settings, default_settings, read_settings
from graphgym_lcat.nn import LCATConv
from lcat_core.errors import SettingsError
from lcat_run.sweep.grid import read_grid


def settings_of(name, ogb_dir, **changes):
    path = resources.files("lcat_configs") / f"{name}.yaml"
    return {**read_settings(path), "dataset.dir": str(ogb_dir), "optim.max_epoch": 2, **changes}


@pytest.mark.parametrize(
    ("name", "metric", "layers"),
    [
        ("ogbn-arxiv", "accuracy", 3),
        ("ogbn-products", "accuracy", 3),
        (
            "ogbn-mag",
            "accuracy",
            6 + 3,
        ),  # relations that end in papers, and before them those that end in what these start from
        ("ogbn-proteins", "rocauc", 6),
    ],
)
def test_the_paper_s_network_trains_with_eight_heads(name, metric, layers, ogb_dir, tmp_path):
    result = execute(Run(tmp_path / "run", "lcat", settings_of(name, ogb_dir, **{"lcat.heads": 8}), {}))
    assert all(0 <= result[split][metric] <= 1 for split in ("train", "val", "test"))
    assert len(result["lambdas"]) == layers
    assert result["epochs"] == 2
    assert result["dataset"]["name"] == f"{name} (synthetic)"


def test_a_short_training_on_generated_data_beats_chance(ogb_dir, tmp_path):
    settings = settings_of("ogbn-arxiv", ogb_dir, **{"optim.max_epoch": 60})
    result = execute(Run(tmp_path / "run", "lcat", settings, {}))
    assert result["test"]["accuracy"] > 5 / 40


def test_the_output_layer_of_a_stack_averages_its_heads_and_the_others_split_their_width():
    apply_settings(settings_of("ogbn-arxiv", "", **{"lcat.heads": 8}))
    cfg.share.dim_in, cfg.share.dim_out = 128, 40
    convs = [m for m in create_model(to_device=False).modules() if isinstance(m, LCATConv)]
    assert [(conv.heads, conv.out_channels, conv.concat) for conv in convs] == [
        (8, 16, True),
        (8, 16, True),
        (8, 40, False),
    ]


def test_every_layer_of_the_relational_network_learns(ogb_dir):
    run = build_loop(settings_of("ogbn-mag", ogb_dir))
    loss = torch.nn.functional.cross_entropy(run._forward(run.data)[run.nodes["train"]], run.labels["train"])
    loss.backward()
    assert [name for name, p in run.model.named_parameters() if p.grad is None] == []


def test_our_mean_auc_equals_that_of_ogbs_evaluator():
    generator = torch.Generator().manual_seed(0)
    score = torch.rand(50, 112, generator=generator).round(decimals=1)  # with ties
    true = (torch.rand(50, 112, generator=generator) < 0.2).float()
    true[:, 3] = 0  # a task without positives does not count
    expected = ogb_evaluation("ogbn-proteins")(score, true)["rocauc"]
    assert mean_area_under_curve(score, true) == pytest.approx(expected, abs=1e-12)


def test_accuracy_is_that_of_ogbs_evaluator():
    score = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    assert ogb_evaluation("ogbn-arxiv")(score, torch.tensor([1, 1, 1])) == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("name", "metric", "message"),
    [
        ("ogbn-proteins", "accuracy", "needs two classes or more than two classes, got 112 tasks"),
        ("ogbn-arxiv", "rocauc", "needs several tasks, got 40 classes"),
    ],
)
def test_a_metric_that_the_dataset_does_not_have_is_refused(name, metric, message, ogb_dir):
    with pytest.raises(SettingsError, match=f"`metric_best: {metric}` {message}"):
        build_loop(settings_of(name, ogb_dir, metric_best=metric))


def test_every_dataset_of_the_grid_has_the_network_of_its_configuration():
    grid = read_grid(resources.files("lcat_grids") / "ogb.yaml")
    base = read_settings(resources.files("lcat_configs") / "ogbn-arxiv.yaml")
    defaults = default_settings()
    for name in OGB_DATASETS:
        config = {**defaults, **read_settings(resources.files("lcat_configs") / f"{name}.yaml")}
        rules = [rule.set for rule in grid.override if rule.when == {"dataset.name": name}]
        made = {**defaults, **base, "dataset.name": name, **(rules[0] if rules else {})}
        unused = {"lcat.output"} if name == "ogbn-mag" else set()
        unused |= set() if config["gnn.batchnorm"] else {"lcat.norm"}
        assert {key for key in made if made[key] != config[key]} <= unused


def test_a_batch_needs_a_number_of_neighbours_for_every_layer(ogb_dir):
    settings = settings_of("ogbn-products", ogb_dir, **{"train.sampler": "neighbor", "train.neighbor_sizes": [5]})
    with pytest.raises(SettingsError, match="one number for each of 3 layers"):
        check_settings(settings)


def test_mag_needs_the_relational_network(ogb_dir):
    with pytest.raises(SettingsError, match="must be 'lcat_relational' for ogbn-mag"):
        check_settings(settings_of("ogbn-mag", ogb_dir, **{"model.type": "lcat"}))
