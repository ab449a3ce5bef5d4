"""Importing the plugin twice, or beside another one, works."""

import importlib

import pytest
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.register import (
    act_dict,
    config_dict,
    layer_dict,
    loader_dict,
    network_dict,
    scheduler_dict,
)

from graphgym_lcat.gym import config, layers, optimizer
from graphgym_lcat.gym.registration import register_once


def test_importing_registers_everything():
    assert {"lcatconv", "catconv"} <= layer_dict.keys()
    assert "lcat" in config_dict.keys() & network_dict.keys() & loader_dict.keys()
    assert "exponential" in scheduler_dict
    assert "prelu" in act_dict


def test_configuration_is_there_without_another_set_cfg():
    assert cfg.lcat.score == "gat"


def test_set_cfg_after_the_import_restores_the_defaults():
    cfg.lcat.heads = 7
    set_cfg(cfg)
    assert cfg.lcat.heads == 1


def test_importing_twice_changes_nothing():
    cfg.lcat.heads = 7
    for module in (config, layers, optimizer):
        importlib.reload(module)
    assert cfg.lcat.heads == 7
    assert {"lcatconv", "catconv"} <= layer_dict.keys()


def test_a_taken_name_is_left_to_its_owner():
    class TheirLayer:
        pass

    registry = {"lcatconv": TheirLayer}
    with pytest.warns(UserWarning, match="GraphGym already has 'lcatconv' from .*; graphgym_lcat does not replace it"):
        register_once(registry, "lcatconv", layers.LCATConvLayer)
    assert registry["lcatconv"] is TheirLayer
