"""docs/robustness.py turns result folders into verdicts on the paper's claims."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from fake_results import FakeSweep, write_sweep

DOCS = Path(__file__).parents[2] / "docs"
ABLATION = ("gcn", "gcngat", "gat", "cat", "lcat", "cat_l1", "cat_l2")


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        return importlib.import_module("robustness")


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
    expected = 2 * (len(page.noise_claims()) + len(page.initialisation_claims()) + len(list(page.ablation_claims())))
    verdicts = sum(text.count(f"| **{name}**") for name in ("holds", "does not hold", "undecided"))
    assert verdicts == expected
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"robustness_noise.png", "robustness_lambdas.png"}
    assert "not run here yet" not in text
    (tmp_path / "init_small").rename(tmp_path / "elsewhere")
    page.main(tmp_path, tmp_path)
    assert (tmp_path / "robustness.md").read_text() == text, "a section without results stays as it was"


def test_without_results_the_claims_are_listed_as_not_run(page, tmp_path):
    page.main(tmp_path, tmp_path)
    assert (tmp_path / "robustness.md").read_text().count("not run here yet") == 27


def test_a_wrong_folder_does_not_empty_the_page_of_the_reproduction(tmp_path):
    before = (DOCS / "reproduction.md").read_bytes()
    done = subprocess.run([sys.executable, DOCS / "reproduction.py", tmp_path], capture_output=True, text=True)
    assert done.returncode != 0
    assert f"expected reproduction or reproduction_rate or reproduction_adjacency in {tmp_path}" in done.stderr
    assert (DOCS / "reproduction.md").read_bytes() == before
