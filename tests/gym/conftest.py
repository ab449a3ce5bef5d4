import pytest
from torch_geometric.graphgym.config import cfg, set_cfg

import graphgym_lcat  # noqa: F401  (registers everything)

SMALL = {
    "dataset.format": "lcat",
    "dataset.name": "BlockModel",
    "dataset.split": [0.6, 0.2, 0.2],
    "block_model.num_nodes": 60,
    "block_model.avg_degree": 4.0,
    "model.type": "lcat",
    "gnn.layer_type": "lcatconv",
    "gnn.layers_pre_mp": 1,
    "gnn.layers_mp": 2,
    "gnn.layers_post_mp": 1,
    "gnn.dim_inner": 8,
    "gnn.stage_type": "skipsum",
    "gnn.act": "prelu",
    "gnn.batchnorm": False,
    "gnn.l2norm": False,
    "lcat.heads": 2,
    "optim.weight_decay": 0.0,
    "optim.scheduler": "exponential",
    "optim.lr_decay": 0.998,
    "optim.max_epoch": 6,
}


@pytest.fixture
def small() -> dict:
    """Settings of a run that takes a fraction of a second."""
    return dict(SMALL)


@pytest.fixture(autouse=True)
def fresh_cfg():
    """GraphGym's configuration is global: every test starts from the defaults."""
    cfg.defrost()
    set_cfg(cfg)
    yield cfg
    cfg.defrost()
    set_cfg(cfg)
