"""A GraphGym project of your own: stock PyG and one import.

python examples/graphgym_project/main.py --cfg examples/graphgym_project/lcat.yaml
"""

import torch
from torch_geometric import seed_everything
from torch_geometric.graphgym.cmd_args import parse_args
from torch_geometric.graphgym.config import cfg, dump_cfg, load_cfg, set_out_dir, set_run_dir
from torch_geometric.graphgym.logger import set_printing
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.train import GraphGymDataModule, train
from torch_geometric.graphgym.utils.comp_budget import params_count
from torch_geometric.graphgym.utils.device import auto_select_device

import graphgym_lcat

args = parse_args()
load_cfg(cfg, args)
set_out_dir(cfg.out_dir, args.cfg_file)
dump_cfg(cfg)
set_run_dir(cfg.out_dir)
set_printing()
seed_everything(cfg.seed)
torch.set_num_threads(1)
auto_select_device()
datamodule = GraphGymDataModule()
model = create_model()
cfg.params = params_count(model)
train(model, datamodule)
for name, module in model.named_modules():
    if isinstance(module, graphgym_lcat.nn.LCATConv):
        print(name, module)
