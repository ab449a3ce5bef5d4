from collections import Counter

import pytest
from fake_worker import DEFAULTS

from lcat_core.errors import UserError
from lcat_run.sweep.cost import longest_first
from lcat_run.sweep.grid import parse_grid
from lcat_run.sweep.plan import make_plan
from lcat_run.sweep.selection import select_runs


class Settings:
    """Answers as a worker would, and records what it is asked."""

    def __init__(self):
        self.checked = []

    def describe(self, base):
        return dict(DEFAULTS), {}

    def check(self, settings):
        self.checked += settings
        for index, entry in enumerate(settings):
            for key in entry:
                if key not in DEFAULTS:
                    return index, f"{key!r} is not a key"
        return None


def plan(worker=None, **document):
    return make_plan(parse_grid({"models": ["gcn"], **document}, "g.yaml", {}), worker or Settings())


def test_a_grid_is_the_product_of_models_axes_and_seeds():
    planned = plan(models=["gcn", "gat"], axes={"lcat.heads": [1, 2], "optim.base_lr": [0.1, 0.2, 0.3]}, seeds=5)
    assert len(planned.runs) == 2 * 2 * 3 * 5
    assert len({run.run_id for run in planned.runs}) == 60


def test_a_product_that_is_too_large_is_refused_before_it_is_formed():
    axes = {f"axis{number}": list(range(10)) for number in range(9)}
    with pytest.raises(UserError, match=r"g.yaml asks for 3000000000 runs .*1 × 10 × .* at most 100000 .*--max-runs"):
        plan(axes=axes, seeds=3)


def test_the_limit_can_be_changed():
    grid = parse_grid({"models": ["gcn"], "seeds": 5}, "g.yaml", {})
    assert len(make_plan(grid, Settings(), max_runs=5).runs) == 5
    with pytest.raises(UserError, match="asks for 5 runs"):
        make_plan(grid, Settings(), max_runs=4)


def test_settings_of_one_model_do_not_leak_into_another():
    planned = plan(models={"a": {"lcat.heads": 8}, "b": {"gnn.layer_type": "linear"}})
    assert [run.params for run in planned.runs] == [{"lcat.heads": 8}, {"gnn.layer_type": "linear"}]


def test_a_run_sets_what_the_grid_its_model_and_its_axes_say():
    planned = plan(set={"optim.max_epoch": 3}, axes={"lcat.heads": [2]}, seeds=[7])
    expected = {"optim.max_epoch": 3, "gnn.layer_type": "lcatconv", "lcat.lambda1": 0, "lcat.heads": 2, "seed": 7}
    assert planned.runs[0].settings(planned.common) == expected


def test_an_override_changes_only_the_runs_it_matches():
    override = [{"when": {"dataset.name": ["CiteSeer"], "model": "gat"}, "set": {"optim.max_epoch": 9}}]
    planned = plan(models=["gcn", "gat"], axes={"dataset.name": ["Cora", "CiteSeer"]}, override=override)
    changed = [(run.model, run.dataset) for run in planned.runs if run.params.get("optim.max_epoch") == 9]
    assert changed == [("gat", "CiteSeer")]


def test_exclude_leaves_out_combinations():
    planned = plan(models=["gcn", "gat"], axes={"lcat.heads": [1, 8]}, exclude=[{"model": "gcn", "lcat.heads": 8}])
    assert [(run.model, run.params["lcat.heads"]) for run in planned.runs] == [("gcn", 1), ("gat", 1), ("gat", 8)]


def test_exclude_can_name_a_seed():
    planned = plan(seeds=3, exclude=[{"seed": [0, 2]}])
    assert [run.seed for run in planned.runs] == [1]


def test_include_adds_a_product_of_its_own():
    planned = plan(
        models=["gcn", "gat"],
        axes={"dataset.name": ["Cora"]},
        seeds=2,
        include=[{"models": ["gat"], "axes": {"dataset.name": ["CiteSeer"]}, "seeds": [5], "set": {"lcat.heads": 4}}],
    )
    assert Counter(run.dataset for run in planned.runs) == {"Cora": 4, "CiteSeer": 1}
    added = planned.runs[-1]
    assert (added.model, added.seed, added.settings(planned.common)["lcat.heads"]) == ("gat", 5, 4)


def test_a_run_that_is_included_twice_is_executed_once():
    assert len(plan(seeds=2, include=[{"seeds": [1, 2]}]).runs) == 3


def test_a_label_names_the_dataset_in_tables():
    planned = plan(axes={"degree": [{"block_model.avg_degree": 2, "dataset.label": "degree 2"}]})
    assert planned.runs[0].dataset == "degree 2"


def test_numbers_that_yaml_reads_as_text_become_numbers():
    planned = plan(axes={"optim.base_lr": ["1e-3", 1]})
    assert [run.params["optim.base_lr"] for run in planned.runs] == [0.001, 1.0]


def test_a_run_on_a_dataset_of_graphgym_without_a_split_gets_the_public_one():
    class StockWorker(Settings):
        def describe(self, base):
            split = {"dataset.format": "PyG", "dataset.split_mode": "random", "lcat.loop": "train"}
            return {**DEFAULTS, **split}, {}

        def check(self, settings):
            return None

    (run,) = plan(StockWorker(), models=["gat"], seeds=1).runs
    assert run.params["dataset.split_mode"] == "public"
    named = plan(StockWorker(), models=["gat"], seeds=1, set={"dataset.split_mode": "random"})
    assert "dataset.split_mode" not in named.runs[0].params
    assert "stock GraphGym ignores both" in named.notes[0]


def test_what_is_wrong_with_a_combination_names_it():
    with pytest.raises(UserError) as error:
        plan(axes={"lcat.heads": [1, 2], "lcat.hedas": [3]})
    assert str(error.value) == "'lcat.hedas' is not a key (in g.yaml: model gcn, lcat.heads=1, lcat.hedas=3)"


@pytest.mark.parametrize("field", ["exclude", "override"])
def test_a_condition_on_an_unknown_key_is_an_error(field):
    condition = {"lcat.head": 1}
    entry = condition if field == "exclude" else {"when": condition, "set": {"lcat.heads": 2}}
    with pytest.raises(UserError, match=r"did you mean 'lcat\.heads'"):
        plan(**{field: [entry]})


def test_a_condition_on_a_model_that_is_not_there_is_an_error():
    with pytest.raises(UserError, match="did you mean 'gcn'"):
        plan(exclude=[{"model": "gnc"}])


def test_a_condition_reads_numbers_as_settings_do():
    planned = plan(axes={"optim.base_lr": ["1e-3", "1e-2"]}, exclude=[{"optim.base_lr": "1e-3"}])
    assert [run.params["optim.base_lr"] for run in planned.runs] == [0.01]
    planned = plan(axes={"optim.base_lr": ["1e-3", "1e-2"]}, exclude=[{"optim.base_lr": ["1e-3", 1]}])
    assert [run.params["optim.base_lr"] for run in planned.runs] == [0.01]


def test_a_condition_on_a_value_that_no_run_has_is_noted():
    rule = {"when": {"dataset.name": "Coar"}, "set": {"lcat.heads": 2}}
    assert plan(override=[rule]).notes == [
        "a condition in g.yaml names dataset.name: Coar, which no run has; did you mean 'Cora'?"
    ]
    assert not plan(axes={"lcat.heads": [1, 8]}, seeds=2, exclude=[{"lcat.heads": 8, "seed": [1]}]).notes


def test_models_that_would_share_a_folder_are_an_error():
    with pytest.raises(UserError, match=r"'a b' and 'a_b' in g\.yaml would share the folder a_b-Cora-s0"):
        plan(models={"a b": {"lcat.heads": 2}, "a_b": {"lcat.heads": 2}})


def test_a_grid_that_excludes_everything_is_an_error():
    with pytest.raises(UserError, match="asks for no run"):
        plan(exclude=[{"model": "gcn"}])


def test_only_chooses_runs_by_key_and_model():
    planned = plan(models=["gcn", "gat"], axes={"optim.base_lr": [0.1, 0.2]}, seeds=2)
    chosen = select_runs(planned, {"model": ["gat"], "optim.base_lr": ["0.1"]})
    assert {(run.model, run.params["optim.base_lr"]) for run in chosen} == {("gat", 0.1)}


def test_only_with_an_unknown_key_offers_the_nearest():
    with pytest.raises(UserError, match=r"did you mean 'dataset\.name'"):
        select_runs(plan(), {"dataset.nam": ["Cora"]})


def test_only_that_matches_nothing_is_an_error():
    with pytest.raises(UserError, match=r"dataset.name=Citeseer, which no run .* \(there are: Cora\)"):
        select_runs(plan(), {"dataset.name": ["Citeseer"]})


def test_only_with_values_that_never_meet_is_an_error():
    planned = plan(
        axes={"lcat.heads": [1, 2], "gnn.act": ["relu", "elu"]}, exclude=[{"lcat.heads": 2, "gnn.act": "elu"}]
    )
    with pytest.raises(UserError, match="matches none of the 3 runs"):
        select_runs(planned, {"lcat.heads": [2], "gnn.act": ["elu"]})


def test_seeds_are_not_checked_one_by_one():
    worker = Settings()
    plan(worker, axes={"lcat.heads": [1, 2]}, seeds=50)
    assert len(worker.checked) == 2


def test_a_hundred_thousand_runs_have_names_of_their_own():
    axes = {"lcat.heads": list(range(1, 101)), "optim.base_lr": [i / 1000 for i in range(1, 11)]}
    planned = plan(models=["gcn", "gat", "cat", "lcat", "gatv2"], axes=axes, seeds=20)
    assert len({run.run_id for run in planned.runs}) == 100_000


def test_runs_on_one_sampled_graph_come_one_after_the_other():
    class WithCsbm(Settings):
        def describe(self, base):
            return {**DEFAULTS, "lcat.loop": "csbm", "csbm.n": 9, "csbm.p": 0.5, "csbm.q": 0.1, "csbm.mu_norm": 1.0}, {}

        def check(self, settings):
            return None

    planned = plan(WithCsbm(), axes={"csbm.q": [0.1, 0.3], "csbm.mu_norm": [1.0, 2.0, 3.0]}, seeds=2)
    graphs = [(run.params["csbm.q"], run.seed) for run in longest_first(planned, planned.runs)]
    assert graphs == [(0.1, 0)] * 3 + [(0.1, 1)] * 3 + [(0.3, 0)] * 3 + [(0.3, 1)] * 3
