"""docs/robustness.md: noise, initial weights and ablation on Cora and AmazonPhoto, from the archives in docs/results.

The section of a sweep without an archive stays as it is.
"""

from __future__ import annotations

from pathlib import Path

from archives import RESULTS, find_archive

from lcat_analysis.claims import Claim, claims_markdown
from lcat_analysis.compare import compare
from lcat_analysis.figures import save
from lcat_analysis.lambdas import distribution_figure
from lcat_analysis.load import load
from lcat_analysis.noise import noise_figure
from lcat_analysis.render import render
from lcat_analysis.robustness_claims import ablation_claims, initialisation_claims, noise_claims
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table

PAGE = Path(__file__).with_name("robustness.md")

INTRODUCTION = """\
# Robustness: noise, initial weights, which λ

The paper studies these questions on the Open Graph Benchmark. The same experiments run on any dataset. This page shows them on Cora
and AmazonPhoto, with the network of `configs/real.yaml` (4 layers, 32 wide, 4 heads unless they vary), 200 epochs and 3 seeds:

    lcat sweep noise_small
    lcat sweep init_small
    lcat sweep ablation_small
    python docs/make.py

Below each experiment are the paper's claims about it. Each claim is expressed as a difference that is positive if the claim is
true. The difference is computed for every seed: models with the same seed share the split, the noise and the seed of the weights.
For claims about the spread over seeds, it is computed for every level of noise; the levels share their seeds, so these intervals
are somewhat too narrow.

A claim **holds** if the 95 % confidence interval of the mean difference (Student's t) is above zero, **does not hold** if it is
below, and is **undecided** if it contains zero. Three seeds decide only clear cases. The verdicts are not corrected for the
number of claims, so of fifty verdicts expect one or two false ones. Differences of accuracy are in points. The paper made its
claims on other data: "does not hold" means that a claim does not carry over to these datasets, not that the paper is wrong.
"""

OGB = """\
## At the paper's size

The grids `ogb`, `noise`, `init` and `ablation` are the paper's own, on ogbn-arxiv, -products, -mag and -proteins. They need
`pip install ogb` and OGB's files where the `ogb` package puts them, `<dataset.dir>/ogbn_arxiv` and so on.
`lcat datasets` shows which are present. Nothing is downloaded automatically. To try a grid without the files, generate random
data of the same shape and use fewer epochs:

    lcat datasets ogbn-arxiv --generate --scale 1000 --dir /tmp/ogb
    lcat sweep noise dataset.dir /tmp/ogb optim.max_epoch 20 seeds 2
    lcat plot noise noise

The paper leaves some details open. Here they are:

- Graphs are made undirected. The features of a protein are the mean of the features of its edges. Nodes of ogbn-mag without
  features get learned embeddings, as in OGB's examples. Every layer of the network has one L-CAT per relation that can still
  reach a paper, so `lambdas.csv` counts relations, layer by layer.
- On ogbn-arxiv and -products the last graph layer outputs the classes, averaged over its heads. On -mag and -proteins the network
  ends in a linear layer.
- **Training is full-batch by default**, even where the paper samples: the fused kernels need no tensor of the size edges ×
  channels. Training uses sampled batches of the paper's sizes, see [mini-batches](mini_batches.md).
  The two are different algorithms. A full-batch epoch is one step with exact neighbourhoods; a sampled epoch is many steps, each
  with random parts of the neighbourhoods. A convolved feature ĥ reaches one hop further than a GAT layer, so in a sampled batch
  the ĥ of nodes at the border are their own features. Validation and test scores always use the full graph. An interrupted
  sampled run resumes, but its numbers differ from those of an uninterrupted run.
- Noise: σ is the standard deviation of normal noise on every feature. Fake edges are `round(p · |E|)` distinct pairs of different
  nodes that are not edges; |E| is the number of undirected edges. Both are drawn once per seed.
"""


def page(results: Path = RESULTS, images: Path | None = None, current: Path = PAGE) -> str:
    """Return the page; with ``images``, also draw its figures into that folder. ``current`` is the page as it is now."""
    noise = (
        "Noise on the features (σ up to 1) or fake edges (up to half as many as true ones), drawn anew for every seed."
    )
    init = "Two initialisations, one head and eight. In the figure, a dot is one run and a bar is the mean."
    ablation = "Models that learn one λ, compared with models that learn none or both."
    earlier = current.read_text(encoding="utf-8") if current.exists() else ""
    sections = []
    for title, grid, about, claims in (
        ("Noise", "noise_small", noise, noise_claims()),
        ("Initial weights", "init_small", init, initialisation_claims()),
        ("Which λ", "ablation_small", ablation, list(ablation_claims())),
    ):
        lead = f"## {title}\n\n`lcat sweep {grid}`. {about}\n"
        archive = find_archive(grid, results)
        body = _body(grid, archive, claims, images) if archive else _earlier_body(lead, earlier)
        sections.append(f"{lead}\n{body or claims_markdown(claims, None)}\n")
    return "\n".join([INTRODUCTION, *sections, OGB])


def _body(grid: str, archive: Path, claims: list[Claim], images: Path | None) -> str:
    results = load(archive)
    selection = select(results)
    parts = []
    if grid == "noise_small":
        if images is not None:
            save(noise_figure(selection), images / "robustness_noise.png", "noise", ("png",))
        parts.append("![Accuracy against the level of noise](images/robustness_noise.png)")
    else:
        tests = compare(selection, results.grid["compare"], strict=False)
        parts.append(render(performance_table(selection, tests), "markdown"))
    if grid == "init_small":
        if images is not None:
            save(distribution_figure(selection), images / "robustness_lambdas.png", "lambdas", ("png",))
        parts.append("![Final values of λ1 and λ2](images/robustness_lambdas.png)")
    parts.append(claims_markdown(claims, selection))
    parts.append(f"Finished runs: {len(results.runs)}. Runs without a result: {len(results.problems)}.")
    return "\n\n".join(parts)


def _earlier_body(lead: str, text: str) -> str:
    """Return what stands below ``lead`` in the page as it is now."""
    return text.partition(lead)[2].partition("\n## ")[0].strip("\n")
