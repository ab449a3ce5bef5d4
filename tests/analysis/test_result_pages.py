"""docs/robustness.py and docs/trend.py turn archives of runs into verdicts on the paper's claims."""

import importlib
from pathlib import Path

import pytest
from fake_results import FakeSweep, write_sweep

from lcat_run import cli

DOCS = Path(__file__).parents[2] / "docs"
ABLATION = ("gcn", "gcngat", "gat", "cat", "lcat", "cat_l1", "cat_l2")
COMMON = {"seeds": 3, "over": (), "histories": False}


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return {name: importlib.import_module(name) for name in ("robustness", "trend")}


def write_archive(folder: Path, sweep: FakeSweep) -> None:
    cli.main(["export", str(write_sweep(folder, sweep)), "-o", str(folder / f"{sweep.name}.jsonl.gz")])


def test_the_page_on_robustness_has_figures_tables_and_a_verdict_for_every_claim_and_dataset(scripts, tmp_path):
    page = scripts["robustness"]
    common = COMMON | {"datasets": ("Cora", "AmazonPhoto")}
    levels = {"noise.features": [0, 0.5, 1.0], "noise.edges": [0, 0.5]}
    write_archive(tmp_path, FakeSweep("noise_small", models=("gcn", "gat", "cat", "lcat"), axes=levels, **common))
    axes = {"lcat.heads": [1, 8], "lcat.init": ["uniform", "normal"]}
    write_archive(tmp_path, FakeSweep("init_small", models=("gcn", "gat", "cat", "lcat"), axes=axes, **common))
    models = (*ABLATION, "gcngatv2", "gatv2", "catv2", "lcatv2", "catv2_l1", "catv2_l2")
    write_archive(tmp_path, FakeSweep("ablation_small", models=models, axes={}, **common))
    written = tmp_path / "robustness.md"
    written.write_text(page.page(tmp_path, tmp_path / "images", written), encoding="utf-8")
    text = written.read_text(encoding="utf-8")
    expected = 2 * (len(page.noise_claims()) + len(page.initialisation_claims()) + len(list(page.ablation_claims())))
    verdicts = sum(text.count(f"| **{name}**") for name in ("holds", "does not hold", "undecided"))
    assert verdicts == expected
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"robustness_noise.png", "robustness_lambdas.png"}
    assert "not run here yet" not in text
    (tmp_path / "init_small.jsonl.gz").unlink()
    assert page.page(tmp_path, current=written) == text, "a section without an archive stays as it was"


def test_without_archives_the_claims_are_listed_as_not_run(scripts, tmp_path):
    text = scripts["robustness"].page(tmp_path, current=tmp_path / "robustness.md")
    assert text.count("not run here yet") == 27


def test_the_page_on_the_trend_puts_measured_gains_beside_the_prediction(scripts, tmp_path):
    models = ("gat", "cat", "lcat", "gatv2", "catv2", "lcatv2")
    sweep = FakeSweep("heldout", models=models, datasets=("Actor", "SquirrelFiltered"), axes={}, **COMMON)
    write_archive(tmp_path, sweep)
    gains = scripts["trend"].gains(("heldout",), tmp_path)
    assert set(gains["dataset"]) == {"Actor", "SquirrelFiltered"} and (gains["n"] == 3).all()
    text = scripts["trend"].page(tmp_path, tmp_path / "images")
    came = text[text.index("## What came") : text.index("## The paper's datasets")]
    assert came.count("\n| Actor | 3 |") == 1 and "of 4 measured gains are inside" in came
    assert (tmp_path / "images/trend.png").exists()


def test_the_gain_is_the_mean_of_both_scores(scripts, tmp_path):
    models = ("gat", "cat", "lcat", "gatv2", "catv2", "lcatv2")
    write_archive(tmp_path, FakeSweep("heldout", models=models, datasets=("Actor",), axes={}, **COMMON))
    trend = scripts["trend"]
    runs = trend.select(trend.load(tmp_path / "heldout.jsonl.gz")).runs
    means = runs.groupby("model")["value"].mean()
    gains = trend.gains(("heldout",), tmp_path).set_index("group")["gain"]
    expected = (means["cat"] - means["gat"] + means["catv2"] - means["gatv2"]) / 2
    assert gains["CAT − GAT"] == pytest.approx(expected)
