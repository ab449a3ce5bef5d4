from __future__ import annotations

import json
from importlib.resources import files

import pytest
import yaml

from graphgym_lcat.gym.csbm import csbm_result


@pytest.fixture
def settings():
    packaged = yaml.safe_load((files("lcat_configs") / "csbm.yaml").read_text(encoding="utf-8"))
    return {**packaged["csbm"], "n": 200, "steps": 3}


def test_a_fixed_point_has_the_form_of_a_result(settings):
    result = csbm_result({**settings, "model": "cat", "mu_norm": 4.29, "seed": 99}, seed=1)
    assert json.loads(json.dumps(result)) == result
    assert result["test"]["accuracy"] == result["val"]["accuracy"] > 0.9
    assert result["lambdas"] == [[1.0, 1.0]]
    assert set(result["extra"]["gamma"]) == {"same", "opposite", "rest"}
    assert result["dataset"]["avg_degree"] == pytest.approx(200 * (0.5 + 0.2) / 3, rel=0.1)


def test_a_learned_point_tells_its_lambdas_and_steps(settings):
    seen = []
    result = csbm_result({**settings, "model": "lcat", "learned": True}, seed=0, progress=lambda *at: seen.append(at))
    assert result["epochs"] == len(seen) == 3
    assert all(0 < value < 1 for value in result["lambdas"][0])


def test_the_seed_of_the_run_decides(settings):
    assert csbm_result(settings, seed=0) == csbm_result(settings, seed=0) != csbm_result(settings, seed=1)
