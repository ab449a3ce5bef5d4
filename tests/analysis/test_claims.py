"""Verdicts on claims: a difference per seed, and whether its interval excludes zero."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis.claims import Claim, DatasetRuns, claims_markdown, distance_inside, judge
from lcat_analysis.load import load
from lcat_analysis.robustness_claims import ablation_claims, initialisation_claims, noise_claims
from lcat_analysis.select import select


@pytest.mark.parametrize(
    ("differences", "expected"),
    [([1.0, 1.2, 1.1], "holds"), ([-1.0, -1.2, -1.1], "does not hold"), ([1.0, -1.2, 0.1], "undecided")],
)
def test_a_verdict_needs_an_interval_on_one_side_of_zero(differences, expected):
    assert judge(pd.Series(differences))[0] == expected


def test_equal_differences_of_three_seeds_decide_nothing():
    assert judge(pd.Series([0.25, 0.25, 0.25]))[0] == "undecided"


def test_one_seed_decides_nothing():
    assert judge(pd.Series([3.0])) == ("undecided", "n = 1")


def test_among_equally_good_models_none_is_called_worse_than_the_best():
    """The best other model of every seed would be ahead of each model by luck."""
    noise = np.random.default_rng(0).normal(80, 1, (200, 4))
    columns = [pd.DataFrame({"model": m, "seed": range(200), "value": noise[:, i]}) for i, m in enumerate("abcd")]
    runs = DatasetRuns(pd.concat(columns), pd.DataFrame())
    assert judge(runs.lead(runs.score, "a"))[0] == "undecided"


def test_a_model_between_two_equal_ones_is_not_called_outside():
    low, value, high = (pd.Series(v) for v in np.random.default_rng(1).normal(80, 1, (3, 200)))
    assert judge(distance_inside(value, low, high))[0] == "undecided"
    assert judge(distance_inside(value, low - 5, high + 5))[0] == "holds"
    assert judge(distance_inside(value + 9, low - 5, high + 5))[0] == "does not hold"


def test_the_ablation_names_the_models_of_both_scores():
    texts = [claim.text for claim in ablation_claims()]
    assert texts[0] == "GCN-GAT lies between GCN and GAT (distance inside the two, negative outside)."
    assert texts[1] == "Learning λ1 alone is better than λ2 alone: CAT-λ1 compared with CAT-λ2."
    assert [text.replace("v2", "") for text in texts[5:]] == texts[:5]


def test_claims_without_results_are_listed_as_not_run():
    text = claims_markdown([*noise_claims(), *initialisation_claims(), *ablation_claims()], None)
    assert text.count("not run here yet") == 27


def test_a_claim_is_judged_on_every_dataset(tmp_path):
    sweep = FakeSweep(models=("gat", "dense"), datasets=("Cora", "GitHub"), seeds=5, axes={}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)))
    claim = Claim("GAT is better.", "nowhere", lambda runs: runs.score("gat") - runs.score("dense"))
    header, _, line = claims_markdown([claim], selection).splitlines()
    assert header == "| Claim of the paper | Where | Cora | GitHub |"
    assert line.startswith("| GAT is better. | nowhere | **holds** +")
    assert line.count("**holds**") == 2
