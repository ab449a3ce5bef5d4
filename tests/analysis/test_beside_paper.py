from __future__ import annotations

import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis.load import load
from lcat_analysis.paper import beside_paper, find_published, paper_figure, paper_table
from lcat_analysis.select import select
from lcat_core.errors import ResultsError


def test_our_cell_stands_beside_the_published_one(selection):
    row = beside_paper(selection).query("model == 'cat' and dataset == 'AmazonPhoto'").iloc[0]
    ours = selection.values("cat", ("AmazonPhoto",))
    assert (row["published"], row["published_sd"]) == (94.77, 0.47)
    assert row["difference"] == pytest.approx(ours.mean() - 94.77)
    assert row["in_sds"] == pytest.approx((ours.mean() - 94.77) / 0.47)


def test_every_cell_that_both_have_is_compared(selection):
    assert len(beside_paper(selection)) == 5 * 4


def test_heads_and_initialisation_pick_the_published_row():
    found = find_published("lcat", "ogbn-proteins", "auc", {"heads": "8", "init": "uniform"})
    assert (found["mean"], found["std"], found["experiment"]) == (78.85, 1.76, "ablation")


def test_the_misprinted_cell_is_not_used():
    """The initialisation table prints CATv2's 64.32 for CAT; the ablation table has 74.19."""
    assert find_published("cat", "ogbn-proteins", "auc", {"heads": "1", "init": "uniform"})["mean"] == 74.19


def test_score_weights_pick_the_published_row():
    shared = find_published("pnacat", "Cora", "accuracy", {"weights": "shared"})
    separate = find_published("pnacat", "Cora", "accuracy", {"weights": "separate"})
    assert shared["table"] != separate["table"]


def test_unknown_settings_take_the_row_that_does_not_print_them():
    assert find_published("cat", "ogbn-arxiv", "accuracy", {})["table"] == "tab:performance_ogb"


def test_rows_that_differ_in_an_unknown_setting_are_not_guessed_between():
    assert find_published("pnacat", "Cora", "accuracy", {}) is None


@pytest.mark.parametrize(
    ("model", "dataset", "metric"),
    [("mine", "Cora", "accuracy"), ("cat", "Mine", "accuracy"), ("cat", "Cora", "f1")],
)
def test_what_the_paper_does_not_have_is_none(model, dataset, metric):
    assert find_published(model, dataset, metric, {}) is None


def test_the_spread_over_splits_stands_beside_the_spread_over_seeds(tmp_path):
    sweep = FakeSweep(
        models=("gat",), datasets=("Cora",), seeds=3, split_seeds=(0, 1, 2), axes={}, over=(), histories=False
    )
    chosen = select(load(write_sweep(tmp_path, sweep)))
    row = beside_paper(chosen).iloc[0]
    by_split = chosen.runs.groupby("split_seed")["value"]
    assert row["sd_seeds"] == pytest.approx(by_split.std(ddof=1).mean())
    assert row["sd_splits"] == pytest.approx(by_split.mean().std(ddof=1))


def test_the_table_and_the_heat_map_show_every_cell(selection):
    beside = beside_paper(selection)
    assert len(paper_table(beside, []).rows) == 20
    figure = paper_figure(beside, selection)
    assert len(figure.axes[0].texts) == 20


def test_runs_with_other_settings_are_named_and_not_coloured(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("gat",), datasets=("Cora",), seeds=2, axes={}, over=()))
    for path in folder.glob("runs/*/config.yaml"):
        path.write_text("optim: {max_epoch: 100}\ngnn: {layers_mp: 4}\n")
    chosen = select(load(folder))
    beside = beside_paper(chosen)
    assert list(beside["departures"]) == ["optim.max_epoch 100 instead of 2500"]
    assert "All cells have other settings than the paper's" in paper_table(beside, []).notes[-1]
    with pytest.raises(ResultsError, match=r"optim\.max_epoch 100 instead of 2500"):
        paper_figure(beside, chosen)


def test_nothing_in_common_with_the_paper_is_an_error(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Mine",), seeds=2, axes={}, over=(), histories=False)
    chosen = select(load(write_sweep(tmp_path, sweep)))
    with pytest.raises(ResultsError, match=r"none of these models and datasets"):
        paper_table(beside_paper(chosen), [])


def test_runs_with_noise_do_not_stand_beside_numbers_of_undisturbed_data(tmp_path):
    axes = {"noise.features": [0, 1.0]}
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), axes=axes, over=(), histories=False)
    beside = beside_paper(select(load(write_sweep(tmp_path, sweep))))
    assert list(beside["noise.features"]) == [0]


def test_a_setting_that_the_sweep_does_not_vary_comes_from_the_configuration_of_its_runs(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("lpnacat",), datasets=("Cora",), seeds=2, axes={}, over=()))
    with pytest.raises(ResultsError):  # which weights is not said, and the paper has two rows
        paper_table(beside_paper(select(load(folder))), [])
    for run in (folder / "runs").iterdir():
        (run / "config.yaml").write_text("lcat: {score_weights: separate}\n")
    assert beside_paper(select(load(folder)))["published"].tolist() == [85.63]
