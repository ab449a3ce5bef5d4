"""How metrics are written, and the rows that results carry for metrics of plugins."""

import pytest

from lcat_core.metrics import METRICS, default_metric, metric, recorded_metrics


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("accuracy", 0.58666, "58.67"), ("test.rocauc", 1.0, "100.00"), ("loss", 1.23456, "1.235")],
)
def test_fractions_are_written_in_per_cent_and_other_numbers_as_they_are(name, value, text):
    assert metric(name).format(value) == text


def test_a_result_carries_the_rows_of_registered_metrics():
    row = recorded_metrics({"metrics": {"brier": {"label": "Brier score", "higher_is_better": False}}})["brier"]
    assert (row.name, row.label, row.higher_is_better, row.percent) == ("brier", "Brier score", False, True)


@pytest.mark.parametrize("rows", [None, [], 3, {"brier": "low"}, {"accuracy": {"higher_is_better": False}}])
def test_anything_else_changes_no_metric(rows):
    assert recorded_metrics({"metrics": rows}) == {}
    assert METRICS["accuracy"].higher_is_better


@pytest.mark.parametrize(
    ("name", "label", "higher", "percent"),
    [
        ("accuracy", "accuracy", True, True),
        ("test.rocauc", "ROC-AUC", True, True),
        ("val.loss", "loss", False, False),
        ("rmse", "RMSE", False, False),
        ("test.mine", "mine", True, True),
    ],
)
def test_a_metric_has_a_label_a_direction_and_a_scale(name, label, higher, percent):
    found = metric(name)
    assert (found.label, found.higher_is_better, found.percent) == (label, higher, percent)


def test_the_default_is_the_first_known_one():
    assert default_metric(["loss", "auc", "accuracy"]) == "accuracy"
    assert default_metric(["epoch", "mine", "lr"]) == "mine"
    assert default_metric(["epoch"]) is None
