"""The grids that come with the package, checked by the real worker."""

import re
import textwrap
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from lcat_run.sweep.grid import read_grid
from lcat_run.sweep.launch import planning_worker
from lcat_run.sweep.plan import make_plan

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
