from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import yaml
from fake_results import FakeSweep, write_sweep

from lcat_analysis import csbm
from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_core.errors import ResultsError


def test_the_threshold_of_theorem_1_is_the_papers():
    """The paper's easy regime is ten times it, ‖μ‖ ≈ 4.29."""
    assert csbm.threshold_gat(csbm.Data()) == pytest.approx(0.1 * math.sqrt(2 * math.log(10_000)))
    assert round(10 * csbm.threshold_gat(csbm.Data()), 2) == 4.29


@pytest.mark.parametrize("q", [0.0, 0.1, 0.3])
def test_the_threshold_of_corollary_2_follows_its_formula(q):
    factor = math.sqrt((0.5 + 2 * q) / (10_000 * (0.5 - q) ** 2))
    assert csbm.threshold_cat(csbm.Data(), q) == pytest.approx(csbm.threshold_gat(csbm.Data()) * factor)


def test_the_threshold_is_infinite_where_p_equals_q():
    assert csbm.threshold_cat(csbm.Data(), 0.5) == math.inf


def test_the_noise_at_the_threshold_inverts_corollary_2():
    q = csbm.noise_at_threshold(csbm.Data(), 0.1)
    assert csbm.threshold_cat(csbm.Data(), q) == pytest.approx(0.1, rel=1e-3)


def test_a_distance_that_never_suffices_has_no_noise_threshold():
    assert csbm.noise_at_threshold(csbm.Data(), 1e-6) is None


@pytest.fixture(scope="module")
def selection(tmp_path_factory):
    """Two sweeps of q and one of ‖μ‖, as a CSBM run writes them: no validation set, γ in ``extra``."""
    folder = write_sweep(
        tmp_path_factory.mktemp("csbm"),
        FakeSweep(
            models=("gcn", "gat", "cat", "lcat"), datasets=("csbm",), seeds=2, over=(), histories=False,
            axes={"csbm.q": [0.0, 0.1, 0.2, 0.4], "csbm.mu_norm": [0.1, 4.29]},
        ),
    )  # fmt: skip
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        del result["val"]
        result["lambdas"] = [[0.9, 0.3]] if result["model"] == "lcat" else None
        if result["model"] in ("gat", "cat"):
            result["extra"] = {"gamma": {"same": 0.4, "opposite": None, "rest": 0.1 + result["params"]["csbm.q"]}}
        path.write_text(json.dumps(result))
        config = {"csbm": {"n": 1000, "p": 0.4, "sigma": 0.2}}
        (path.parent / "config.yaml").write_text(yaml.safe_dump(config))
    return select(load(folder))


def test_the_table_holds_settings_accuracy_gamma_and_lambda(selection):
    table = csbm.csbm_table(selection)
    assert {
        "model",
        "seed",
        "q",
        "mu_norm",
        "accuracy",
        "gamma_same",
        "gamma_rest",
        "lambda1",
        "lambda2",
    } <= set(table)
    cat = table.query("model == 'cat' and q == 0.4").iloc[0]
    assert (cat["gamma_same"], cat["gamma_rest"]) == (0.4, 0.5)
    assert table.query("model == 'lcat'")["lambda2"].unique() == [0.3]


def test_the_graphs_settings_come_from_the_runs_configuration(selection):
    assert csbm.csbm_data(selection) == csbm.Data(n=1000, p=0.4, sigma=0.2)


def test_panels_fix_what_does_not_vary(selection):
    assert csbm.panels(csbm.csbm_table(selection)) == [("mu_norm", 0.1), ("mu_norm", 4.29)]


def test_the_figure_has_rows_for_accuracy_gamma_and_lambda(selection):
    figure = csbm.csbm_figure(csbm.csbm_table(selection), csbm.csbm_data(selection))
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["accuracy", "γ of GAT", "γ of CAT", "λ of L-CAT"]


def test_threshold_lines_stand_where_the_theory_says():
    mu = np.geomspace(0.005, 8.58, 9)
    table = pd.DataFrame({"model": "gat", "seed": 0, "q": 0.1, "mu_norm": mu, "accuracy": 0.5})
    (ax,) = csbm.csbm_figure(table).axes
    vertical = [line for line in ax.lines if len(set(line.get_xdata())) == 1]
    places = {line.get_linestyle(): line.get_xdata()[0] for line in vertical}
    assert places["-"] == pytest.approx(csbm.threshold_gat(csbm.Data()))
    assert places["--"] == pytest.approx(csbm.threshold_cat(csbm.Data(), 0.1))


def test_other_results_are_no_csbm_sweep(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=1, axes={}, over=(), histories=False)
    with pytest.raises(ResultsError, match=r"not a CSBM sweep"):
        csbm.csbm_table(select(load(write_sweep(tmp_path, sweep))))
