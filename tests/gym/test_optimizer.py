import copy
import pickle
import subprocess
import sys
import textwrap

import pytest
import torch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.optim import create_optimizer, create_scheduler

from graphgym_lcat.gym.optimizer import without_decay_of_lambdas
from graphgym_lcat.nn import LCATConv
from graphgym_lcat.nn.weight_decay import is_lambda


def adamw(params, base_lr: float, weight_decay: float):
    return torch.optim.AdamW(params, lr=base_lr, weight_decay=weight_decay)


def decay(optimizer, conv, steps=20):
    for parameter in conv.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for _ in range(steps):
        optimizer.step()


@pytest.fixture
def registered_later():
    """Optimizers that somebody registers after this package was imported."""
    yield register.register_optimizer
    for name in ("adamW", "into_original"):
        register.optimizer_dict.pop(name, None)


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_weight_decay_leaves_lambda_alone(name):
    cfg.optim.optimizer, cfg.optim.weight_decay = name, 0.1
    conv = LCATConv(5, 3)
    before, weight = conv.lambdas(), conv.lin.weight.clone()
    decay(create_optimizer(conv.parameters(), cfg.optim), conv)
    assert conv.lambdas() == before
    assert (conv.lin.weight.abs() < weight.abs()).all()


def test_an_optimizer_that_is_registered_later_leaves_lambda_alone(registered_later):
    registered_later("adamW", adamw)
    cfg.optim.optimizer, cfg.optim.weight_decay = "adamW", 0.1
    conv = LCATConv(5, 3)
    before, weight = conv.lambdas(), conv.lin.weight.clone()
    decay(create_optimizer(conv.parameters(), cfg.optim), conv)
    assert conv.lambdas() == before
    assert (conv.lin.weight.abs() < weight.abs()).all()


def test_what_is_written_into_the_original_mapping_is_found(registered_later):
    """Modules that imported ``optimizer_dict`` by name before us hold the original mapping."""
    original = register.optimizer_dict.registered
    original["into_original"] = adamw
    assert register.optimizer_dict["into_original"] is not adamw
    assert register.optimizer_dict["into_original"].__wrapped__ is adamw
    registered_later("adamW", adamw)
    assert original["adamW"] is adamw
    with pytest.raises(KeyError, match="already defined"):
        registered_later("adamW", adamw)


def test_parameter_groups_of_an_optimizer_are_kept():
    """An optimizer that makes groups of its own, or wants plain parameters, works as before."""

    def two_rates(params, base_lr: float):
        params = [p for p in params if p.requires_grad]
        groups = [{"params": params[:2], "lr": 0.5}, {"params": params[2:]}]
        return torch.optim.AdamW(groups, lr=base_lr, weight_decay=0.1)

    conv = LCATConv(5, 3)
    optimizer = without_decay_of_lambdas(two_rates)(conv.parameters(), 0.01)
    assert {id(p) for group in optimizer.param_groups for p in group["params"]} == {id(p) for p in conv.parameters()}
    for group in optimizer.param_groups:
        assert len({is_lambda(p) for p in group["params"]}) == 1
        assert group["weight_decay"] == (0.0 if is_lambda(group["params"][0]) else 0.1)
    assert {group["lr"] for group in optimizer.param_groups} == {0.5, 0.01}


def test_an_optimizer_without_weight_decay_keeps_its_one_group():
    conv = LCATConv(5, 3)
    optimizer = without_decay_of_lambdas(lambda params: torch.optim.LBFGS(params))(conv.parameters())
    assert len(optimizer.param_groups) == 1


def test_models_without_lambda_get_one_group():
    assert len(create_optimizer(torch.nn.Linear(2, 2).parameters(), cfg.optim).param_groups) == 1


def test_an_optimizer_of_a_plugin_does_not_decay_lambda_in_a_run(tmp_path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            import torch
            from torch_geometric.graphgym.register import register_optimizer

            @register_optimizer("shrink")
            def shrink(params, base_lr: float, weight_decay: float):
                return torch.optim.SGD(params, lr=1e-12, weight_decay=weight_decay)
            """
        )
    )
    (tmp_path / "run.yaml").write_text(
        "lcat: {plugins: [mine]}\ndataset: {format: lcat, name: KarateClub, split: [0.6, 0.2, 0.2]}\n"
        "model: {type: lcat}\ngnn: {layer_type: lcatconv}\n"
        "optim: {optimizer: shrink, weight_decay: 1.0e+11, max_epoch: 9, scheduler: none}\n"
    )
    # In a process of its own: what a plugin registers stays.
    command = [sys.executable, "-m", "lcat_run.cli", "run", "--cfg", "run.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("results/run/runs/*/lambdas.csv")
    assert {line.split(",", 1)[1] for line in path.read_text().splitlines()[1:]} == {"0,,0.5,0.5", "1,,0.5,0.5"}


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
