"""The packaged grids ask for what the experiments can do. The sweep itself is tested elsewhere."""

from __future__ import annotations

import inspect
import math
from importlib.resources import files
from itertools import product

import pytest
import yaml

from graphgym_lcat.synthetic.experiment import MODELS, run_point


def read(package: str, name: str) -> dict:
    return yaml.safe_load((files(package) / name).read_text(encoding="utf-8"))


def points(grid: dict) -> list[tuple[float, float]]:
    blocks = [grid["axes"], *(block["axes"] for block in grid["include"])]
    return [point for block in blocks for point in product(block["csbm.q"], block["csbm.mu_norm"])]


def test_every_key_of_the_configuration_is_an_argument_of_the_experiment():
    assert set(read("lcat_configs", "csbm.yaml")["csbm"]) <= set(inspect.signature(run_point).parameters)


def test_the_configuration_holds_the_defaults_of_the_experiment():
    defaults = {name: p.default for name, p in inspect.signature(run_point).parameters.items()}
    configured = read("lcat_configs", "csbm.yaml")["csbm"]
    del configured["model"]
    assert configured == {key: defaults[key] for key in configured}


@pytest.mark.parametrize("name", ["csbm", "csbm_learned", "csbm_small"])
def test_a_grid_has_different_points_and_models_that_exist(name):
    grid = read("lcat_grids", f"{name}.yaml")
    assert len(set(points(grid))) == len(points(grid))
    for model, settings in grid["models"].items():
        assert settings["csbm.model"] == model
        assert model in MODELS
        assert model != "lcat" or {**grid.get("set", {}), **settings}["csbm.learned"]


def test_the_full_grid_has_the_size_of_the_paper():
    grid = read("lcat_grids", "csbm.yaml")
    block = grid["include"][0]["axes"]
    assert grid["seeds"] == 50
    assert len(grid["axes"]["csbm.q"]) == 11
    ratios = [b / a for a, b in zip(block["csbm.mu_norm"], block["csbm.mu_norm"][1:], strict=False)]
    assert len(ratios) == 14
    assert ratios == pytest.approx([math.prod(ratios) ** (1 / 14)] * 14, rel=0.02)
    assert (block["csbm.mu_norm"][0], block["csbm.mu_norm"][-1]) == (0.005, 8.58)
