"""Entropy and relative size of attention coefficients."""

import numpy as np
import pytest

from lcat_analysis.attention import Attention, attention_figure

#: Node 0 averages three neighbours, node 1 attends to one of two, node 2 has only itself.
LAYER = Attention(np.array([0, 0, 0, 1, 1, 2]), np.array([[1 / 3], [1 / 3], [1 / 3], [1.0], [0.0], [1.0]]))


def test_an_average_has_entropy_one_and_a_single_choice_zero():
    assert LAYER.entropy()[:, 0] == pytest.approx([1, 0, np.nan], nan_ok=True)


def test_coefficients_are_relative_to_an_average():
    assert LAYER.relative()[:, 0] == pytest.approx([1, 1, 1, 2, 0, 1])


def test_the_figure_has_two_panels_per_layer():
    assert len(attention_figure([LAYER, LAYER]).axes) == 4
