import re

import pytest

from lcat_core.identity import run_id

DEFAULTS = {
    "seed": 0,
    "dataset.name": "Cora",
    "optim.base_lr": 0.01,
    "lcat.lambda1": None,
    "gnn.dims": [1],
    "gnn.bn": False,
}


def name(**settings):
    return run_id("lcat", {key.replace("__", "."): value for key, value in settings.items()}, DEFAULTS)


def test_a_run_id_says_model_dataset_seed_and_ten_hex_digits():
    assert re.fullmatch(r"lcat-CiteSeer-s3-[0-9a-f]{10}", name(dataset__name="CiteSeer", seed=3))


def test_settings_equal_to_the_defaults_do_not_count():
    assert name(optim__base_lr=0.01, seed=0) == name()


def test_a_changed_setting_counts():
    assert name(optim__base_lr=0.02) != name()


def test_seeds_have_different_hashes():
    assert name(seed=1).rsplit("-", 1)[1] != name(seed=2).rsplit("-", 1)[1]


def test_whole_floats_and_integers_are_alike():
    assert name(optim__base_lr=1) == name(optim__base_lr=1.0)
    assert name(lcat__lambda1=0) == name(lcat__lambda1=0.0)


def test_tuples_and_lists_are_alike():
    assert name(gnn__dims=(2, 3)) == name(gnn__dims=[2, 3])


def test_true_is_not_one():
    assert name(gnn__bn=True) != name(gnn__bn=1)


def test_the_order_of_settings_does_not_count():
    assert name(optim__base_lr=0.5, seed=4) == name(seed=4, optim__base_lr=0.5)


@pytest.mark.parametrize(
    "key",
    ["out_dir", "run_dir", "dataset.dir", "num_threads", "accelerator", "tensorboard_agg", "lcat.checkpoint_seconds"],
)
def test_where_and_how_a_run_is_executed_does_not_count(key):
    assert run_id("lcat", {key: "other"}, DEFAULTS) == name()


def test_a_new_key_with_a_default_renames_nothing():
    assert run_id("lcat", {"seed": 1}, {**DEFAULTS, "lcat.new": 7}) == name(seed=1)


def test_names_are_safe_for_file_systems():
    assert re.fullmatch(r"my_model_2-a_b-s0-[0-9a-f]{10}", run_id("my model/2", {"dataset.name": "../a:b"}, DEFAULTS))


def test_the_hash_is_the_same_in_every_version():
    assert name(dataset__name="Cora", seed=1, optim__base_lr=0.005) == "lcat-Cora-s1-7580bd8086"
