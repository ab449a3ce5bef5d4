"""What stands beside the least-squares line: permutations, ranks, single datasets left out, weights."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from lcat_analysis.random_effects import random_effects
from lcat_analysis.trend import published_trend
from lcat_analysis.trend_fit import fit_line, fit_trend, permutation_p
from lcat_run.cli import main


def points(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(2, 40, n)
    return x, 0.02 * x + rng.normal(0, 0.4, n), [f"d{i}" for i in range(n)]


def test_few_datasets_are_permuted_in_every_way():
    x, y, _ = points(6)
    observed = abs(np.corrcoef(x, y)[0, 1])
    every = [abs(np.corrcoef(x, np.array(other))[0, 1]) for other in permutations(y)]
    assert permutation_p(x, y) == pytest.approx(np.mean(np.array(every) >= observed - 1e-12))


def test_many_datasets_are_permuted_at_random():
    x, y, _ = points(12, 4)
    rng = np.random.default_rng(1)
    shuffled = [abs(np.corrcoef(x, rng.permutation(y))[0, 1]) for _ in range(5000)]
    assert permutation_p(x, y) == pytest.approx(np.mean(shuffled >= abs(np.corrcoef(x, y)[0, 1])), abs=0.02)


def test_the_same_data_always_give_the_same_p():
    x, y, _ = points(11)
    assert permutation_p(x, y) == permutation_p(x, y)


def test_the_rank_correlation_is_that_of_scipy():
    x, y, names = points(12)
    y[3] = y[4]
    fit = fit_trend(x, y, names)
    expected = stats.spearmanr(x, y)
    assert fit.spearman == pytest.approx(expected.statistic)
    assert fit.p_spearman == pytest.approx(expected.pvalue, abs=0.02)


def test_every_dataset_is_left_out_once():
    x, y, names = points(7)
    fit = fit_trend(x, y, names)
    lines = [fit_line(np.delete(x, i), np.delete(y, i)) for i in range(7)]
    assert (fit.loo_low, fit.loo_high) == (min(line.slope for line in lines), max(line.slope for line in lines))
    worst = int(np.argmax([line.p for line in lines]))
    assert (fit.loo_p, fit.loo_without) == (lines[worst].p, f"d{worst}")


def test_the_published_trend_of_lcat_hangs_on_one_dataset():
    fit = published_trend().fits["L-CAT − GAT, mean of both scores"]
    assert (round(fit.loo_p, 2), fit.loo_without) == (0.36, "AmazonPhoto")


def test_weights_come_from_the_errors():
    x, y, names = points(9)
    errors = np.linspace(0.1, 0.8, 9)
    fit, meta = fit_trend(x, y, names, errors), random_effects(y, errors, x)
    assert (fit.meta_slope, fit.meta_p) == (meta.coefficients[1], meta.p[1])
    assert np.isnan(fit_trend(x, y, names).meta_slope)


def test_the_logarithm_makes_the_slope_one_per_doubling(capsys, tmp_path):
    found = published_trend(log_degree=True)
    means = found.points[found.points["pair"] == "CAT − GAT"]
    line = stats.linregress(np.log2(means["avg_degree"]), means["difference"])
    assert found.fits["CAT − GAT"].slope == pytest.approx(line.slope)
    assert main(["trend", "--published", "--log-degree", "-o", str(tmp_path / "t.csv")]) == 0
    assert "base-2 logarithm of the average degree" in " ".join(capsys.readouterr().out.split())
    header = (tmp_path / "t.csv").read_text().splitlines()[0]
    assert header.startswith("line,n,slope,intercept,r,p,ci_low,ci_high,p_permutation,spearman")
    assert len((tmp_path / "t-points.csv").read_text().splitlines()) == 45
