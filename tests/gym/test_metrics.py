import pytest
import torch
from sklearn.metrics import roc_auc_score

from graphgym_lcat.gym.metrics import area_under_curve, score_split


@pytest.mark.parametrize("seed", range(5))
def test_auc_equals_scikit_learn_with_ties(seed):
    generator = torch.Generator().manual_seed(seed)
    score = torch.randint(10, (200,), generator=generator) / 10
    true = torch.randint(2, (200,), generator=generator)
    assert area_under_curve(score, true) == pytest.approx(roc_auc_score(true, score))


def test_auc_of_one_class_is_one_half():
    assert area_under_curve(torch.rand(5), torch.ones(5, dtype=torch.long)) == 0.5


def test_two_classes_report_accuracy_and_auc():
    loss, metrics = score_split(torch.tensor([[2.0], [-1.0], [0.5]]), torch.tensor([1, 0, 0]))
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["auc"] == 1.0
    assert loss.item() > 0


def test_several_classes_report_accuracy():
    _, metrics = score_split(torch.eye(3), torch.tensor([0, 1, 0]))
    assert metrics == {"accuracy": pytest.approx(2 / 3)}
