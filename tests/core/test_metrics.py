import pytest

from lcat_core.metrics import default_metric, metric


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
