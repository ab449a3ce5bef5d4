"""Writes docs/robustness.md and its pictures: noise, initial weights and ablation on Cora and AmazonPhoto.

lcat sweep noise_small && lcat sweep init_small && lcat sweep ablation_small
python docs/robustness.py results

The section of a sweep that is not among the results stays as it was.
"""

import sys
from pathlib import Path

from page_sections import earlier_section
from robustness_claims import INITIALISATION, NOISE, Claim, Runs, ablation_claims, verdict

from lcat_analysis.compare import compare
from lcat_analysis.figures import save
from lcat_analysis.lambdas import distribution_figure
from lcat_analysis.load import load
from lcat_analysis.noise import noise_figure
from lcat_analysis.render import render
from lcat_analysis.select import Selection, select
from lcat_analysis.tables import performance_table

DOCS = Path(__file__).parent

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
about the spread over seeds, for every level of noise (the levels share their seeds, so these intervals are somewhat too
narrow). It **holds** if the 95 % confidence interval of the mean difference (Student's t) lies above zero, **does not hold** if
it lies below, and is **undecided** if it contains zero: three seeds decide only what is clear. Each claim is tested by itself, so
of fifty verdicts one or two are expected to be accidents. Differences of accuracy are in points. The paper made its claims on
other data, so "does not hold" says that it does not carry over to these, not that the paper is wrong.
"""

OGB = """\
## At the paper's size

The grids `ogb`, `noise`, `init` and `ablation` are the paper's own, on ogbn-arxiv, -products, -mag and -proteins. They need the
extra `pip install 'graphgym-lcat[ogb]'` and OGB's files where the `ogb` package puts them, `<dataset.dir>/ogbn_arxiv` and so on;
`lcat datasets` says which are there. Nothing is downloaded by itself, and there are no prompts. To try a grid without them,
write random data of the same shape and start it with fewer epochs:

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
        earlier = earlier_section(parts[0], page)
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


def main(folder: Path, docs: Path = DOCS) -> None:
    noise = (
        "Noise on the features (σ up to 1) or fake edges (up to half as many as true ones), drawn anew for every seed."
    )
    init = "Two initialisations, one head and eight. A dot of the picture is a run, a bar their mean."
    ablation = "Models that learn one λ, between those that learn none and both."
    sections = [
        _section("Noise", "noise_small", noise, NOISE, folder, docs),
        _section("Initial weights", "init_small", init, INITIALISATION, folder, docs),
        _section("Which λ", "ablation_small", ablation, list(ablation_claims()), folder, docs),
    ]
    (docs / "robustness.md").write_text("\n".join([INTRODUCTION, *sections, OGB]), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("expected the folder of the sweeps: python docs/robustness.py results")
    main(Path(sys.argv[1]))
