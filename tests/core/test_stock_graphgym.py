"""What a configuration means in stock GraphGym."""

import pytest

from lcat_core.stock_graphgym import settled_split, split_note

DEFAULTS = {
    "dataset.format": "PyG",
    "dataset.name": "Cora",
    "dataset.split_mode": "random",
    "dataset.split": [0.8, 0.1, 0.1],
    "lcat.loop": "train",
}


@pytest.mark.parametrize(
    "settings", [{}, {"dataset.name": "PubMed"}, {"dataset.format": "OGB", "dataset.name": "ogbn-arxiv"}]
)
def test_without_a_word_about_splits_a_dataset_keeps_its_own(settings):
    assert settled_split(settings, DEFAULTS) == {"dataset.split_mode": "public"}
    assert split_note(settings | settled_split(settings, DEFAULTS), DEFAULTS) is None


@pytest.mark.parametrize(
    "settings",
    [{"dataset.split": [0.7, 0.15, 0.15]}, {"dataset.split_mode": "random"}, {"dataset.split_seed": 1}],
)
def test_a_named_split_is_kept_and_a_note_says_what_stock_graphgym_does(settings):
    assert settled_split(settings, DEFAULTS) == {}
    assert "Cora is split as" in split_note(settings, DEFAULTS)


@pytest.mark.parametrize(
    "settings", [{"dataset.format": "lcat"}, {"dataset.name": "AmazonPhoto"}, {"lcat.loop": "csbm"}]
)
def test_what_stock_graphgym_cannot_split_is_split_as_the_settings_say(settings):
    assert settled_split(settings, DEFAULTS) == {}
    assert split_note(settings, DEFAULTS) is None
