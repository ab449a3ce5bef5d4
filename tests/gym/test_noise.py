"""Noise as keys of a run."""

import pytest
from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.loader import load_graph
from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.settings import apply_settings, check_settings
from lcat_core.errors import SettingsError


def test_the_seed_of_a_run_draws_its_noise(small):
    graphs = []
    for seed in (0, 1):
        apply_settings({**small, "noise.features": 0.5, "noise.edges": 0.5, "seed": seed})
        graphs.append(load_graph())
    first, second = graphs
    assert first.num_edges == second.num_edges == 240 + 2 * 60
    assert not first.x.equal(second.x)
    assert not first.edge_index.equal(second.edge_index)
    assert first.train_mask.equal(second.train_mask)


def test_levels_of_zero_change_no_result(tmp_path, small):
    plain = execute(Run(tmp_path / "plain", "lcat", small, {}))
    zero = execute(Run(tmp_path / "zero", "lcat", {**small, "noise.features": 0.0, "noise.edges": 0.0}, {}))
    assert [plain[key] for key in ("train", "val", "test", "lambdas")] == [
        zero[key] for key in ("train", "val", "test", "lambdas")
    ]


def test_a_run_with_noise_trains_on_the_disturbed_graph(tmp_path, small):
    noisy = execute(Run(tmp_path / "noisy", "lcat", {**small, "noise.edges": 0.25}, {}))
    assert noisy["dataset"]["edges"] == 240 + 2 * 30
    assert cfg.noise.edges == 0.25


@pytest.mark.parametrize("key", ["noise.features", "noise.edges"])
def test_a_negative_level_is_refused_before_anything_starts(small, key):
    with pytest.raises(SettingsError, match=f"`{key}` must be a number of at least 0, got -0.1"):
        check_settings({**small, key: -0.1})
