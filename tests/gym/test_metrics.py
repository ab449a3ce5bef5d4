"""The metrics of a run, and metrics that others register."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from run_outcomes import make_run, stats
from sklearn.metrics import roc_auc_score
from torch.nn.functional import one_hot
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.build import build_loop
from graphgym_lcat.gym.extra_metrics import EXTRA_METRICS
from graphgym_lcat.gym.metrics import REGISTERED, Task, area_under_curve, count_correct, register_metric, score_split
from graphgym_lcat.gym.runner import execute
from graphgym_lcat.gym.settings import check_settings
from lcat_core.errors import SettingsError, TrainingFailed
from lcat_core.metrics import METRICS, recorded_metrics


@pytest.fixture
def registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr("graphgym_lcat.gym.metrics.REGISTERED", REGISTERED)
    before = dict(REGISTERED)
    yield REGISTERED
    REGISTERED.clear()
    REGISTERED.update(before)


def brier(score, true):
    """The mean squared distance between the probabilities and the true classes."""
    wanted = torch.nn.functional.one_hot(true, score.size(1))
    return (score.exp() - wanted).square().sum(dim=1).mean().item()


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


def test_two_classes_report_auc_beside_accuracy_in_a_result(tmp_path, small):
    result = execute(make_run(tmp_path, small, **{"block_model.num_classes": 2}))
    assert {"accuracy", "auc", "loss"} == result["test"].keys()
    assert "metrics" not in result


def test_selection_by_auc_needs_two_classes(small):
    with pytest.raises(SettingsError, match="`metric_best: auc` needs two classes, got 5 classes"):
        build_loop({**small, "metric_best": "auc"})


def test_a_registered_metric_is_recorded_and_selects_in_its_direction(tmp_path, small, registry):
    register_metric("brier", tasks=(Task.MULTICLASS,), label="Brier score", higher_is_better=False, percent=False)(
        brier
    )
    run = make_run(tmp_path, check_settings({**small, "metric_best": "brier", "optim.max_epoch": 20}))
    result = execute(run)
    curve = [line["brier"] for line in stats(run, "val")]
    assert result["best_epoch"] == curve.index(min(curve))
    assert round(result["test"]["brier"], 4) == stats(run, "test")[result["best_epoch"]]["brier"]
    written = json.loads((run.run_dir / "result.json").read_text())
    row = recorded_metrics(written)["brier"]
    assert (row.label, row.higher_is_better, row.percent) == ("Brier score", False, False)


def test_a_metric_of_another_task_is_not_computed(registry):
    register_metric("pairs", tasks=(Task.BINARY,))(lambda score, true: 1.0)
    assert set(score_split(torch.eye(3), torch.tensor([0, 1, 0]))[1]) == {"accuracy"}
    assert "pairs" in score_split(torch.tensor([[2.0], [-1.0]]), torch.tensor([1, 0]))[1]


def test_a_name_that_is_taken_is_refused(registry):
    for name in ("accuracy", "loss", "auto", "epoch"):
        with pytest.raises(SettingsError, match=f"the name '{name}' of a metric is taken"):
            register_metric(name)(brier)


def test_a_metric_that_is_not_a_number_fails_the_run_with_its_name(registry):
    register_metric("undefined")(lambda score, true: float("nan"))
    with pytest.raises(TrainingFailed, match="the metric 'undefined' is nan"):
        score_split(torch.eye(3), torch.tensor([0, 1, 0]))


def test_a_metric_of_graphgym_is_recorded_if_the_configuration_names_it(tmp_path, small, monkeypatch):
    def share_of_zeros(true, pred, task_type):
        assert task_type == "classification_multi"
        return (torch.cat(pred).argmax(dim=1) == 0).float().mean()

    monkeypatch.setitem(register.metric_dict, "zeros", share_of_zeros)
    settings = check_settings({**small, "custom_metrics": ["zeros"], "metric_best": "zeros"})
    result = execute(make_run(tmp_path, settings))
    assert 0 <= result["val"]["zeros"] <= 1
    assert "accuracy" in result["val"]


def test_custom_metrics_must_be_registered(small, monkeypatch):
    monkeypatch.setitem(register.metric_dict, "zeros", brier)
    with pytest.raises(SettingsError, match="unknown metric in `custom_metrics`: 'zeroes'; did you mean 'zeros'"):
        check_settings({**small, "custom_metrics": ["zeroes"]})


def test_a_metric_that_selects_is_recorded_without_naming_it_twice(tmp_path, small):
    result = execute(make_run(tmp_path, check_settings({**small, "metric_best": "f1_macro"})))
    assert {"f1_macro", "accuracy"} <= set(result["val"])
    assert "metrics" not in result  # its direction and scale are known


def test_the_direction_of_an_unknown_metric_is_that_of_metric_agg(tmp_path, small, monkeypatch):
    monkeypatch.setitem(register.metric_dict, "spread", lambda true, pred, task: torch.cat(pred).std())
    settings = {**small, "metric_best": "spread", "metric_agg": "argmin"}
    result = execute(make_run(tmp_path, check_settings(settings)))
    assert result["metrics"]["spread"] == {"label": "spread", "higher_is_better": False, "percent": False}
    (path,) = tmp_path.rglob("val/stats.json")
    spreads = [json.loads(line)["spread"] for line in path.read_text().splitlines()]
    assert result["val"]["spread"] == pytest.approx(min(spreads), abs=1e-4)


@pytest.mark.parametrize("name", EXTRA_METRICS)
def test_every_extra_metric_is_in_the_table_of_metrics(name):
    assert METRICS[name].higher_is_better and METRICS[name].percent


def test_metrics_of_classes_equal_their_definitions():
    true, chosen = torch.tensor([0, 0, 0, 1, 1, 2]), torch.tensor([0, 0, 1, 1, 0, 0])
    call = {
        name: metric([true], [one_hot(chosen, 3).float()], "classification_multi")
        for name, metric in EXTRA_METRICS.items()
    }
    # Class 0: 2 right of 3, predicted 4 times; class 1: 1 of 2, predicted twice; class 2: 0 of 1, never predicted.
    assert call["f1_macro"] == pytest.approx((2 * 2 / (3 + 4) + 2 * 1 / (2 + 2) + 0) / 3)
    assert call["f1_micro"] == pytest.approx(3 / 6)
    assert call["balanced_accuracy"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)


def test_average_precision_is_the_mean_precision_at_the_positives():
    score, true = torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([1, 0, 1, 0])
    assert EXTRA_METRICS["ap"]([true], [score], "classification_binary") == pytest.approx((1 / 1 + 2 / 3) / 2)
    columns = torch.stack([true, true * 0], dim=1)  # a task without positives does not count
    scores = torch.stack([score, score], dim=1)
    assert EXTRA_METRICS["ap"]([columns], [scores], "classification_multilabel") == pytest.approx(5 / 6)


def test_a_main_of_graphgym_gets_a_message_for_an_unknown_metric(small):
    build_loop(small)
    cfg.metric_best = "acuracy"
    from graphgym_lcat.gym.metrics import metric_for_selection

    with pytest.raises(SettingsError, match="`metric_best` must be a metric, got 'acuracy'; did you mean 'accuracy'"):
        metric_for_selection(torch.tensor([0, 1, 2]))


def test_a_result_counts_the_correct_nodes_of_its_predictions(tmp_path, small):
    run = make_run(tmp_path, small, **{"lcat.save_predictions": True})
    counts = execute(run)["counts"]
    saved = np.load(run.run_dir / "predictions.npz")
    for split in ("train", "val", "test"):
        nodes = saved[f"{split}_nodes"]
        predicted = saved["outputs"].argmax(axis=1)
        assert counts[split] == {
            "correct": int((predicted[nodes] == saved["labels"][nodes]).sum()),
            "total": len(nodes),
        }


@given(total=st.integers(1, 2**22), share=st.floats(0, 1))
def test_an_accuracy_in_single_precision_gives_back_its_count(total, share):
    correct = round(share * total)
    accuracy = float(np.float32(correct) / np.float32(total))
    assert count_correct({"test": {"accuracy": accuracy}}, {"test": total})["test"]["correct"] == correct
