"""Weight decay never acts on λ, whatever optimizer learns them and however the layer was copied, loaded or moved."""

import copy
import io
import pickle

import pytest
import torch

from graphgym_lcat.nn import LCATConv, split_lambdas
from graphgym_lcat.nn.weight_decay import is_lambda

OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.5),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5, foreach=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.5, momentum=0.9),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, weight_decay=0.5),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, weight_decay=0.5),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.1, weight_decay=0.5),
}


def step_without_gradients(optimizer, conv, steps=3):
    for parameter in conv.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for _ in range(steps):
        optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_decay_the_weights_and_not_lambda(name):
    conv = LCATConv(5, 3)
    before, weight = conv.lambdas(), conv.lin.weight.clone()
    step_without_gradients(OPTIMIZERS[name](conv.parameters()), conv)
    assert conv.lambdas() == before
    assert (conv.lin.weight != weight).all()


def test_learning_with_weight_decay_equals_learning_in_groups(x, edge_index):
    """λ take the same steps as with a group of their own, and the state dict has the groups of the user."""
    torch.manual_seed(0)
    first = LCATConv(5, 3, init="normal").double()
    second = copy.deepcopy(first)
    optimizer = torch.optim.AdamW(first.parameters(), lr=0.1, weight_decay=0.3)
    grouped = torch.optim.AdamW(split_lambdas(second.parameters()), lr=0.1, weight_decay=0.3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    grouped_scheduler = torch.optim.lr_scheduler.ExponentialLR(grouped, 0.5)
    for _ in range(4):
        for conv, each, schedule in ((first, optimizer, scheduler), (second, grouped, grouped_scheduler)):
            each.zero_grad()
            conv(x, edge_index).square().sum().backward()
            each.step()
            schedule.step()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    (group,) = optimizer.state_dict()["param_groups"]
    assert group["params"] == list(range(len(list(first.parameters()))))
    assert group["weight_decay"] == 0.3


def test_a_step_that_fails_leaves_the_groups_as_they_were():
    conv = LCATConv(5, 3)
    optimizer = torch.optim.SGD(conv.parameters(), lr=0.1, weight_decay=0.5)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(interrupt)
    assert len(optimizer.state_dict()["param_groups"]) == 1
    before = conv.lambdas()
    step_without_gradients(optimizer, conv)
    assert conv.lambdas() == before
    assert [id(p) for p in optimizer.param_groups[0]["params"]] == [id(p) for p in conv.parameters()]


def load_assigned(conv):
    conv.load_state_dict(copy.deepcopy(conv.state_dict()), assign=True)
    return conv


def from_meta(conv):
    with torch.device("meta"):
        empty = LCATConv(5, 3)
    empty.to_empty(device="cpu").load_state_dict(conv.state_dict())
    return empty


def replaced(conv):
    """As sharding does it: other parameters in the same module."""
    for name, parameter in conv.interpolation.named_parameters():
        setattr(conv.interpolation, name, torch.nn.Parameter(parameter.detach().clone()))
    return conv


@pytest.mark.parametrize(
    "change",
    [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c)), lambda c: c.double(), load_assigned, from_meta, replaced],
    ids=["deepcopy", "pickle", "double", "assign", "meta", "replaced"],
)
def test_the_lambdas_of_a_changed_layer_do_not_decay(change):
    conv = change(LCATConv(5, 3))
    assert is_lambda(conv.interpolation.x) and is_lambda(conv.interpolation.y) and not is_lambda(conv.lin.weight)
    before = conv.lambdas()
    step_without_gradients(torch.optim.AdamW(conv.parameters(), lr=0.1, weight_decay=0.5), conv)
    assert conv.lambdas() == before


def test_saved_parameters_are_loaded_without_pickled_classes():
    file = io.BytesIO()
    torch.save(list(LCATConv(5, 3).parameters()), file)
    file.seek(0)
    assert len(torch.load(file, weights_only=True)) == 6


def test_a_compiled_step_does_not_decay_lambda():
    conv = LCATConv(5, 3)
    before, weight = conv.lambdas(), conv.lin.weight.clone()
    optimizer = torch.optim.AdamW(conv.parameters(), lr=torch.tensor(0.1), weight_decay=0.5)
    for parameter in conv.parameters():
        parameter.grad = torch.zeros_like(parameter)
    step = torch.compile(optimizer.step, backend="eager")
    step()
    step()
    assert conv.lambdas() == before
    assert (conv.lin.weight != weight).all()


def test_layers_without_values_can_be_printed():
    with torch.device("meta"):
        conv = LCATConv(5, 3, lambda2=0, heads=2, lambda_per_head=True)
    assert "lambda1=[nan, nan] (learned), lambda2=0" in repr(conv)
    with torch._subclasses.FakeTensorMode():
        assert "lambda1=nan (learned)" in repr(LCATConv(5, 3))


def test_after_a_step_that_failed_a_state_is_loaded_and_new_groups_stay():
    conv = LCATConv(5, 3)
    optimizer = torch.optim.AdamW(conv.parameters(), lr=0.1, weight_decay=0.5)
    step_without_gradients(optimizer, conv)
    saved = copy.deepcopy(optimizer.state_dict())

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(fail)
    optimizer.load_state_dict(saved)
    assert len(optimizer.param_groups) == 1
    with pytest.raises(KeyboardInterrupt):
        optimizer.step(fail)
    new = torch.nn.Parameter(torch.ones(1))
    optimizer.add_param_group({"params": [new]})
    step_without_gradients(optimizer, conv)
    assert [len(group["params"]) for group in optimizer.param_groups] == [len(list(conv.parameters())), 1]
    assert optimizer.param_groups[1]["params"][0] is new
