import pytest
from torch_geometric.graphgym.config import cfg
from yacs.config import CfgNode

from graphgym_lcat.gym.config import KEYS, check_lcat_config


def test_every_key_has_a_meaning_and_a_default_within_its_range():
    check_lcat_config(cfg)
    assert all(key.meaning and key.range.text for key in KEYS)


@pytest.mark.parametrize("value", ["learn", 0, 1, 0.25, None])
def test_lambda_takes_numbers_and_learn_from_a_command_line(value):
    cfg.merge_from_list(["lcat.lambda1", value])
    check_lcat_config(cfg)
    assert cfg.lcat.lambda1 == value


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lcat.lambda1", 2, r"`lcat.lambda1` must be a number in \[0, 1\], or null or 'learn' to learn it, got 2"),
        ("lcat.lambda2", "lear", "`lcat.lambda2` must be"),
        ("lcat.score", "gatv1", "`lcat.score` must be one of 'gat', 'gatv2', got 'gatv1'; did you mean"),
        ("lcat.heads", 0, "`lcat.heads` must be a whole number of at least 1, got 0"),
    ],
)
def test_value_out_of_range(key, value, message):
    cfg.merge_from_list([key, value])
    with pytest.raises(ValueError, match=message):
        check_lcat_config(cfg)


def test_unknown_key_of_the_group_is_refused_by_yacs():
    with pytest.raises(KeyError):
        cfg.merge_from_other_cfg(CfgNode({"lcat": {"skore": "gat"}}))
