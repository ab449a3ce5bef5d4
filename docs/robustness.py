"""Writes docs/robustness.md and its pictures: noise, initial weights and ablation on Cora and AmazonPhoto.

lcat sweep noise_small && lcat sweep init_small && lcat sweep ablation_small
python docs/robustness.py results

The section of a sweep that is not among the results stays as it was.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lcat_analysis.compare import compare
from lcat_analysis.figures import save
from lcat_analysis.lambdas import distribution_figure, final_lambdas
from lcat_analysis.load import load
from lcat_analysis.models import written
from lcat_analysis.noise import noise_figure
from lcat_analysis.render import render
from lcat_analysis.select import Selection, select
from lcat_analysis.tables import performance_table

DOCS = Path(__file__).parent
FEATURES, EDGES, HEADS, INIT = "noise.features", "noise.edges", "lcat.heads", "lcat.init"
BOTH_SCORES = ("", "v2")

INTRODUCTION = """\
# Robustness: noise, initial weights, which λ

The paper studies these on data of the Open Graph Benchmark. The same experiments run on any dataset; this page shows them on
Cora and AmazonPhoto, with the network of `configs/real.yaml` (4 layers, 32 wide, 4 heads unless they vary), 200 epochs and 3
seeds. Made by

    lcat sweep noise_small
    lcat sweep init_small
    lcat sweep ablation_small
    python docs/robustness.py results

Under each experiment stand the paper's claims about it. A claim is turned into a difference that is positive if it is true,
computed for every seed (models with equal seeds have the same split, the same noise and the same seed of the weights); for claims
about the spread over seeds, for every level of noise. It **holds** if the 95 % confidence interval of the mean difference
(Student's t) lies above zero, **does not hold** if it lies below, and is **undecided** if it contains zero: three seeds decide
only what is clear. Differences of accuracy are in points. The paper made its claims on other data, so "does not hold" says that
it does not carry over to these, not that the paper is wrong.
"""

OGB = """\
## At the paper's size

The grids `ogb`, `noise`, `init` and `ablation` are the paper's own, on ogbn-arxiv, -products, -mag and -proteins. They need the
extra `pip install 'graphgym-lcat[ogb]'` and OGB's files where the `ogb` package puts them, `<dataset.dir>/ogbn_arxiv` and so on;
`lcat datasets` says which are there. Nothing is downloaded and nothing is asked. To try a grid without them, write random
data of the same shape and start it with fewer epochs:

    lcat datasets ogbn-arxiv --generate --scale 1000 --dir /tmp/ogb
    lcat sweep noise dataset.dir /tmp/ogb optim.max_epoch 20 seeds 2
    lcat plot noise noise

What the paper leaves open, and how it is done here:

- Graphs are made undirected. Features of a protein are the mean of the features of its edges. Nodes of ogbn-mag without features
  get learned embeddings, as in OGB's examples; every layer of the network has one L-CAT per relation that can still reach a
  paper, so `lambdas.csv` counts relations, layer by layer.
- The last graph layer gives the classes of ogbn-arxiv and -products, its heads averaged; -mag and -proteins end in a linear layer.
- **Full batch is the default**, also where the paper samples: the fused kernels need no tensor of the size of edges times
  channels. `train.sampler: neighbor` trains on batches of PyG's `NeighborLoader` instead, if pyg-lib or torch-sparse is
  installed. The two are different algorithms. An epoch of full batch is one step with exact neighbourhoods; an epoch of sampled
  batches is many steps, each with random parts of the neighbourhoods. A convolved feature ĥ reaches one hop further than a
  layer of GAT does, so on a sampled batch the ĥ of nodes at its border are their own features. Scores of validation and test
  are those of the full graph in both cases. A sampled run that was interrupted goes on, but not to the same bits.
- Noise: σ is the deviation of normal noise on every entry of the features. Fake edges are `round(p · |E|)` different pairs of
  nodes that are neither edges nor equal, |E| being the number of undirected edges. Both are drawn once for every seed.
"""


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, and a difference per seed that is positive if it is so."""

    text: str
    where: str
    difference: Callable[["Runs"], pd.Series]


class Runs:
    """The chosen runs of one dataset."""

    def __init__(self, selection: Selection, dataset: str):
        self.table = selection.runs[selection.runs["dataset"] == dataset]
        final = final_lambdas(selection)
        self.lambdas = final if final.empty else final[final["dataset"] == dataset]

    def score(self, model: str, **conditions: object) -> pd.Series:
        """The test metric by seed, the mean over whatever is not a condition (``features=0`` for ``noise.features``)."""
        return _where(self.table[self.table["model"] == model], conditions).groupby("seed")["value"].mean()

    def drop(self, model: str, key: str) -> pd.Series:
        """Points lost from no noise of this kind to the most."""
        other = EDGES if key == FEATURES else FEATURES
        own = self.table[(self.table["model"] == model) & (self.table[other] == 0)]
        by_level = own.pivot_table(index="seed", columns=key, values="value")
        return by_level[by_level.columns.min()] - by_level[by_level.columns.max()]

    def under_noise(self, model: str, key: str) -> pd.Series:
        """The mean over all levels of this kind of noise above zero."""
        own = self.table[(self.table["model"] == model) & (self.table[key] > 0)]
        return own.groupby("seed")["value"].mean()

    def spread_under_noise(self, model: str, key: str) -> pd.Series:
        """The standard deviation over seeds, by level of this kind of noise above zero."""
        own = self.table[(self.table["model"] == model) & (self.table[key] > 0)]
        return own.groupby(key)["value"].std(ddof=1)

    def over_others(self, value: Callable[[str], pd.Series], model: str) -> pd.Series:
        """A model's value minus the best of all others."""
        others = [name for name in self.table["model"].unique() if name != model]
        return value(model) - pd.concat([value(name) for name in others], axis=1).max(axis=1)

    def spread(self, model: str) -> pd.Series:
        """The standard deviation over all initialisations and numbers of heads, by seed."""
        own = self.table[self.table["model"] == model]
        return own.groupby("seed")["value"].std(ddof=1)

    def gap_of_inits(self, model: str) -> pd.Series:
        return (self.score(model, init="normal") - self.score(model, init="uniform")).abs()

    def learned(self, name: str, layers: Callable[[pd.Series], pd.Series], **conditions: object) -> pd.Series:
        """The mean of λ1 or λ2 of L-CAT over the layers that are asked for, by seed."""
        own = _where(self.lambdas[self.lambdas["model"] == "lcat"], conditions)
        return own[layers(own["layer"])].groupby("seed")[name].mean()


def _where(table: pd.DataFrame, conditions: dict[str, object]) -> pd.DataFrame:
    keys = {"features": FEATURES, "edges": EDGES, "heads": HEADS, "init": INIT}
    for name, value in conditions.items():
        table = table[table[keys[name]] == value]
    return table


def _ends(layer: pd.Series) -> pd.Series:
    return layer.isin((layer.min(), layer.max()))


def _inner(layer: pd.Series) -> pd.Series:
    return ~_ends(layer)


def _every(layer: pd.Series) -> pd.Series:
    return layer > 0


def _second(layer: pd.Series) -> pd.Series:
    return layer == 2


NOISE_PLOTS = "noise plots"
NOISE = [
    Claim(
        "Attention is more sensitive to noise on features than GCN: GAT loses more accuracy.",
        NOISE_PLOTS,
        lambda r: r.drop("gat", FEATURES) - r.drop("gcn", FEATURES),
    ),
    Claim(
        "GCN suffers more from fake edges than attention does: GCN loses more accuracy than GAT.",
        NOISE_PLOTS,
        lambda r: r.drop("gcn", EDGES) - r.drop("gat", EDGES),
    ),
    Claim(
        "Convolving the score's input makes attention more robust to noise on features: CAT loses less than GAT.",
        NOISE_PLOTS,
        lambda r: r.drop("gat", FEATURES) - r.drop("cat", FEATURES),
    ),
    Claim(
        "Convolving the score's input reduces the variance under noise on features: CAT's spread over seeds is smaller than GAT's.",
        NOISE_PLOTS,
        lambda r: r.spread_under_noise("gat", FEATURES) - r.spread_under_noise("cat", FEATURES),
    ),
    Claim(
        "L-CAT is the best model under noise on features (mean over the levels, against the best of the others).",
        NOISE_PLOTS,
        lambda r: r.over_others(lambda model: r.under_noise(model, FEATURES), "lcat"),
    ),
    Claim(
        "L-CAT is the best model under fake edges (mean over the levels, against the best of the others).",
        NOISE_PLOTS,
        lambda r: r.over_others(lambda model: r.under_noise(model, EDGES), "lcat"),
    ),
    *(
        Claim(
            f"L-CAT reduces the variance under {kind}: its spread over seeds is smaller than GAT's.",
            NOISE_PLOTS,
            lambda r, key=key: r.spread_under_noise("gat", key) - r.spread_under_noise("lcat", key),
        )
        for kind, key in (("noise on features", FEATURES), ("fake edges", EDGES))
    ),
]
INIT_TABLE, LAMBDA_FIGURE = "table of initialisations", "distribution of λ"
INITIALISATION = [
    Claim(
        "The initial weights matter more to GAT than to L-CAT (gap between the two initialisations).",
        INIT_TABLE,
        lambda r: r.gap_of_inits("gat") - r.gap_of_inits("lcat"),
    ),
    Claim(
        "The initial weights matter more to GCN than to L-CAT (one head).",
        INIT_TABLE,
        lambda r: _gap_with_one_head(r, "gcn") - _gap_with_one_head(r, "lcat"),
    ),
    Claim(
        "L-CAT is consistent: its spread over initialisations and heads is smaller than GAT's.",
        INIT_TABLE,
        lambda r: r.spread("gat") - r.spread("lcat"),
    ),
    Claim(
        "L-CAT is better than GAT, averaged over all scenarios.",
        INIT_TABLE,
        lambda r: r.score("lcat") - r.score("gat"),
    ),
    Claim(
        "Eight heads help GAT where the initialisation is uniform.",
        INIT_TABLE,
        lambda r: r.score("gat", init="uniform", heads=8) - r.score("gat", init="uniform", heads=1),
    ),
    Claim(
        "CAT is better than GAT, except with eight heads and normal initialisation (mean of the other three cases).",
        INIT_TABLE,
        lambda r: _without_eight_normal(r, "cat") - _without_eight_normal(r, "gat"),
    ),
    Claim(
        "The first and the last layer become GCNs: their λ1 is smaller than that of the layers between.",
        LAMBDA_FIGURE,
        lambda r: r.learned("lambda1", _inner) - r.learned("lambda1", _ends),
    ),
    Claim(
        "More heads permit more attention: λ1 is larger with eight heads than with one.",
        LAMBDA_FIGURE,
        lambda r: r.learned("lambda1", _every, heads=8) - r.learned("lambda1", _every, heads=1),
    ),
    Claim(
        "Uniform initialisation permits more attention in the second layer: λ1 is larger there than with normal.",
        LAMBDA_FIGURE,
        lambda r: r.learned("lambda1", _second, init="uniform") - r.learned("lambda1", _second, init="normal"),
    ),
]


def _gap_with_one_head(runs: Runs, model: str) -> pd.Series:
    return (runs.score(model, init="normal", heads=1) - runs.score(model, init="uniform", heads=1)).abs()


def _without_eight_normal(runs: Runs, model: str) -> pd.Series:
    cases = [("uniform", 1), ("uniform", 8), ("normal", 1)]
    return pd.concat([runs.score(model, init=init, heads=heads) for init, heads in cases], axis=1).mean(axis=1)


def _ablation_claims() -> Iterator[Claim]:
    for suffix in BOTH_SCORES:
        gat, lcat, bridge = f"gat{suffix}", f"lcat{suffix}", f"gcngat{suffix}"
        one, two = f"cat{suffix}_l1", f"cat{suffix}_l2"
        table = f"ablation, {written(gat)} score"
        yield Claim(
            f"{written(bridge)} lies between GCN and {written(gat)} (distance inside the two, negative outside).",
            table,
            lambda r, a=gat, b=bridge: _inside(r.score(b), r.score("gcn"), r.score(a)),
        )
        yield Claim(
            f"Learning λ1 alone is better than λ2 alone: {written(one)} against {written(two)}.",
            table,
            lambda r, a=one, b=two: r.score(a) - r.score(b),
        )
        for alone in (one, two, bridge):
            yield Claim(
                f"Learning both λ is better than one: {written(lcat)} against {written(alone)}.",
                table,
                lambda r, a=lcat, b=alone: r.score(a) - r.score(b),
            )


def _inside(value: pd.Series, one: pd.Series, other: pd.Series) -> pd.Series:
    return np.minimum(value - np.minimum(one, other), np.maximum(one, other) - value)


def verdict(differences: pd.Series) -> tuple[str, str]:
    """Whether a difference is positive beyond doubt, and the numbers that say so."""
    values = differences.dropna()
    if len(values) < 2:
        return "undecided", f"n = {len(values)}"
    mean, error = values.mean(), values.sem(ddof=1)
    margin = stats.t.ppf(0.975, len(values) - 1) * error
    name = "holds" if mean - margin > 0 else "does not hold" if mean + margin < 0 else "undecided"
    digits = 3 if values.abs().max() < 1 else 2
    return name, f"{mean:+.{digits}f} ± {margin:.{digits}f} (n = {len(values)})".replace("-", "−")


def claims_table(claims: list[Claim], selection: Selection | None) -> str:
    """Every claim with its verdict on every dataset; the bare list where nothing was run."""
    if selection is None:
        return "\n".join(f"- {claim.text} *({claim.where}; not run here yet)*" for claim in claims)
    datasets = {dataset: Runs(selection, dataset) for dataset in sorted(selection.datasets)}
    lines = [
        "| Claim of the paper | Where | " + " | ".join(datasets) + " |",
        "| :--- | :--- |" + " :--- |" * len(datasets),
    ]
    for claim in claims:
        cells = []
        for runs in datasets.values():
            name, numbers = verdict(claim.difference(runs))
            cells.append(f"**{name}** {numbers}")
        lines.append(f"| {claim.text} | {claim.where} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _section(title: str, grid: str, about: str, claims: list[Claim], folder: Path, docs: Path) -> str:
    page, images = docs / "robustness.md", docs / "images"
    parts = [f"## {title}", f"`lcat sweep {grid}`. {about}"]
    if not (folder / grid).is_dir():
        earlier = _earlier_section(parts[0], page.read_text(encoding="utf-8") if page.exists() else "")
        return earlier or "\n\n".join([*parts, claims_table(claims, None)]) + "\n"
    results = load(folder / grid)
    selection = select(results)
    if grid == "noise_small":
        save(noise_figure(selection), images / "robustness_noise.png", "noise", ("png",))
        parts.append("![Accuracy against the level of noise](images/robustness_noise.png)")
    else:
        tests = compare(selection, results.grid["compare"], strict=False)
        parts.append(render(performance_table(selection, tests), "markdown"))
    if grid == "init_small":
        save(distribution_figure(selection), images / "robustness_lambdas.png", "lambdas", ("png",))
        parts.append("![Where λ1 and λ2 ended](images/robustness_lambdas.png)")
    parts.append(claims_table(claims, selection))
    parts.append(f"{len(results.runs)} runs finished, {len(results.problems)} not.")
    return "\n\n".join(parts) + "\n"


def _earlier_section(heading: str, page: str) -> str | None:
    _, found, rest = page.partition(heading + "\n")
    return found + rest.partition("\n## ")[0] if found else None


def main(folder: Path, docs: Path = DOCS) -> None:
    noise = (
        "Noise on the features (σ up to 1) or fake edges (up to half as many as true ones), drawn anew for every seed."
    )
    init = "Two initialisations, one head and eight. A dot of the picture is a run, a bar their mean."
    ablation = "Models that learn one λ, between those that learn none and both."
    sections = [
        _section("Noise", "noise_small", noise, NOISE, folder, docs),
        _section("Initial weights", "init_small", init, INITIALISATION, folder, docs),
        _section("Which λ", "ablation_small", ablation, list(_ablation_claims()), folder, docs),
    ]
    (docs / "robustness.md").write_text("\n".join([INTRODUCTION, *sections, OGB]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
