from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from fake_results import FakeSweep, write_sweep
from scipy import stats

from lcat_analysis.compare import compare
from lcat_analysis.comparison_table import comparison_table
from lcat_analysis.load import load
from lcat_analysis.paired import paired_test
from lcat_analysis.select import select
from lcat_core.errors import ResultsError


def sweep_with(tmp_path: Path, accuracies: dict[str, list[float | None]], **options):
    """A sweep on one dataset with these test accuracies by seed."""
    seeds = max(map(len, accuracies.values()))
    sweep = FakeSweep(models=tuple(accuracies), datasets=("Cora",), seeds=seeds, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        values = accuracies[result["model"]]
        if result["seed"] >= len(values):
            path.unlink()
            continue
        result["test"]["accuracy"] = values[result["seed"]]
        path.write_text(json.dumps(result))
    return compare(select(load(folder)), **options)


def only(comparisons) -> dict:
    (row,) = comparisons.table.to_dict("records")
    return row


def test_each_model_is_tested_against_its_baseline_on_the_same_seeds(selection, comparisons):
    row = comparisons.table.query("model == 'cat' and dataset == 'Cora'").iloc[0]
    expected = paired_test(selection.values("cat", ("Cora",)), selection.values("gat", ("Cora",)))
    assert (row["difference"], row["p"]) == pytest.approx((expected.difference, expected.p))
    assert len(comparisons.table) == 2 * 4


def test_pairs_follow_the_seed_not_the_order_of_files(tmp_path):
    gat = [0.70, 0.80, 0.90, 0.75]
    cat = [value + 0.01 + 0.001 * i for i, value in enumerate(gat)]
    row = only(sweep_with(tmp_path, {"gat": gat, "cat": cat}))
    assert row["difference"] == pytest.approx(1.15)
    assert row["sd"] == pytest.approx(np.std([1.0, 1.1, 1.2, 1.3], ddof=1))


def test_holm_multiplies_the_sorted_p_values_and_keeps_them_rising(comparisons):
    p = comparisons.table["p"].to_numpy(float)
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    expected = np.empty_like(p)
    expected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1)
    assert comparisons.table["p_holm"].to_numpy(float) == pytest.approx(expected)


def test_the_family_of_holm_can_be_a_dataset(results, selection):
    found = compare(selection, results.grid["compare"], family="dataset").table
    for _, group in found.groupby("dataset"):
        assert group["p_holm"].min() == pytest.approx(min(1, 2 * group["p"].min()))


def test_a_clear_gain_is_better_and_its_mirror_worse(tmp_path):
    gat = [0.70, 0.71, 0.72, 0.73, 0.74]
    cat = [0.75, 0.755, 0.77, 0.78, 0.791]
    assert only(sweep_with(tmp_path / "a", {"gat": gat, "cat": cat}))["verdict"] == "better"
    assert only(sweep_with(tmp_path / "b", {"gat": cat, "cat": gat}))["verdict"] == "worse"


def test_a_small_difference_with_little_spread_is_equivalent(tmp_path):
    gat = [0.700, 0.710, 0.720, 0.730]
    cat = [0.701, 0.709, 0.7205, 0.7301]
    assert only(sweep_with(tmp_path, {"gat": gat, "cat": cat}))["verdict"] == "equivalent"


def test_a_difference_that_the_seeds_cannot_tell_is_undetermined(tmp_path):
    gat = [0.70, 0.74, 0.66]
    cat = [0.75, 0.70, 0.73]
    assert only(sweep_with(tmp_path, {"gat": gat, "cat": cat}))["verdict"] == "undetermined"


def test_a_significant_difference_within_the_margin_is_better_and_says_so(tmp_path):
    gat = [0.700, 0.710, 0.720, 0.730, 0.740]
    cat = [0.7011, 0.7112, 0.7211, 0.7312, 0.7411]
    row = only(sweep_with(tmp_path, {"gat": gat, "cat": cat}))
    assert (row["verdict"], row["note"]) == ("better", "though within ±0.5")


def test_two_equal_gains_do_not_prove_anything(tmp_path):
    row = only(sweep_with(tmp_path, {"gat": [0.70, 0.71], "cat": [0.72, 0.73]}))
    assert (row["verdict"], row["p"]) == ("undetermined", 0.5)
    assert "every difference is the same" in row["note"]


def test_for_a_loss_lower_is_better(tmp_path):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=5, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        result["test"]["loss"] = (0.5 if result["model"] == "gat" else 0.1) + 0.01 * result["seed"] ** 2
        result["test"]["loss"] += 0.001 * result["seed"] * (result["model"] == "cat")
        path.write_text(json.dumps(result))
    comparisons = compare(select(load(folder), "loss"))
    assert only(comparisons)["verdict"] == "better"
    assert comparison_table(comparisons).rows[0].cells[4].text == "−0.3980"
    assert comparisons.outcome() == {("cat", "Cora"): "better"}


def test_unequal_seeds_are_refused_naming_what_is_missing(tmp_path):
    row = only(sweep_with(tmp_path, {"gat": [0.7, 0.71, 0.72, 0.73], "cat": [0.7, 0.75]}))
    assert (row["verdict"], row["note"]) == ("refused", "CAT lacks seeds 2, 3")


def test_a_diverged_run_counts_as_missing(tmp_path):
    row = only(sweep_with(tmp_path, {"gat": [0.7, 0.71, 0.72], "cat": [0.7, None, 0.75]}))
    assert (row["verdict"], row["note"]) == ("refused", "CAT lacks seed 1")


def test_a_seed_that_diverged_in_both_models_is_refused_too(tmp_path):
    row = only(sweep_with(tmp_path, {"gat": [0.7, None, 0.72], "cat": [0.7, None, 0.75]}))
    assert (row["verdict"], row["note"]) == ("refused", "both models diverged on seed 1")


def test_one_seed_is_refused(tmp_path):
    row = only(sweep_with(tmp_path, {"gat": [0.7], "cat": [0.75]}))
    assert (row["verdict"], row["note"]) == ("refused", "only seed 0: a paired test needs at least 2 seeds")


def test_missing_seeds_are_named_with_their_split(tmp_path):
    sweep = FakeSweep(
        models=("gat", "cat"),
        datasets=("Cora",),
        seeds=2,
        split_seeds=(0, 1),
        axes={},
        over=(),
        histories=False,
    )
    folder = write_sweep(tmp_path, sweep)
    lost = load(folder).runs.query("model == 'gat' and split_seed == 1 and seed == 0")
    Path(lost["path"].iloc[0], "result.json").unlink()
    assert only(compare(select(load(folder))))["note"] == "GAT lacks seed 0 of split 1"


def test_no_table_shows_a_value_that_is_not_a_number(tmp_path):
    for name, values in {"one": [0.7], "same": [0.7, 0.7], "tied": [0.71, 0.69, 0.7]}.items():
        found = sweep_with(tmp_path / name, {"gat": [0.7] * len(values), "cat": values})
        texts = [cell.text for row in comparison_table(found).rows for cell in row.cells]
        assert not any("nan" in text.lower() for text in texts)


def test_model_and_baseline_share_the_number_of_heads(tmp_path):
    sweep = FakeSweep(
        models=("gat", "cat"), datasets=("Cora",), seeds=3, histories=False, over=(), match=("lcat.heads",),
        axes={"lcat.heads": [1, 8]},
    )  # fmt: skip
    selection = select(load(write_sweep(tmp_path, sweep)))
    row = compare(selection).table.query("`lcat.heads` == 8").iloc[0]
    expected = selection.values("cat", ("Cora", 8)) - selection.values("gat", ("Cora", 8))
    assert row["difference"] == pytest.approx(expected.mean())


def heads_sweep(tmp_path: Path, match: tuple[str, ...], asked: bool):
    """cat with 1 and 8 heads; gcn with 8 heads either not asked for, or asked for and not finished."""
    sweep = FakeSweep(
        models=("gcn", "cat"), datasets=("Cora",), seeds=3, histories=False, over=(), match=match,
        axes={"lcat.heads": [1, 8]},
    )  # fmt: skip
    folder = write_sweep(tmp_path, sweep)
    for path in load(folder).runs.query("model == 'gcn' and `lcat.heads` == 8")["path"]:
        Path(path, "result.json").unlink()
    if not asked:
        (folder / "runs.jsonl").unlink()
    return compare(select(load(folder)), {"cat": "gcn"}).table.set_index("lcat.heads")


def test_a_baseline_with_a_single_variant_serves_all_and_says_so(tmp_path):
    table = heads_sweep(tmp_path, (), asked=False)
    assert "refused" not in set(table["verdict"])
    assert table.loc[8, "note"] == "baseline with lcat.heads = 1"


def test_a_declared_match_forbids_a_baseline_with_other_heads(tmp_path):
    table = heads_sweep(tmp_path, ("lcat.heads",), asked=False)
    assert (table.loc[8, "verdict"], table.loc[8, "note"]) == (
        "refused",
        "GCN has no finished run on Cora with lcat.heads = 8",
    )
    assert table.loc[1, "verdict"] != "refused"


def test_a_baseline_that_is_not_finished_is_not_replaced_by_another_variant(tmp_path):
    assert heads_sweep(tmp_path, (), asked=True).loc[8, "verdict"] == "refused"


def test_a_missing_baseline_is_an_error_with_the_nearest_name(selection):
    with pytest.raises(ResultsError, match=r"the baseline of 'cat', 'gatt', has no finished run.*did you mean"):
        compare(selection, {"cat": "gatt"})


def test_without_a_declaration_the_papers_pairs_are_used(selection):
    assert compare(selection).baselines == {"cat": "gat", "lcat": "gat"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must be between 0 and 1"),
        ({"margin": 0}, "the margin must be positive"),
        ({"family": "al"}, "unknown family: 'al'; did you mean 'all'"),
        ({"unit": "splits"}, "unknown unit: 'splits'; did you mean 'split'"),
    ],
)
def test_bad_settings_are_refused(selection, options, message):
    with pytest.raises(ResultsError, match=message):
        compare(selection, **options)


def test_without_a_margin_no_difference_of_losses_is_equivalent(tmp_path):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=5, axes={}, over=(), histories=False)
    selection = select(load(write_sweep(tmp_path, sweep)), "loss")
    assert only(compare(selection))["verdict"] == "undetermined"
    assert only(compare(selection, margin=0.5))["verdict"] == "equivalent"


def splits_sweep(tmp_path: Path):
    """Three splits with four seeds each; on each split CAT gains another amount, and seeds move little."""
    sweep = FakeSweep(
        models=("gat", "cat"), datasets=("Cora",), seeds=4, split_seeds=(0, 1, 2), axes={}, over=(), histories=False
    )
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        gain = (0.001, 0.02, 0.03)[result["split_seed"]] if result["model"] == "cat" else 0
        result["test"]["accuracy"] = 0.8 + gain + 1e-4 * (result["seed"] * (1 + (result["model"] == "cat"))) ** 2
        path.write_text(json.dumps(result))
    return select(load(folder))


def test_seeds_of_one_split_are_not_taken_for_more_splits(tmp_path):
    selection = splits_sweep(tmp_path)
    runs, splits = only(compare(selection)), only(compare(selection, unit="split"))
    assert (runs["n"], splits["n"]) == (12, 3)
    assert runs["difference"] == pytest.approx(splits["difference"])
    means = [selection.values(model, ("Cora",)).groupby("split_seed").mean() for model in ("cat", "gat")]
    # The splits share nodes: one test node per three training nodes (Nadeau and Bengio, 2003).
    difference = means[0] - means[1]
    t = difference.mean() / (difference.std(ddof=1) * (1 / 3 + 0.2 / 0.6) ** 0.5)
    assert splits["p"] == pytest.approx(2 * stats.t.sf(t, 2))
    assert math.isnan(splits["p_wilcoxon"])
    assert (runs["verdict"], splits["verdict"]) == ("better", "undetermined")


def test_the_table_says_when_pairs_of_several_splits_are_pooled(tmp_path, comparisons):
    selection = splits_sweep(tmp_path)
    assert "pooled as if independent" in " ".join(comparison_table(compare(selection)).notes)
    assert "pooled" not in " ".join(comparison_table(compare(selection, unit="split")).notes)
    assert "pooled" not in " ".join(comparison_table(comparisons).notes)


def test_a_test_of_splits_needs_two(selection):
    assert set(compare(selection, unit="split").table["note"]) == {
        "only one split: a paired test of splits needs at least 2"
    }


def test_a_declared_model_without_a_run_is_named_beside_the_tests_of_the_others(selection):
    found = compare(selection, {"cat": "gat", "lcatv2": "gatv2"}, strict=False)
    assert len(found.tested) == 4
    assert "Refused: L-CATv2 − GATv2: L-CATv2 has no finished run." in comparison_table(found).notes


def test_a_difference_that_only_the_correction_rejects_is_suggestive(tmp_path):
    gat = [0.700, 0.710, 0.720, 0.730]
    accuracies = {"gat": gat, "cat": [0.704, 0.726, 0.728, 0.750], "lcat": [0.69, 0.72, 0.71, 0.74]}
    table = sweep_with(tmp_path, accuracies).table.set_index("model")
    assert table.loc["cat", "p"] < 0.05 < table.loc["cat", "p_holm"]
    assert table["verdict"].to_dict() == {"cat": "suggestive", "lcat": "undetermined"}


def test_the_footer_explains_suggestive(comparisons):
    assert "suggestive if only the unadjusted p < 0.05" in " ".join(comparison_table(comparisons).notes)


def test_a_test_of_splits_needs_their_sizes(tmp_path):
    folder = tmp_path / "real"
    splits_sweep(tmp_path)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        path.write_text(json.dumps(result | {"settings": {}}))
    selection = select(load(folder))
    assert "--overlap 0.25" in only(compare(selection, unit="split"))["note"]
    assert only(compare(selection, unit="split", overlap=0.0))["p"] == pytest.approx(
        stats.ttest_rel(*(selection.values(m, ("Cora",)).groupby("split_seed").mean() for m in ("cat", "gat"))).pvalue
    )


def test_counts_say_how_large_the_splits_are(tmp_path):
    selection = splits_sweep(tmp_path)
    folder = tmp_path / "real"
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        counts = {
            split: {"correct": round(1000 * result[split]["accuracy"]), "total": 1000} for split in ("train", "test")
        }
        result |= {split: result[split] | {"accuracy": count["correct"] / 1000} for split, count in counts.items()}
        path.write_text(json.dumps(result | {"counts": counts}))
    assert selection.test_per_train == {"Cora": pytest.approx(1 / 3)}
    assert select(load(folder)).test_per_train == {"Cora": 1.0}


def test_common_seeds_pair_what_both_models_have_and_say_so(tmp_path):
    accuracies = {"gat": [0.70, 0.71, 0.72, 0.735], "cat": [0.71, 0.73, 0.725, 0.75]}
    whole = sweep_with(tmp_path / "whole", accuracies)
    lost = tmp_path / "lost"
    sweep_with(lost, accuracies)
    (run,) = lost.glob("*/runs/gat-*-s2-*")
    (run / "result.json").unlink()
    selection = select(load(lost))
    assert only(compare(selection))["verdict"] == "refused"
    row = only(compare(selection, common_seeds=True))
    assert (row["n"], row["note"]) == (3, "common seeds only: GAT lacks seed 2")
    kept = [0, 1, 3]
    expected = stats.ttest_rel(*([accuracies[m][i] for i in kept] for m in ("cat", "gat"))).pvalue
    assert row["p"] == pytest.approx(expected)
    assert only(whole)["n"] == 4


def test_no_common_seed_is_said(tmp_path):
    row = only(sweep_with(tmp_path, {"gat": [0.7, 0.8, None, None], "cat": [None, None, 0.7, 0.8]}, common_seeds=True))
    assert row["verdict"] == "refused"
    assert row["note"].startswith("no common seed: CAT lacks seeds 0, 1")
