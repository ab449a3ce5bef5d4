"""A main as GraphGPS has it: plugins are imported first, then ``set_cfg`` is called, and ``train_dict`` chooses the loop."""

import argparse

import torch
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.loader import create_dataset
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.optim import create_optimizer, create_scheduler
from torch_geometric.graphgym.register import train_dict
from torch_geometric.graphgym.utils.device import auto_select_device

import graphgym_lcat  # noqa: F401

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cfg")
    args = parser.parse_args()
    torch.set_num_threads(1)
    set_cfg(cfg)
    cfg.merge_from_file(args.cfg)
    cfg.run_dir = cfg.out_dir
    cfg.gnn.head = "node"
    auto_select_device()
    dataset = create_dataset()
    model = create_model()
    optimizer = create_optimizer(model.parameters(), cfg.optim)
    scheduler = create_scheduler(optimizer, cfg.optim)
    train_dict["lcat"]([], [dataset], model, optimizer, scheduler)
