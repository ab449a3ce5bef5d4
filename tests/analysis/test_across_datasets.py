"""Pairs and ranks over datasets, against scipy and against the numbers that are known of the published tables."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_results import FakeSweep, write_sweep
from scipy import stats

from lcat_analysis.across import Across, across_datasets, published_across, summarise_pairs
from lcat_analysis.compare import compare
from lcat_analysis.forest import forest_figure
from lcat_analysis.headline import across_sentences
from lcat_analysis.load import load
from lcat_analysis.metrics import ACCURACY, find_measure
from lcat_analysis.rank_figure import rank_figure
from lcat_analysis.rank_tables import pairs_table, posthoc_table, ranks_table
from lcat_analysis.ranking import published_ranking, rank_means, rank_models
from lcat_analysis.render import to_markdown
from lcat_analysis.select import select
from lcat_analysis.trend import published_trend
from lcat_analysis.trend_table import trend_table
from lcat_core.errors import ResultsError
from lcat_run.cli import main

WITHOUT_DENSE = ["gcn", "gat", "cat", "lcat", "gatv2", "catv2", "lcatv2"]


def effects(differences, errors=None):
    n = len(differences)
    errors = [math.nan] * n if errors is None else errors
    rows = {"model": "cat", "baseline": "gat", "dataset": [f"d{i}" for i in range(n)], "difference": differences}
    known = [9 if math.isfinite(e) else math.nan for e in errors]
    return pd.DataFrame(rows).assign(sd=np.array(errors) * 10**0.5, error=errors, df=known, ci_low=0.0, ci_high=1.0)


def test_a_pair_is_counted_tested_and_averaged_over_the_datasets():
    differences = np.array([0.5, 0.25, -0.125, 0.0, 0.75, 1.5, 0.25, 2.0])
    (row,) = summarise_pairs(effects(differences), ACCURACY).to_dict("records")
    assert (row["datasets"], row["wins"], row["ties"], row["losses"]) == (8, 6, 1, 1)
    expected = stats.wilcoxon(differences, method="exact" if not (differences == 0).any() else "auto").pvalue
    assert row["p_wilcoxon"] == pytest.approx(expected)
    test = stats.ttest_1samp(differences, 0)
    assert row["p_mean"] == pytest.approx(test.pvalue)
    assert (row["mean_low"], row["mean_high"]) == pytest.approx(tuple(test.confidence_interval()))
    assert math.isnan(row["pooled"])


def test_where_lower_is_better_a_smaller_value_wins():
    loss = find_measure("loss", {})
    (row,) = summarise_pairs(effects(np.array([-0.1, -0.2, 0.3])), loss).to_dict("records")
    assert (row["wins"], row["losses"]) == (2, 1)


def test_a_dataset_without_an_error_is_not_in_the_pooled_estimate():
    differences, errors = np.array([0.5, 0.2, 0.4, 9.0]), [0.1, 0.1, 0.1, math.nan]
    both = summarise_pairs(effects(differences, errors), ACCURACY).iloc[0]
    known = summarise_pairs(effects(differences[:3], errors[:3]), ACCURACY).iloc[0]
    assert both["pooled"] == pytest.approx(known["pooled"])
    assert both["datasets"] == 4


def test_the_published_numbers_are_those_of_an_independent_computation():
    ranking = published_ranking(WITHOUT_DENSE)
    assert ranking.mean_ranks.round(1)[["gcn", "cat", "lcat", "gat"]].to_dict() == {
        "gcn": 2.2, "cat": 3.0, "lcat": 4.1, "gat": 4.3,
    }  # fmt: skip
    assert ranking.p == pytest.approx(0.007, abs=5e-4)
    pairs = published_across().pairs.set_index("model")
    assert pairs[["wins", "datasets"]].loc["lcat"].tolist() == [6, 11]
    assert pairs.loc["lcat", "p_wilcoxon"] == pytest.approx(0.15, abs=5e-3)
    assert pairs[["wins", "datasets"]].loc["lcatv2"].tolist() == [8, 11]
    assert pairs.loc["lcatv2", "p_wilcoxon"] == pytest.approx(0.02, abs=1e-3)


def test_ranks_and_tests_agree_with_scipy_and_pandas():
    means = pd.DataFrame(np.random.default_rng(3).normal(80, 5, (9, 4)), columns=list("abcd"))
    ranking = rank_means(means)
    ranks = means.rank(axis=1, ascending=False)
    assert ranking.ranks[list("abcd")].equals(ranks)
    assert list(ranking.mean_ranks) == sorted(ranks.mean())
    friedman = stats.friedmanchisquare(*means.to_numpy().T)
    assert (ranking.statistic, ranking.p) == pytest.approx(tuple(friedman))
    for row in ranking.posthoc.to_dict("records"):
        assert row["p"] == pytest.approx(stats.wilcoxon(means[row["model"]], means[row["other"]]).pvalue)
    adjusted = stats.false_discovery_control(ranking.posthoc["p"])  # another correction, never above Holm's
    assert (ranking.posthoc["p_holm"] >= adjusted - 1e-12).all()


def test_means_that_differ_by_rounding_share_their_rank():
    ranking = rank_means(pd.DataFrame([[80.0, 80.000001, 70.0]] * 3, columns=list("abc")))
    assert ranking.ranks.iloc[0].to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_bars_connect_neighbours_that_are_not_told_apart():
    rng = np.random.default_rng(0)
    base = rng.normal(80, 5, 20)[:, None]
    means = pd.DataFrame(base + np.array([5, 4.9, 0, -0.1]) + rng.normal(0, 0.3, (20, 4)), columns=list("abcd"))
    assert rank_means(means).groups == [["a", "b"], ["d", "c"]]
    clear = pd.DataFrame(base + np.array([9, 6, 3, 0]) + rng.normal(0, 0.1, (20, 4)), columns=list("abcd"))
    assert rank_means(clear).groups == []


def test_a_dataset_that_a_model_lacks_is_left_out_and_named():
    means = pd.DataFrame({"gat": [1.0, 2.0, 3.0], "cat": [2.0, np.nan, 1.0]}, index=["A", "B", "C"])
    ranking = rank_means(means)
    assert list(ranking.means.index) == ["A", "C"]
    assert ranking.left_out == ["B: no result of CAT"]
    with pytest.raises(ResultsError, match="no dataset has results of all models"):
        rank_means(means.iloc[1:2])


def test_too_few_datasets_for_any_verdict_is_said():
    means = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 4)), columns=list("abcd"))
    notes = " ".join(ranks_table(rank_means(means)).notes)
    assert "no two models can be told apart: even a model that wins on every dataset has a Holm p of 0.38" in notes


def test_a_sweep_is_ranked_and_pooled(selection, comparisons):
    across, ranking = across_datasets(comparisons, selection), rank_models(selection)
    assert set(across.pairs["datasets"]) == {4}
    row = comparisons.table.iloc[0]
    effect = across.effects.iloc[0]
    assert (effect["difference"], effect["error"], effect["df"]) == (row["difference"], row["error"], row["n"] - 1)
    assert ranking.means.loc["Cora", "cat"] == pytest.approx(selection.values("cat", ("Cora",)).mean())
    for table in (pairs_table(across), ranks_table(ranking), posthoc_table(ranking)):
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
    first, second = across_sentences(across, ranking)
    assert first.startswith("Over 4 datasets, L-CAT is better than GAT on ")
    assert "too few to show a difference" in first
    assert second.startswith("Mean ranks of the 5 models run from 1.")


def test_several_settings_of_one_dataset_are_not_several_datasets(tmp_path):
    sweep = FakeSweep(
        models=("gat", "cat"), datasets=("Cora",), axes={"lcat.heads": [1, 4]}, over=(), seeds=2, histories=False
    )
    selection = select(load(write_sweep(tmp_path, sweep)))
    with pytest.raises(ResultsError, match=r"--over lcat\.heads"):
        rank_models(selection)
    with pytest.raises(ResultsError, match=r"--over lcat\.heads"):
        across_datasets(compare(selection), selection)


def test_an_unknown_model_is_named(selection):
    with pytest.raises(ResultsError, match="did you mean 'lcat'"):
        rank_models(selection, ["gat", "lcatt"])


@pytest.mark.parametrize("models", [2, 8, 20])
def test_figures_keep_their_texts_inside_and_apart(models):
    rng = np.random.default_rng(models)
    means = pd.DataFrame(rng.normal(80, 5, (12, models)), columns=[f"model {i}" for i in range(models)])
    figure = rank_figure(rank_means(means))
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    width, height = figure.canvas.get_width_height()
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_forest_has_a_diamond_as_wide_as_the_pooled_interval():
    across = published_across()
    figure = forest_figure(across)
    assert len(figure.axes) == 4
    for ax, pair in zip(figure.axes, across.pairs.to_dict("records"), strict=True):
        (diamond,) = ax.patches
        x = diamond.get_xy()[:, 0]
        assert (x.min(), x.max()) == pytest.approx((pair["pooled_low"], pair["pooled_high"]))
    assert figure.axes[0].get_yticklabels()[-1].get_text() == "pooled"


def test_the_documentation_has_the_published_numbers():
    page = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text(encoding="utf-8")
    for table in (pairs_table(published_across()), trend_table(published_trend())):
        rows = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
        assert "\n".join(rows) in page


def test_the_documented_error_rates_are_in_the_page_within_three_standard_errors_of_five_per_cent():
    docs = Path(__file__).parents[2] / "docs"
    rates = pd.read_csv(docs / "error_rates.csv")
    page = (docs / "analysis.md").read_text(encoding="utf-8")
    for row in rates.to_dict("records"):
        test = row["test"] if row["recommended"] else f"*{row['test']}*"
        assert f"| {row['data']} | {test} | {100 * row['type_1_error']:.1f} % | {100 * row['power']:.0f} % |" in page
    repetitions = int(re.search(r"(\d+) repetitions each", page)[1])
    three_errors = 3 * (0.05 * 0.95 / repetitions) ** 0.5
    assert rates.loc[rates["recommended"], "type_1_error"].max() <= 0.05 + three_errors


def test_the_direction_is_that_of_the_test_not_of_the_mean():
    differences = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, -60.0])
    for sign, word in ((1, "better"), (-1, "worse")):
        table = effects(sign * differences)
        pairs = summarise_pairs(table, ACCURACY, alpha=0.2)
        assert np.sign(pairs["mean"].iloc[0]) == -sign and pairs["p_holm"].iloc[0] < 0.2
        (sentence,) = across_sentences(Across(table, pairs, ACCURACY, 0.2, []), None)
        assert sentence.endswith(f"CAT is {word} than GAT across datasets.")


def test_a_sweep_without_any_pair_yet_is_ranked_and_reported(tmp_path, capsys):
    sweep = FakeSweep(
        models=("gcn", "gat", "cat"), datasets=("Cora", "GitHub"), seeds=2, axes={}, over=(), histories=False
    )
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/gat-*"):
        shutil.rmtree(path)
    results = load(folder)
    assert not compare(select(results), results.grid["compare"], strict=False).has_pairs
    assert main(["rank", str(folder)]) == 0
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").is_file()
