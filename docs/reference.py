"""Writes what the documentation takes from the code: docs/configuration.md, and the list of grids in docs/grids.md.

python docs/reference.py
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from graphgym_lcat.gym.config import KEYS, Key
from graphgym_lcat.gym.settings import default_settings

DOCS = Path(__file__).parent
COMMAND = "python docs/reference.py"
GRIDS_BEGIN, GRIDS_END = f"<!-- made by: {COMMAND} -->", "<!-- end -->"

INTRODUCTION = f"""\
# Configuration

<!-- made by: {COMMAND} -->

Importing `graphgym_lcat` adds these keys to GraphGym's configuration. They are set as any other: in a YAML file, at the
end of a command (`lcat run --cfg real.yaml dataset.name Cora lcat.heads 8`), or in a [grid](grids.md). A key that does not
exist, or a value out of its range, is refused before anything starts, with the nearest right name. GraphGym's own keys
keep their meaning and defaults: [those that `lcat run` reads](#graphgyms-own-keys) are at the end of this page, and
[configs/real.yaml](../configs/real.yaml) sets those of the paper.
"""
GROUPS = {
    "lcat": "The layer, its training and what a run writes.",
    "dataset": "Beside GraphGym's own `dataset.*`; `dataset.format: lcat` chooses our loader.",
    "block_model": "A generated graph, `dataset.name: BlockModel`.",
    "csbm": "The contextual stochastic block model, `dataset.name: csbm`, and the [synthetic experiments](synthetic.md), "
    "`lcat.loop: csbm`.",
}

GRAPHGYM_INTRODUCTION = """\
## GraphGym's own keys

What `lcat run` and sweeps read of them, with GraphGym's defaults, which are not the paper's. The others are accepted, since a stock
`main.py` may need them, and change nothing here: `lcat run` scores every epoch, writes checkpoints and resumes by itself.
"""
GRAPHGYM_KEYS = {
    "seed": "Seed of the initial weights, of dropout and of noise. The split has its own, `dataset.split_seed`.",
    "out_dir": "The folder of all results.",
    "accelerator": "`auto` takes a GPU if there is one; `cpu`, `cuda`.",
    "metric_best": "What chooses the best epoch on validation: `accuracy`, `auc`, `rocauc`, `loss`; `auto` is accuracy, "
    "or ROC-AUC for several labels a node.",
    "model.thresh": "Two classes: the probability from which a node is in the second.",
    "round": "Digits in `stats.json`; `result.json` is never rounded.",
    "tensorboard_each_run": "Write curves for TensorBoard; needs tensorboardX.",
    "dataset.format": "`lcat` for `lcat datasets`, or that of your own loader.",
    "dataset.name": "One of `lcat datasets`, or a name that your loader knows.",
    "dataset.dir": "Where datasets are; if not set, the environment variable `LCAT_DATA_DIR` comes before this default.",
    "dataset.split_mode": "`random`, `public` (the dataset's own masks) or `file`.",
    "dataset.split": "Shares of training, validation and test nodes in a random split.",
    "model.type": "`lcat` (GraphGym's network, faster), `lcat_stack` and `lcat_relational` (the paper's OGB networks), "
    "`gnn` (GraphGym's).",
    "model.loss_fun": "`cross_entropy`, of single labels for several labels a node.",
    "gnn.layer_type": "`lcatconv`, `catconv`, … (`lcat layers`), or any layer of GraphGym or a plugin.",
    "gnn.layers_pre_mp": "Linear layers before message passing. At least one keeps sparse features sparse.",
    "gnn.layers_mp": "Graph layers.",
    "gnn.layers_post_mp": "Linear layers after them; at least one, which gives the classes.",
    "gnn.dim_inner": "Width of every layer, split over the heads.",
    "gnn.stage_type": "`stack`, `skipsum` (residual connections) or `skipconcat`.",
    "gnn.act": "`relu`, `prelu`, `elu`, …",
    "gnn.batchnorm": "Normalise every layer; `lcat.norm` says how.",
    "gnn.l2norm": "Scale every node's representation to length 1 after each layer. The paper does not.",
    "gnn.dropout": "Dropout probability of a layer's output.",
    "optim.optimizer": "`adam` or `sgd`.",
    "optim.base_lr": "Learning rate.",
    "optim.weight_decay": "Weight decay; λ is left out of it. The paper uses none.",
    "optim.momentum": "Of `sgd`.",
    "optim.scheduler": "`exponential` (ours), `cos`, `step` or `none`.",
    "optim.lr_decay": "Factor per epoch for `exponential`, at each of `optim.steps` for `step`.",
    "optim.steps": "Epochs at which `step` multiplies the rate.",
    "optim.max_epoch": "Epochs.",
    "train.sampler": "`full_batch`, or `neighbor` for sampled batches, which needs pyg-lib or torch-sparse.",
    "train.batch_size": "Training nodes of a sampled batch.",
    "train.neighbor_sizes": "Sampled neighbours, a number a layer.",
}

ENVIRONMENT = """\
## Environment variables

| variable | meaning |
|---|---|
| `LCAT_DATA_DIR` | Where datasets are, if `dataset.dir` is not set. |
| `LCAT_BACKEND` | `auto`, `torch` or `fused`: how layers with `backend="auto"` compute attention. |
| `LCAT_INSTRUCTION_SET` | The variant of the C kernels, such as `generic` or `avx2`, instead of the best that the processor has. |
| `LCAT_LIBRARY` | Another file of compiled kernels. |
| `LCAT_PYTHON` | The Python of which `run/demo.sh` and `run/test.sh` make `.venv`. |
"""


def configuration() -> str:
    """The page of all keys, by group."""
    groups: dict[str, list[Key]] = {}
    for key in KEYS:
        groups.setdefault(key.name.split(".")[0], []).append(key)
    parts = [INTRODUCTION]
    for group, keys in groups.items():
        lead = f"{GROUPS[group]}\n\n" if group in GROUPS else ""
        rows = "\n".join(_key_row(key) for key in keys)
        parts.append(f"## {group}\n\n{lead}| key | default | may be | meaning |\n|---|---|---|---|\n{rows}\n")
    return "\n".join([*parts, _graphgym_section(), ENVIRONMENT])


def grids_page(text: str) -> str:
    """docs/grids.md with its list of grids as they are."""
    rows = "\n".join(_grid_row(path) for path in sorted(Path(str(resources.files("lcat_grids"))).glob("*.yaml")))
    table = f"{GRIDS_BEGIN}\n| grid | what it is |\n|---|---|\n{rows}\n{GRIDS_END}"
    begin, end = text.index(GRIDS_BEGIN), text.index(GRIDS_END) + len(GRIDS_END)
    return text[:begin] + table + text[end:]


def _key_row(key: Key) -> str:
    return f"| `{key.name}` | {_written(key.default)} | {key.range.text} | {key.meaning} |"


def _graphgym_section() -> str:
    defaults = default_settings()
    rows = "\n".join(
        f"| `{name}` | {_written(defaults[name])} | {meaning} |" for name, meaning in GRAPHGYM_KEYS.items()
    )
    return f"{GRAPHGYM_INTRODUCTION}\n| key | default | meaning |\n|---|---|---|\n{rows}\n"


def _written(default: Any) -> str:
    text = yaml.safe_dump(default, default_flow_style=True, allow_unicode=True).removesuffix("...\n").strip()
    return f"`{text}`" if default != "" else "empty"


def _grid_row(path: Path) -> str:
    """The comment that a grid begins with."""
    comment = re.match(r"(?:#.*\n)+", path.read_text(encoding="utf-8"))
    words = comment[0].replace("#", " ").split() if comment else []
    return f"| [`{path.stem}`](../grids/{path.name}) | {' '.join(words)} |"


def main() -> None:
    (DOCS / "configuration.md").write_text(configuration(), encoding="utf-8")
    grids = DOCS / "grids.md"
    grids.write_text(grids_page(grids.read_text(encoding="utf-8")), encoding="utf-8")
    print("wrote docs/configuration.md and docs/grids.md")


if __name__ == "__main__":
    main()
