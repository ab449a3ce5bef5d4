"""The grids that come with the package, checked by the real worker."""

import hashlib
import re
import textwrap
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from lcat_run.sweep.grid import read_grid
from lcat_run.sweep.plan import make_plan
from lcat_run.sweep.worker import planning_worker

pytestmark = pytest.mark.slow

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "grids.md"
FOLDER = Path(str(resources.files("lcat_grids")))
DATASETS = 11


@pytest.fixture(scope="module")
def worker():
    with planning_worker(threads=1) as worker:
        yield worker


@pytest.fixture
def plan_of(worker):
    return lambda name: make_plan(read_grid(FOLDER / f"{name}.yaml"), worker)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_grid_can_start(path, worker):
    plan = make_plan(read_grid(path), worker)
    assert len({run.run_id for run in plan.runs}) == len(plan.runs) > 0
    assert not plan.notes


#: Per grid: number of runs, first and last id, and a digest of all ids in order. Results of users have these names.
#: Those of OGB changed once, together with the experiment: it trains on sampled batches, as the paper does, and no longer in full.
PINNED = [
    ("ablation", 250, "gcn-ogbn_proteins-s0-824f116442", "catv2_l2-ogbn_proteins-s4-7cccd6c6c8", "c6ee6e8e0adc428c"),
    ("csbm_small", 208, "gcn-csbm-s0-a990c21e49", "lcat-csbm-s1-2be231c285", "8e1a9fce22a583cc"),
    ("demo", 240, "dense-BlockModel-s0-2e36e3b351", "lcatv2-BlockModel-s4-fabe5aacd7", "a8eb570a10e928cf"),
    ("gcnii", 2860, "gcnii-AmazonComputers-s0-e2de2449e5", "lgcniicatv2-CiteSeer-s9-965a09616a", "830198b962eef853"),
    ("init_small", 84, "gcn-Cora-s0-de5f38a10c", "lcat-AmazonPhoto-s2-4090658466", "26de0d86ab3bb149"),
    ("noise_small", 240, "gcn-Cora-s0-4ff398af53", "lcat-AmazonPhoto-s2-d0e5fb11c4", "8fa8ddb826d7d143"),
    ("ogb", 260, "gcn-ogbn_arxiv-s0-272ab6f11d", "lcatv2-ogbn_proteins-s4-8c8db73819", "1cf10259616eabd3"),
    ("pna", 2860, "pna-AmazonComputers-s0-bd2b90744b", "lpnacatv2-CiteSeer-s9-625fa13546", "3cbe38a29d9e56df"),
    ("real", 1760, "dense-AmazonComputers-s0-7a1a01d129", "lcatv2-CiteSeer-s9-ef88c28b4f", "97c5d511e567272c"),
    ("reproduction", 186, "dense-Cora-s0-448d85853c", "gcn-PubMed-s0-3840de6aa3", "54870860315d06c0"),
]


@pytest.mark.parametrize(("name", "count", "first", "last", "digest"), PINNED, ids=[entry[0] for entry in PINNED])
def test_run_ids_never_change(name, count, first, last, digest, plan_of):
    ids = [run.run_id for run in plan_of(name).runs]
    assert (len(ids), ids[0], ids[-1]) == (count, first, last)
    assert hashlib.sha256("\n".join(ids).encode()).hexdigest().startswith(digest)


def test_the_demo_has_eight_models_six_degrees_and_five_seeds(plan_of):
    runs = plan_of("demo").runs
    assert Counter(run.model for run in runs) == dict.fromkeys(
        ("dense", "gcn", "gat", "cat", "lcat", "gatv2", "catv2", "lcatv2"), 30
    )
    assert set(Counter(run.dataset for run in runs).values()) == {40}
    assert {run.seed for run in runs} == set(range(5))


def test_the_real_grid_is_the_papers(plan_of):
    plan = plan_of("real")
    assert len(plan.runs) == 8 * DATASETS * 2 * 10
    complete = {**plan.defaults, **plan.common}
    assert (complete["gnn.layers_mp"], complete["gnn.dim_inner"], complete["lcat.heads"]) == (4, 32, 4)
    assert (complete["optim.max_epoch"], complete["optim.lr_decay"], complete["optim.weight_decay"]) == (
        2500,
        0.998,
        0.0,
    )


@pytest.mark.parametrize("name", ["pna", "gcnii"])
def test_the_grids_of_other_networks_have_both_kinds_of_weights_where_there_is_a_score(name, plan_of):
    plan = plan_of(name)
    kinds = Counter((run.model == name, run.params["lcat.score_weights"]) for run in plan.runs)
    cell = DATASETS * 2 * 10
    assert kinds == {(True, "shared"): cell, (False, "shared"): 6 * cell, (False, "separate"): 6 * cell}


def test_the_grid_of_the_documentation_can_start(tmp_path, worker):
    block = re.search(r"^    name: mine.*\n(?:    .*\n)+", DOCUMENTATION.read_text(), re.MULTILINE)
    (tmp_path / "mine.yaml").write_text(textwrap.dedent(block[0]))
    plan = make_plan(read_grid(tmp_path / "mine.yaml"), worker)
    assert len(plan.runs) == (3 * 2 * 2 * 2 - 1 * 2 * 2) * 5 + 1
