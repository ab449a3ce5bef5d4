from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from fake_results import FakeSweep, write_sweep

from lcat_analysis.compare import compare
from lcat_analysis.labels import place_labels
from lcat_analysis.load import load
from lcat_analysis.render import to_terminal
from lcat_analysis.select import select
from lcat_analysis.trend import Trend, published_trend, trend
from lcat_analysis.trend_figure import trend_figure
from lcat_analysis.trend_fit import fit_line
from lcat_analysis.trend_table import trend_table
from lcat_core.errors import ResultsError


@pytest.mark.parametrize(
    ("pair", "slope", "r"),
    [
        ("CAT − GAT", 0.0302, 0.81),
        ("CATv2 − GATv2", 0.0452, 0.82),
        ("L-CAT − GAT", 0.0285, None),
        ("L-CATv2 − GATv2", 0.0372, None),
    ],
)
def test_the_published_means_give_the_known_slopes(pair, slope, r):
    fit = published_trend().fits[pair]
    assert fit.n == 11
    assert round(fit.slope, 4) == slope
    if r is not None:
        assert round(fit.r, 2) == r


def test_both_scores_are_averaged_to_one_point_per_dataset():
    fits = published_trend().fits
    both = fits["CAT − GAT, mean of both scores"]
    assert both.n == 11
    assert both.slope == pytest.approx((fits["CAT − GAT"].slope + fits["CATv2 − GATv2"].slope) / 2)


def test_the_interval_over_both_scores_is_that_of_eleven_datasets():
    """Counted twice, the same points give [0.0167, 0.0490]."""
    both = published_trend().fits["L-CAT − GAT, mean of both scores"]
    assert (round(both.ci_low, 4), round(both.ci_high, 4)) == (0.0018, 0.0639)


def test_the_band_of_the_figure_is_that_of_the_mean_of_both_scores():
    found = published_trend()
    fit = found.fits["CAT − GAT, mean of both scores"]
    ax = trend_figure(found).axes[0]
    (line,) = [line for line in ax.lines if line.get_gid() == "fit"]
    (band,) = ax.collections
    x, y = line.get_xydata()[-1]
    assert y == pytest.approx(fit.intercept + fit.slope * x)
    top = max(y for _, y in band.get_paths()[0].vertices)
    points = found.points[found.points["group"] == "CAT − GAT"].groupby("dataset")[["avg_degree", "difference"]].mean()
    model = sm.OLS(points["difference"].to_numpy(), sm.add_constant(points["avg_degree"].to_numpy()))
    frame = model.fit(cov_type="HC3", use_t=True).get_prediction([[1.0, x]]).summary_frame(alpha=0.05)
    assert top == pytest.approx(frame["mean_ci_upper"].iloc[0])


def test_a_dataset_with_one_of_the_scores_is_not_averaged(tmp_path):
    models = ("gat", "cat", "gatv2", "catv2")
    folder = write_sweep(tmp_path, FakeSweep(models=models, seeds=3, axes={}, over=(), histories=False))
    for path in folder.glob("runs/catv2-Cora-*"):
        shutil.rmtree(path)
    selection = select(load(folder))
    found = trend(compare(selection), selection)
    assert found.fits["CAT − GAT"].n == 6
    assert found.fits["CAT − GAT, mean of both scores"].n == 5
    assert "CAT − GAT on Cora: only one of the scores, so it is not in the mean of both" in found.left_out


def test_no_more_than_twenty_datasets_are_named(tmp_path):
    names = tuple(f"Dataset{i}" for i in range(40))
    sweep = FakeSweep(models=("gat", "cat"), datasets=names, seeds=2, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        result["dataset"]["avg_degree"] = float(result["dataset"]["name"].removeprefix("Dataset")) + 1
        path.write_text(json.dumps(result))
    selection = select(load(folder))
    figure = trend_figure(trend(compare(selection), selection))
    assert len(figure.axes[0].texts) == 20


def test_slope_and_hc3_interval_agree_with_their_formulas():
    from scipy import stats

    generator = np.random.default_rng(0)
    x = generator.uniform(2, 40, 9)
    y = 0.03 * x + generator.normal(0, 0.2, 9)
    design = np.column_stack([np.ones(9), x])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ y
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    weights = ((y - design @ beta) / (1 - leverage)) ** 2
    covariance = inverse @ (design.T * weights) @ design @ inverse
    half = stats.t.isf(0.025, 7) * np.sqrt(covariance[1, 1])
    fit = fit_line(x, y)
    assert (fit.intercept, fit.slope) == pytest.approx(tuple(beta))
    assert (fit.ci_low, fit.ci_high) == pytest.approx((beta[1] - half, beta[1] + half))
    assert fit.p == pytest.approx(2 * stats.t.sf(abs(beta[1]) / np.sqrt(covariance[1, 1]), 7))


@pytest.mark.parametrize(("x", "y"), [([1.0, 2.0], [0.1, 0.2]), ([3.0, 3.0, 3.0], [0.1, 0.2, 0.3])])
def test_too_few_points_or_one_degree_give_no_line(x, y):
    assert fit_line(np.array(x), np.array(y)) is None


def test_a_point_that_alone_fixes_the_line_leaves_no_interval():
    fit = fit_line(np.array([1.0, 1.0, 5.0]), np.array([0.1, 0.2, 0.9]))
    assert fit.slope == pytest.approx(0.1875)
    assert (fit.ci_low, fit.ci_high, fit.p) == (None, None, None)


def test_a_sweep_gives_a_point_per_pair_and_dataset(comparisons, selection):
    found = trend(comparisons, selection)
    assert len(found.points) == 8
    assert set(found.fits) == {"CAT − GAT", "L-CAT − GAT"}
    assert found.left_out == []


def test_what_is_left_out_is_named(comparisons, selection):
    import dataclasses

    table = comparisons.table.copy()
    table.loc[0, ["verdict", "note"]] = ["refused", "CAT lacks seed 3"]
    found = trend(dataclasses.replace(comparisons, table=table), selection)
    assert found.left_out == ["CAT − GAT on AmazonPhoto: CAT lacks seed 3"]
    assert "Left out: CAT − GAT on AmazonPhoto: CAT lacks seed 3." in trend_table(found).notes


def test_nothing_to_fit_is_an_error(comparisons, selection):
    import dataclasses

    empty = dataclasses.replace(comparisons, table=comparisons.table.iloc[:0])
    with pytest.raises(ResultsError, match=r"there is no trend to fit"):
        trend(empty, selection)


def test_dataset_names_do_not_overlap_in_the_published_figure():
    from matplotlib.text import Annotation, Text

    figure = trend_figure(published_trend())
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        notes = [text for text in ax.texts if isinstance(text, Annotation)]
        assert len(notes) == 11
        boxes = [Text.get_window_extent(note, renderer) for note in notes]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_crowded_labels_move_apart():
    from matplotlib.text import Text

    from lcat_analysis.figures import new_figure

    figure, (ax,) = new_figure(4, 3)
    points = [(0.5, 0.5), (0.5, 0.5), (0.51, 0.5)]
    notes = place_labels(ax, points, ["first name", "second name", "third name"], points, fontsize=7, color="k")
    figure.canvas.draw()
    boxes = [Text.get_window_extent(note, figure.canvas.get_renderer()) for note in notes]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


def test_intervals_are_at_the_level_of_the_tests(results, selection):
    wide = trend(compare(selection, results.grid["compare"], alpha=0.01), selection)
    narrow = trend(compare(selection, results.grid["compare"]), selection)
    assert wide.fits["CAT − GAT"].ci_low < narrow.fits["CAT − GAT"].ci_low
    assert trend_table(wide).columns[2] == "99 % CI"


def test_settings_that_vary_are_refused_instead_of_counting_a_dataset_several_times(tmp_path):
    sweep = FakeSweep(models=("gat", "cat"), seeds=3, axes={"lcat.heads": [1, 8]}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)))
    with pytest.raises(
        ResultsError, match=r"one result per model and dataset, but the runs vary lcat.heads: .* --over lcat.heads"
    ):
        trend(compare(selection), selection)


def test_two_datasets_give_a_table_that_says_why_it_has_no_line(tmp_path):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora", "GitHub"), seeds=3, axes={}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)))
    assert "No line: a fit needs at least 3 points" in to_terminal(trend_table(trend(compare(selection), selection)))


def test_a_wide_band_does_not_dwarf_the_points(comparisons, selection):
    found = trend(comparisons, selection)
    found.points = found.points[found.points["dataset"] != "CiteSeer"]  # three datasets: one degree of freedom
    low, high = trend_figure(found).axes[0].get_ylim()
    bars = found.points[["ci_low", "ci_high"]].to_numpy(float)
    assert high - low < 1.4 * (max(bars.max(), 0) - min(bars.min(), 0))


def test_a_difference_of_losses_is_not_called_an_improvement_in_points(results):
    selection = select(results, "loss")
    notes = trend_table(trend(compare(selection, results.grid["compare"]), selection)).notes
    assert notes[0].startswith("Difference of loss, below 0 better against average degree")


def test_a_falling_line_has_real_minus_signs():
    fit = fit_line(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.4, 0.3, 0.1, 0.1]))
    texts = [cell.text for cell in trend_table(Trend(pd.DataFrame(), {"line": fit}, [])).rows[0].cells]
    assert texts[4] == "−0.95"
    assert not any("-" in text for text in texts)


def test_a_group_with_only_the_second_score_has_its_line(tmp_path):
    sweep = FakeSweep(models=("gatv2", "catv2"), seeds=3, axes={}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)))
    found = trend(compare(selection), selection)
    (pair,) = found.fits
    assert found.group_fit(found.points["group"].iloc[0]) is found.fits[pair]
