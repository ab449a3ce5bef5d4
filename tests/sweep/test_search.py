"""Random search: what is drawn, and how a grid with a search is planned."""

from __future__ import annotations

import pytest
import yaml

from lcat_core.errors import UserError
from lcat_run.sweep.grid import parse_grid
from lcat_run.sweep.search import TRIAL, parse_search

SPACE = {
    "optim.base_lr": {"log_uniform": ["1e-4", 0.1]},
    "gnn": {
        "dropout": {"uniform": [0, 0.7]},
        "layers_mp": {"integers": [1, 4]},
        "dim_inner": {"log_integers": [8, 256]},
    },
    "lcat.heads": {"choice": [1, 2, 4]},
}


def points(trials=20, **fields):
    axis = parse_search({"trials": trials, "search": SPACE, **fields}, "g.yaml")
    return [dict(point) for point in axis.points]


def test_values_lie_where_their_distributions_say():
    drawn = points(400)
    for key, low, high in [
        ("optim.base_lr", 1e-4, 0.1),
        ("gnn.dropout", 0, 0.7),
        ("gnn.layers_mp", 1, 4),
        ("gnn.dim_inner", 8, 256),
    ]:
        values = [point[key] for point in drawn]
        assert low <= min(values) and max(values) <= high
    assert {point["gnn.layers_mp"] for point in drawn} == {1, 2, 3, 4}
    assert {point["lcat.heads"] for point in drawn} == {1, 2, 4}
    below = sum(point["optim.base_lr"] < 10**-2.5 for point in drawn)
    assert 150 < below < 250  # half of the logarithms
    assert 0.3 < sum(point["gnn.dropout"] for point in drawn) / 400 < 0.4


def test_more_trials_add_points_and_change_none():
    assert points(50)[:20] == points(20)


def test_another_seed_draws_other_points():
    assert points(search_seed=1) != points(search_seed=0)


def test_another_key_leaves_the_values_of_the_others():
    fewer = {key: value for key, value in SPACE.items() if key != "lcat.heads"}
    assert points(20, search=fewer) == [{k: v for k, v in p.items() if k != "lcat.heads"} for p in points(20)]


def test_no_point_is_drawn_twice_even_from_a_small_space():
    axis = parse_search(
        {"trials": 6, "search": {"lcat.heads": {"choice": [1, 2]}, "gnn.layers_mp": {"integers": [1, 3]}}}, "g"
    )
    assert len({tuple(point.items()) for point in axis.points}) == 6


def test_drawn_numbers_survive_yaml():
    assert yaml.safe_load(yaml.safe_dump(points(100))) == points(100)


def test_a_grid_chooses_the_trial_by_validation():
    grid = parse_grid({"models": ["gat", "lcat"], "trials": 3, "search": SPACE}, "g.yaml", {})
    assert grid.document["select"] == {"over": [TRIAL]}
    assert len(grid.document["axes"][TRIAL]) == 3


def test_the_number_of_trials_can_be_given_on_the_command_line():
    grid = parse_grid({"models": ["gat"], "trials": 3, "search": SPACE}, "g.yaml", {"trials": 5})
    assert len(grid.blocks[0].axes[0].points) == 5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"trials": 0}, "`trials` in g.yaml must be a whole number from 1 to 100000, got 0"),
        ({"search": None}, "`trials` in g.yaml needs distributions to draw from, such as `search: "),
        ({"search": {"optim.base_lr": {"loguniform": [1, 2]}}}, "unknown distribution: 'loguniform'; did you mean 'log_uniform'"),
        ({"search": {"optim.base_lr": [0.1, 0.2]}}, "unknown distribution: 'base_lr'"),
        ({"search": {"optim.base_lr": {"log_uniform": [0, 1]}}}, "must be [low, high] with 0 < low, got [0, 1]"),
        ({"search": {"gnn.layers_mp": {"integers": [1.5, 2]}}}, "must be [low, high], whole numbers, both included, got [1.5, 2]"),
        ({"search": {"lcat.heads": {"choice": [1]}}}, "must be a list of at least two values, got [1]"),
        ({"trials": 3, "search": {"lcat.heads": {"choice": [1, 2]}}}, "has only 2 different points or a few more: lower `trials`"),
        ({"search": {"seed": {"integers": [1, 9]}}}, "has `seed`, but `seeds` gives every run its seed"),
        ({"search_seed": "a"}, "`search_seed` in g.yaml must be a whole number, got 'a'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message(fields, message):
    with pytest.raises(UserError) as error:
        parse_search({"trials": 2, "search": SPACE, **fields}, "g.yaml")
    assert message in str(error.value)


def test_a_key_cannot_be_an_axis_and_searched():
    with pytest.raises(UserError, match=r"'lcat.heads' is set by two axes in g.yaml: 'lcat.heads' and 'trial'"):
        parse_grid({"models": ["gat"], "axes": {"lcat.heads": [1]}, "trials": 2, "search": SPACE}, "g.yaml", {})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"select": {"over": 5}}, "`select.over` in g.yaml must be a list, got 5"),
        ({"select": {"over": "lcat.heads"}}, "`select.over` in g.yaml must be a list"),
        ({"axes": {TRIAL: [{"gnn.act": "elu"}, {"gnn.act": "relu"}]}}, "two axes named 'trial'"),
    ],
)
def test_what_does_not_go_with_a_search_is_refused(fields, message):
    with pytest.raises(UserError, match=message):
        parse_grid({"models": ["gat"], "trials": 3, "search": SPACE, **fields}, "g.yaml", {})
