"""A few epochs of one training run in its own process; prints the seconds of each as one line of JSON.

Started by :mod:`lcat_benchmarks.epochs`. ``ours`` is the loop of ``lcat run``; ``stock`` is GraphGym's: its network with PyG's
``GATConv`` of as many heads, its Lightning loop, and a validation after every epoch, as its users run it. Both read the
same graph and the same split.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import tempfile
import time
import warnings
from importlib.resources import files
from pathlib import Path

import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import register_layer
from torch_geometric.nn import GATConv

from graphgym_lcat.gym.settings import apply_settings, check_settings, read_settings
from lcat_core.models import MODELS
from lcat_core.settings import Settings

HEADS = 4
# What GraphGym's own network calls by other names, or does differently.
STOCK = {
    "model.type": "gnn",
    "gnn.layer_type": "stock_gat",
    "gnn.stage_type": "skipsum",
    "train.eval_period": 1,
    "train.enable_ckpt": False,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--flow", choices=("ours", "stock"), required=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--model", choices=tuple(MODELS), default="lcat")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings = read_settings(Path(str(files("lcat_configs") / "real.yaml")))
    settings |= MODELS[args.model].settings
    settings |= {"dataset.name": args.dataset, "optim.max_epoch": args.epochs, "lcat.heads": HEADS}
    settings["accelerator"] = args.device
    with tempfile.TemporaryDirectory(prefix="lcat-benchmark-") as scratch:
        seconds = (
            our_epochs(settings, Path(scratch))
            if args.flow == "ours"
            else stock_epochs(settings | STOCK, Path(scratch))
        )
    print(json.dumps(seconds))


def our_epochs(settings: Settings, folder: Path) -> list[float]:
    from graphgym_lcat.gym.build import build_loop
    from graphgym_lcat.gym.history import History

    training = build_loop(check_settings(settings))
    history = History(folder, training)
    history.start()
    times = [time.perf_counter()]
    for epoch in training.epochs():
        history.add(epoch)
        times.append(time.perf_counter())
    return _differences(times)


def stock_epochs(settings: Settings, folder: Path) -> list[float]:
    from torch_geometric.graphgym.model_builder import create_model
    from torch_geometric.graphgym.train import GraphGymDataModule, train
    from torch_geometric.graphgym.utils.comp_budget import params_count

    @register_layer("stock_gat")
    class StockGAT(torch.nn.Module):
        def __init__(self, layer_config, **kwargs):
            super().__init__()
            self.model = GATConv(layer_config.dim_in, layer_config.dim_out // HEADS, HEADS, bias=layer_config.has_bias)

        def forward(self, batch):
            batch.x = self.model(batch.x, batch.edge_index)
            return batch

    warnings.filterwarnings("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    apply_settings(check_settings(settings))
    cfg.run_dir = str(folder)
    datamodule = GraphGymDataModule()  # before the model, which needs the number of features
    model = create_model()
    cfg.params = params_count(model)
    times: list[float] = []
    model.on_train_start = model.on_train_epoch_end = lambda: times.append(time.perf_counter())
    train(model, datamodule, logger=True, trainer_config={"enable_progress_bar": False, "enable_model_summary": False})
    return _differences(times)


def _differences(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


if __name__ == "__main__":
    main()
