from datetime import date

import pytest

from lcat_core.errors import UserError
from lcat_core.models import MODELS
from lcat_run.sweep.grid import find_config, parse_grid, read_grid


def parse(overrides=None, **document):
    return parse_grid({"models": ["gcn"], **document}, "g.yaml", dict(overrides or {}))


def test_models_may_be_a_list_of_names_of_the_paper():
    assert parse(models=["gcn", "lcatv2"]).models == {
        "gcn": MODELS["gcn"].settings,
        "lcatv2": MODELS["lcatv2"].settings,
    }


def test_a_model_without_settings_is_the_one_of_the_paper():
    grid = parse(models={"gat": None, "mine": {"lcat": {"heads": 8}}})
    assert grid.models == {"gat": MODELS["gat"].settings, "mine": {"lcat.heads": 8}}


def test_nested_keys_become_flat():
    grid = parse(axes={"optim": {"base_lr": [1, 2]}})
    assert grid.blocks[0].axes[0].points == ({"optim.base_lr": 1}, {"optim.base_lr": 2})


def test_a_number_of_seeds_counts_from_zero():
    assert parse(seeds=3).blocks[0].seeds == (0, 1, 2)


def test_seeds_may_be_a_list():
    assert parse(seeds=[5, 9]).blocks[0].seeds == (5, 9)


def test_a_linked_axis_sets_several_keys_at_once():
    grid = parse(axes={"degree": [{"block_model.avg_degree": 2, "dataset.label": "d2"}]})
    assert grid.blocks[0].axes[0].points == ({"block_model.avg_degree": 2, "dataset.label": "d2"},)


def test_a_setting_of_the_command_line_replaces_an_axis():
    grid = parse({"optim.base_lr": 7}, axes={"optim.base_lr": [1, 2], "lcat.heads": [1]})
    assert [axis.name for axis in grid.blocks[0].axes] == ["lcat.heads"]
    assert grid.blocks[0].set == {"optim.base_lr": 7}


def test_seeds_can_be_set_on_the_command_line():
    assert parse({"seeds": 2}, seeds=10).blocks[0].seeds == (0, 1)


def test_baselines_of_the_paper_are_filled_in():
    grid = parse(models=["gat", "cat", "lcat", "catv2"])
    assert grid.document["compare"] == {"cat": "gat", "lcat": "gat"}


def test_the_recorded_grid_is_a_grid_again():
    grid = parse(models=["gat", "cat"], seeds=2, axes={"lcat.heads": [1, 2]}, select={"over": ["lcat.heads"]})
    assert parse_grid(grid.document, "g.yaml", {}).blocks == grid.blocks


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"model": ["gcn"]}, "did you mean 'models'"),
        ({"models": ["lcatv3"]}, "unknown model 'lcatv3' in g.yaml; did you mean 'lcatv2'"),
        ({"models": []}, "`models` in g.yaml must"),
        ({"models": "gcn"}, "`models` in g.yaml must"),
        ({"axes": {"optim.base_lr": 0.1}}, "axis 'optim.base_lr' in g.yaml must be a list"),
        ({"axes": {"optim.base_lr": []}}, "at least one value"),
        ({"axes": {"lcat.heads": [1, 1]}}, "has the value 1 twice"),
        ({"axes": {"a": [{"x": 1}], "b": [{"x": 2}]}}, "'x' is set by two axes"),
        ({"axes": {"a": [{"x": 1}, 2]}}, "mixes mappings"),
        ({"axes": {"a": [{"x": 1}, {"y": 1}]}}, "must all set the same keys"),
        ({"axes": {"seed": [1, 2]}}, "use `seeds`"),
        ({"axes": ["lcat.heads"]}, "`axes` in g.yaml must be a mapping"),
        ({"seeds": 0}, "`seeds` in g.yaml must be a positive number"),
        ({"seeds": [1, 1]}, "different whole numbers"),
        ({"seeds": True}, "`seeds`"),
        ({"name": "a/b"}, "`name` in g.yaml"),
        ({"base": 3}, "`base` in g.yaml"),
        ({"select": {"over": ["lcat.heads"]}}, "which is not an axis"),
        ({"axes": {"lcat.heads": [1]}, "select": {"over": ["lcat.head"]}}, "did you mean 'lcat.heads'"),
        ({"axes": {"a": [1]}, "select": {"over": ["a"], "by": "accuracy"}}, "such as val.accuracy"),
        ({"compare": {"gcn": "gta"}}, "not one of its models"),
        ({"override": [{"when": {"model": "gcn"}}]}, "needs both `when` and `set`"),
        ({"include": [{"axis": {}}]}, "did you mean 'axes'"),
        ({"exclude": {"model": "gcn"}}, "`exclude` in g.yaml must be a list"),
        ({"match": "lcat.heads"}, "`match` in g.yaml must be a list"),
        ({"match": 3}, "`match` in g.yaml must be a list"),
        ({"select": {"over": [{"a": 1}]}}, "which is not an axis"),
        ({"axes": {"a": [1]}, "select": {"over": ["a"], "by": "test.accuracy"}}, "validation metric"),
        ({"compare": {"gcn": ["gat"]}}, "not one of its models"),
        ({"models": [["gcn"]]}, "unknown model"),
        ({"models": {"gcn": 0}}, "model 'gcn' in g.yaml must be a mapping"),
        ({"models": ["gcn", "gcn"]}, "has 'gcn' twice"),
        ({"include": [{"models": []}]}, "`models` in include[0] in g.yaml must"),
        ({"set": {"seed": 5}}, "use `seeds: [5]`"),
        ({"models": {"own": {"seed": 5}}}, "use `seeds: [5]`"),
        ({"override": [{"when": {"model": "gcn"}, "set": {"seed": 5}}]}, "use `seeds: [5]`"),
        ({"override": [{"when": {"seed": 0}, "set": {"lcat.heads": 2}}]}, "applies to all seeds"),
        ({"seeds": 20240131}, "the one seed 20240131 is [20240131]"),
        ({"axes": {"optim.base_lr": [float("nan")]}}, "expected text, a number, true, false or null"),
        ({"axes": {"optim.base_lr": [date(2024, 1, 31)]}}, "in g.yaml, axes, optim.base_lr"),
        ({"axes": {"optim.base_lr": [1], "optim": {"base_lr": [2]}}}, "'optim.base_lr' appears twice in g.yaml"),
        ({"axes": {"lcat.lambda1": [0, 1]}}, "set by the model 'gcn' and by the axis 'lcat.lambda1'"),
        ({"axes": {"num_threads": [1, 2]}}, "changes nothing that a run computes"),
    ],
)
def test_a_mistake_is_reported_in_one_message(document, message):
    with pytest.raises(UserError) as error:
        parse(**document)
    assert message in str(error.value)


def test_a_key_that_appears_twice_is_an_error(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("models: [gcn]\naxes:\n  lcat.heads: [1]\n  lcat.heads: [2]\n")
    with pytest.raises(UserError, match=r"'lcat.heads' appears twice .* line 4"):
        read_grid(path)


def test_a_merged_mapping_may_be_replaced_key_by_key(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("models:\n  a: &a {lcat.heads: 1, gnn.act: elu}\n  b: {<<: *a, lcat.heads: 2}\n")
    assert read_grid(path).models["b"] == {"lcat.heads": 2, "gnn.act": "elu"}


def test_a_grid_that_contains_itself_is_an_error(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("models: [gcn]\naxes: {lcat.heads: &a [*a]}\n")
    with pytest.raises(UserError, match=r"grid\.yaml is not valid YAML: aliases expand it"):
        read_grid(path)


def test_an_empty_mapping_is_the_model_of_the_paper_too():
    assert parse(models={"gcn": {}}).models == parse(models=["gcn"]).models


def test_settings_of_the_command_line_may_be_nested():
    assert parse({"optim": {"base_lr": 0.1}}).blocks[0].set == {"optim.base_lr": 0.1}


def test_seeds_of_the_command_line_hold_for_included_products():
    grid = parse({"seeds": 2}, include=[{"axes": {"lcat.heads": [8]}, "seeds": [7]}])
    assert [block.seeds for block in grid.blocks] == [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("overrides", "message"), [({"seed": 5}, r"seeds '\[5\]'"), ({"seeds": "x"}, "the command line")]
)
def test_a_mistake_on_the_command_line_is_not_blamed_on_the_grid(overrides, message):
    with pytest.raises(UserError, match=message) as error:
        parse(overrides)
    assert "g.yaml" not in str(error.value)


def test_a_setting_that_defines_a_model_cannot_be_set_for_all():
    with pytest.raises(UserError, match="defines the model 'gcn'"):
        parse({"lcat.lambda1": 1})


def test_a_key_of_a_linked_axis_cannot_be_set_on_the_command_line():
    with pytest.raises(UserError, match="--only"):
        parse({"dataset.label": "x"}, axes={"degree": [{"dataset.label": "a", "block_model.avg_degree": 1}]})


def test_a_grid_must_be_a_mapping():
    with pytest.raises(UserError, match=r"a grid in g\.yaml must be a mapping"):
        parse_grid(["gcn"], "g.yaml", {})


def test_a_file_that_is_not_a_grid_is_not_quoted_in_full():
    with pytest.raises(UserError) as error:
        parse_grid("some other text " * 1000, "g.yaml", {})
    assert len(str(error.value)) < 300


def test_a_base_is_looked_for_beside_the_grid_first(tmp_path):
    (tmp_path / "real.yaml").write_text("")
    assert find_config("real.yaml", tmp_path / "grid.yaml") == tmp_path / "real.yaml"


def test_a_grid_is_not_mistaken_for_its_own_base(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real.yaml").write_text("")
    assert find_config("real.yaml", tmp_path / "real.yaml").samefile(find_config("real", tmp_path / "grid.yaml"))


def test_an_unknown_base_offers_the_nearest(tmp_path):
    with pytest.raises(UserError, match="did you mean 'real'"):
        find_config("rael.yaml", tmp_path / "grid.yaml")


def test_a_setting_of_the_command_line_wins_over_the_rules_for_some_runs():
    rule = {"when": {"model": "gcn"}, "set": {"optim.max_epoch": 100, "gnn.act": "elu"}}
    grid = parse({"optim.max_epoch": 2}, override=[rule])
    assert [rule.set for rule in grid.override] == [{"gnn.act": "elu"}]
    assert grid.document["override"] == [{"when": {"model": "gcn"}, "set": {"gnn.act": "elu"}}]


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ({"optim.base_lr": [0.1, 0.2]}, "`axes`, to run all its values"),
        ({"optim": {"max_epoch": 5}}, "`set`, or under `axes`"),
    ],
)
def test_a_setting_in_the_wrong_place_says_where_it_belongs(field, place):
    with pytest.raises(UserError) as error:
        parse_grid({"models": ["gat"], **field}, "g.yaml", {})
    assert "in g.yaml is a setting of runs: put it under " + place in str(error.value)
