import math
from pathlib import Path

import pytest

from graphgym_lcat.gym.settings import (
    apply_settings,
    check_settings,
    default_settings,
    parse_overrides,
    read_settings,
)
from lcat_core import stock_graphgym
from lcat_core.errors import SettingsError
from lcat_run import cli


def write(tmp_path, text):
    path = tmp_path / "some.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_file_becomes_flat_settings(tmp_path):
    path = write(tmp_path, "optim:\n  base_lr: 1e-3\n  max_epoch: 5\nseed: 4\n")
    assert read_settings(path) == {"optim.base_lr": 0.001, "optim.max_epoch": 5, "seed": 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "some.yaml must hold a mapping of keys to values, got a list"),
        ("optim: [", "some.yaml is not valid YAML"),
        (
            "gnn: {layer_typ: lcatconv}",
            "'gnn.layer_typ' in .*some.yaml is not a key of the configuration; did you mean 'gnn.layer_type'",
        ),
        ("optim: {base_lr: fast}", "`optim.base_lr` in .*some.yaml must be a number such as 0.01, got 'fast'"),
        ("optim: {max_epoch: 2.5}", "`optim.max_epoch` in .* must be a whole number such as 200, got 2.5"),
        ("gnn: {batchnorm: 1}", "`gnn.batchnorm` in .* must be true or false such as True, got 1"),
        ("gnn: 5", "`gnn` in .* is a group and must hold a mapping of keys to values, got 5"),
        ("optim:", "`optim` in .* is a group and must hold a mapping of keys to values, got None"),
        (
            "optim: {base_lr: .nan}",
            "expected text, a number, true, false or null in .*some.yaml, optim, base_lr, got nan",
        ),
        ("optim: {base_lr: [0.1]}", "`optim.base_lr` in .* must be a number such as 0.01, got .0.1."),
        ("dataset: {split: [0.7, a, 0.1]}", "`dataset.split` in .* must be a list such as .*, got .0.7, 'a', 0.1"),
        (
            "dataset: {split: [.nan, 0.5, 0.5]}",
            "expected text, a number, .* in .*some.yaml, dataset, split, got nan",
        ),
        ("optim: &again {base_lr: *again}", "some.yaml is not valid YAML: aliases expand it to more than"),
    ],
)
def test_bad_file(tmp_path, text, message):
    with pytest.raises(SettingsError, match=message):
        read_settings(write(tmp_path, text))


def test_a_file_of_graphgym_without_a_split_means_the_public_one():
    assert check_settings({"dataset.name": "CiteSeer"})["dataset.split_mode"] == "public"
    assert "dataset.split_mode" not in check_settings({"dataset.name": "CiteSeer", "dataset.split": [0.8, 0.1, 0.1]})


def test_the_defaults_that_the_analysis_assumes_are_those_of_graphgym():
    assert {key: default_settings()[key] for key in stock_graphgym.DEFAULTS} == stock_graphgym.DEFAULTS


def test_missing_file(tmp_path):
    with pytest.raises(SettingsError, match=r"none.yaml cannot be read: No such file"):
        read_settings(tmp_path / "none.yaml")


def test_yaml_tags_are_not_executed(tmp_path):
    with pytest.raises(SettingsError, match="is not valid YAML"):
        read_settings(write(tmp_path, "seed: !!python/object/apply:os.getpid []"))


def test_command_line_pairs():
    assert parse_overrides(["seed", "3", "lcat.lambda1", "learn", "dataset.split", "[0.5, 0.2, 0.3]"]) == {
        "seed": 3,
        "lcat.lambda1": "learn",
        "dataset.split": [0.5, 0.2, 0.3],
    }
    with pytest.raises(SettingsError, match="the last key has no value: 'seed'"):
        parse_overrides(["seed"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gnn.layer_type": "lcatcov"}, "unknown `gnn.layer_type`: 'lcatcov'; did you mean 'lcatconv'"),
        ({"dataset.name": "cora"}, "unknown `dataset.name`: 'cora'; did you mean 'Cora'"),
        ({"gnn.act": "prilu"}, "unknown `gnn.act`: 'prilu'; did you mean 'prelu'"),
        ({"optim.scheduler": "exp"}, "unknown `optim.scheduler`"),
        ({"lcat.lambda1": 1.5}, "`lcat.lambda1` must be a number in"),
        ({"gnn.layer_type": "catconv", "lcat.lambda2": 0}, "must not be set for 'catconv'"),
        (
            {"gnn.layer_type": "lcatconv", "gnn.dim_inner": 10, "lcat.heads": 4},
            "10, must be divisible by `lcat.heads`, got 4",
        ),
        ({"optim.base_lr": -0.1}, "`optim.base_lr` must be a positive number, got -0.1"),
        ({"optim.max_epoch": -3}, "`optim.max_epoch` must be a whole number of at least 1, got -3"),
        ({"optim.weight_decay": -1}, "`optim.weight_decay` must be a number of at least 0, got -1"),
        ({"optim.lr_decay": 0}, "`optim.lr_decay` must be a positive number, got 0"),
        ({"gnn.dropout": -0.5}, "`gnn.dropout` must be a number in .0, 1., got -0.5"),
        ({"gnn.layers_pre_mp": -1}, "`gnn.layers_pre_mp` must be a whole number of at least 0, got -1"),
        ({"gnn.head": "nod"}, "unknown `gnn.head`: 'nod'; did you mean 'node'"),
        ({"model.loss_fun": "mse"}, "unknown `model.loss_fun`: 'mse'. Known: cross_entropy"),
        ({"dataset.task": "graph"}, "`dataset.task` must be one of 'node', got 'graph'"),
        ({"dataset.task_type": "regression"}, "`dataset.task_type` must be one of 'classification', .*'regression'"),
        ({"dataset.split": [0.7, 0.2, 0.2]}, "`dataset.split` must be three positive numbers .* at most 1, got"),
        ({"dataset.split": [0.7, 0.3]}, "`dataset.split` must be three positive numbers .* at most 1, got"),
        ({"dataset.split_seed": 2**32}, "`dataset.split_seed` must be a whole number from 0 to 2"),
        ({"seed": -1}, "`seed` must be a whole number from 0 to 2"),
        ({"num_threads": 0}, "`num_threads` must be a whole number of at least 1, got 0"),
        ({"metric_best": "acuracy"}, "`metric_best` must be one of .*'acuracy'; did you mean 'accuracy'"),
        ({"accelerator": "gpu"}, "`accelerator` must be 'auto' or a device of torch .*got 'gpu'"),
        ({"csbm.mu_norm": math.inf}, "`csbm.mu_norm` must be a number such as 1.0, got inf"),
        ({"csbm.logit_gain": math.inf}, "`csbm.logit_gain` must be null or a positive number, got inf"),
        ({"lcat.loop": "csbm", "csbm.model": "lcat"}, "which needs `csbm.learned: true`"),
        ({"dataset.split_mode": "file"}, "`dataset.split_file` must name a file"),
        ({"dataset.split_mode": "randon"}, "unknown `dataset.split_mode`: 'randon'; did you mean 'random'"),
    ],
)
def test_settings_that_cannot_run(small, settings, message):
    with pytest.raises(SettingsError, match=message):
        check_settings({**small, **settings})


def test_applying_settings_starts_from_the_defaults(small):
    apply_settings({**small, "lcat.heads": 4})
    cfg = apply_settings({"seed": 9})
    assert (cfg.lcat.heads, cfg.seed) == (1, 9)


def test_defaults_contain_graphgyms_keys_and_ours():
    defaults = default_settings()
    assert defaults["optim.base_lr"] == 0.01
    assert defaults["lcat.score"] == "gat"
    assert not any(key.startswith("share.") for key in defaults)


def test_defaults_can_start_without_a_warning_of_graphgym(monkeypatch):
    monkeypatch.setattr("logging.warning", pytest.fail)
    assert apply_settings({}).gnn.layers_post_mp == 1


def test_every_key_of_the_papers_configuration_has_a_comment():
    text = (Path(__file__).parents[2] / "configs/real.yaml").read_text(encoding="utf-8")
    keys = [line for line in text.splitlines() if line.startswith("  ")]
    assert len(keys) > 20
    assert [line for line in keys if "#" not in line] == []


def test_a_duplicate_key_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"some.yaml is not valid YAML: the key 'base_lr' appears twice"):
        read_settings(write(tmp_path, "optim:\n  base_lr: 0.1\n  base_lr: 0.2\n"))
    with pytest.raises(SettingsError, match=r"'optim.base_lr' appears twice in .*some.yaml, once flat and once nested"):
        read_settings(write(tmp_path, "optim: {base_lr: 0.1}\noptim.base_lr: 0.2\n"))
    with pytest.raises(SettingsError, match="'seed' appears twice on the command line"):
        parse_overrides(["seed", "1", "seed", "2"])


def test_a_duplicate_key_ends_the_command_with_status_2(tmp_path, capsys):
    path = write(tmp_path, "seed: 1\nseed: 2\n")
    assert cli.main(["run", "--cfg", str(path)]) == 2
    assert "the key 'seed' appears twice" in capsys.readouterr().err
