import copy
import pickle

import pytest
import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.optim import create_optimizer, create_scheduler

from graphgym_lcat.nn import LCATConv
from graphgym_lcat.nn.interpolation import is_lambda


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_weight_decay_leaves_lambda_alone(name):
    cfg.optim.optimizer, cfg.optim.weight_decay = name, 0.1
    conv = LCATConv(5, 3)
    before = conv.lambdas()
    optimizer = create_optimizer(conv.parameters(), cfg.optim)
    for parameter in conv.parameters():
        parameter.grad = torch.zeros_like(parameter)
    weight = conv.lin.weight.clone()
    for _ in range(20):
        optimizer.step()
    assert conv.lambdas() == before
    assert (conv.lin.weight.abs() < weight.abs()).all()


def test_models_without_lambda_get_one_group():
    assert len(create_optimizer(torch.nn.Linear(2, 2).parameters(), cfg.optim).param_groups) == 1


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.double().cpu()]
)
def test_copies_of_a_lambda_are_still_recognised(duplicate):
    conv = duplicate(LCATConv(5, 3))
    assert is_lambda(conv.interpolation.x) and is_lambda(conv.interpolation.y)
    assert not is_lambda(conv.lin.weight)


def test_exponential_schedule():
    cfg.optim.scheduler, cfg.optim.lr_decay, cfg.optim.base_lr = "exponential", 0.5, 0.8
    optimizer = create_optimizer(torch.nn.Linear(2, 2).parameters(), cfg.optim)
    scheduler = create_scheduler(optimizer, cfg.optim)
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.4]
