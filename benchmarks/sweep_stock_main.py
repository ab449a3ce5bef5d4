"""The main script of a PyG GraphGym project, from its template, with the import of this plugin added."""

from __future__ import annotations

import torch
from torch_geometric import seed_everything
from torch_geometric.graphgym.cmd_args import parse_args
from torch_geometric.graphgym.config import cfg, dump_cfg, load_cfg, set_out_dir, set_run_dir
from torch_geometric.graphgym.logger import set_printing
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.train import GraphGymDataModule, train
from torch_geometric.graphgym.utils.comp_budget import params_count
from torch_geometric.graphgym.utils.device import auto_select_device

import graphgym_lcat  # noqa: F401

if __name__ == "__main__":
    args = parse_args()
    load_cfg(cfg, args)
    set_out_dir(cfg.out_dir, args.cfg_file)
    torch.set_num_threads(1)
    dump_cfg(cfg)
    set_run_dir(cfg.out_dir)
    set_printing()
    seed_everything(cfg.seed)
    auto_select_device()
    datamodule = GraphGymDataModule()  # before the model, which needs the number of features
    model = create_model()
    cfg.params = params_count(model)
    train(model, datamodule, logger=True)
