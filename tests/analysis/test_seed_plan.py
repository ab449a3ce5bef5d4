"""``lcat compare --plan``: the numbers against statsmodels and against simulation, the command, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fake_results import FakeSweep, write_sweep
from statsmodels.stats.power import TTestPower

from lcat_analysis.compare import compare
from lcat_analysis.load import load
from lcat_analysis.paired import paired_test
from lcat_analysis.seed_plan import pairs_needed, plan_seeds, plan_table
from lcat_analysis.select import select
from lcat_core.errors import ResultsError
from lcat_run.cli import main


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_the_number_of_pairs_is_that_of_statsmodels(effect, power):
    expected = TTestPower().solve_power(effect, alpha=0.05, power=power)
    assert pairs_needed(2 * effect, 2.0, power=power) == math.ceil(expected)


def test_splits_that_share_nodes_never_suffice_for_a_small_difference():
    assert pairs_needed(0.5, 0.5) == 10
    assert pairs_needed(0.5, 0.5, overlap=0.1) > 10
    assert pairs_needed(0.5, 0.5, overlap=0.2) is None


def test_so_many_pairs_detect_the_difference_as_often_as_planned():
    n = pairs_needed(0.5, 0.8, power=0.8)
    rng = np.random.default_rng(0)
    shown = [paired_test(rng.normal(0.5, 0.8, n), np.zeros(n)).p < 0.05 for _ in range(2000)]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.03)


def test_holm_and_an_uncertain_sd_need_more(comparisons):
    plan, difference = plan_seeds(comparisons)
    assert difference == comparisons.margin
    assert len(plan) == len(comparisons.tested) == 8
    assert (plan["needed"] < plan["needed_holm"]).all()
    assert (plan["needed_holm"] < plan["needed_cautious"]).all()
    first = comparisons.table.iloc[0]
    assert plan["needed_holm"].iloc[0] == pairs_needed(0.5, first["sd"], 0.05 / 8)
    assert all(len(row.cells) == 6 for row in plan_table(comparisons).rows)


def test_the_command_runs_the_seeds_that_are_missing(tmp_path, monkeypatch, capsys):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=3, axes={}, over=(), histories=False)
    write_sweep(tmp_path / "results", sweep)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "real", "--plan", "--difference", "0.2", "--margin", "0.001"]) == 0
    lines = capsys.readouterr().out.splitlines()
    needed = int(plan_seeds(compare(select(load("results/real"))), 0.2)[0]["needed_holm"].iloc[0])
    assert lines[-1] == f"  lcat sweep results/real/grid.yaml seeds {needed}"


def test_seeds_are_pairs_divided_by_splits(tmp_path, monkeypatch, capsys):
    sweep = FakeSweep(
        models=("gat", "cat"), datasets=("Cora",), seeds=2, split_seeds=(0, 1), axes={}, over=(), histories=False
    )
    folder = write_sweep(tmp_path, sweep)
    assert main(["compare", str(folder), "--plan", "--difference", "0.1", "--margin", "0.001"]) == 0
    needed = int(plan_seeds(compare(select(load(folder))), 0.1)[0]["needed_holm"].iloc[0])
    assert capsys.readouterr().out.rstrip().endswith(f"seeds {-(-needed // 2)} out_dir {tmp_path}")


def test_what_cannot_be_planned_is_refused(results, comparisons, capsys, sweep_folder):
    with pytest.raises(ResultsError, match="the difference must be positive, got -1"):
        plan_seeds(comparisons, -1)
    with pytest.raises(ResultsError, match="the power must be between 0 and 1, got 80"):
        plan_seeds(comparisons, power=80)
    loss = compare(select(results, "loss"), results.grid["compare"])
    with pytest.raises(ResultsError, match="say which difference of loss matters"):
        plan_seeds(loss)
    assert main(["compare", str(sweep_folder), "--difference", "1"]) == 2
    assert "--difference belongs to --plan" in capsys.readouterr().err


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 8, 0.5])
def test_equal_differences_need_as_many_pairs_as_the_signed_rank_test(alpha):
    n = pairs_needed(0.5, 0.0, alpha)
    assert paired_test(np.ones(n), np.zeros(n)).p < alpha
    assert paired_test(np.ones(n - 1), np.zeros(n - 1)).p >= alpha
