"""docs/robustness.py turns result folders into verdicts on the paper's claims."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest
from fake_results import FakeSweep, write_sweep

SCRIPT = Path(__file__).parents[2] / "docs" / "robustness.py"
ABLATION = ("gcn", "gcngat", "gat", "cat", "lcat", "cat_l1", "cat_l2")


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("robustness_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("differences", "expected"),
    [([1.0, 1.2, 1.1], "holds"), ([-1.0, -1.2, -1.1], "does not hold"), ([1.0, -1.2, 0.1], "undecided")],
)
def test_a_verdict_needs_an_interval_on_one_side_of_zero(page, differences, expected):
    assert page.verdict(pd.Series(differences))[0] == expected


def test_one_seed_decides_nothing(page):
    assert page.verdict(pd.Series([3.0])) == ("undecided", "n = 1")


def test_the_page_has_figures_tables_and_a_verdict_for_every_claim_and_dataset(page, tmp_path):
    common = {"datasets": ("Cora", "AmazonPhoto"), "seeds": 3, "over": (), "histories": False}
    levels = {"noise.features": [0, 0.5, 1.0], "noise.edges": [0, 0.5]}
    write_sweep(tmp_path, FakeSweep("noise_small", models=("gcn", "gat", "cat", "lcat"), axes=levels, **common))
    axes = {"lcat.heads": [1, 8], "lcat.init": ["uniform", "normal"]}
    write_sweep(tmp_path, FakeSweep("init_small", models=("gcn", "gat", "cat", "lcat"), axes=axes, **common))
    models = (*ABLATION, "gcngatv2", "gatv2", "catv2", "lcatv2", "catv2_l1", "catv2_l2")
    write_sweep(tmp_path, FakeSweep("ablation_small", models=models, axes={}, **common))
    page.main(tmp_path, tmp_path)
    text = (tmp_path / "robustness.md").read_text()
    claims = len(page.NOISE) + len(page.INITIALISATION) + len(list(page._ablation_claims()))
    verdicts = sum(text.count(f"| **{name}**") for name in ("holds", "does not hold", "undecided"))
    assert verdicts == 2 * claims
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"robustness_noise.png", "robustness_lambdas.png"}
    assert "not run here yet" not in text
    (tmp_path / "init_small").rename(tmp_path / "elsewhere")
    page.main(tmp_path, tmp_path)
    assert (tmp_path / "robustness.md").read_text() == text, "a section without results stays as it was"


def test_without_results_the_claims_are_listed_as_not_run(page, tmp_path):
    page.main(tmp_path, tmp_path)
    assert (tmp_path / "robustness.md").read_text().count("not run here yet") == 27
