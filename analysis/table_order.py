"""The order of models in tables and figures, and the rules between their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lcat_core.models import MODELS


def model_order(models: Iterable[object], grid_order: Iterable[str] = ()) -> list[str]:
    """Sort models: those of the grid first and in its order, then the paper's, then all others by name."""
    grid_order, known = list(grid_order), list(MODELS)

    def rank(model: str) -> tuple[int, int, str]:
        in_grid = grid_order.index(model) if model in grid_order else len(grid_order)
        in_paper = known.index(model) if model in known else len(known)
        return in_grid, in_paper, model

    return sorted(map(str, models), key=rank)


def rule_before(model: str, previous: str | None, baselines: Mapping[str, str]) -> bool:
    """Whether a table draws a rule between two rows: a baseline and the models compared with it form a block."""
    if previous is None:
        return False
    return baselines.get(model, model) != baselines.get(previous, previous)
