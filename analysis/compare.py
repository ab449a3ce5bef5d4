"""Compare every model with its declared baseline on every dataset: paired tests, Holm's correction, a verdict.

The verdict of a pair is one of

- ``better`` / ``worse``: the Holm-adjusted p of the paired t-test is below α;
- ``equivalent``: it is not, and two one-sided tests show that the difference is within ±margin (p < α, not adjusted);
- ``suggestive``: neither, but the unadjusted p is below α;
- ``undetermined``: none of these, so these seeds do not decide;
- ``refused``: the runs cannot be paired; ``note`` names what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lcat_analysis.metrics import Measure
from lcat_analysis.pairing import Pairing
from lcat_analysis.select import Selection
from lcat_core.errors import ResultsError, did_you_mean, unknown_name
from lcat_core.models import default_baselines, display_name

VERDICTS = ("better", "worse", "equivalent", "suggestive", "undetermined", "refused")
FAMILIES = ("all", "dataset", "model")
UNITS = ("run", "split")
ALPHA = 0.05
MARGIN = 0.5  # points; there is no sensible default for other units


@dataclass
class Comparisons:
    """``table`` has one row per pair, dataset and variant; the other attributes say how it was computed."""

    table: pd.DataFrame
    baselines: dict[str, str]
    variants: list[str]
    measure: Measure
    alpha: float
    margin: float | None
    family: str
    unit: str
    splits: int  # the largest number of splits of one dataset

    @property
    def tested(self) -> pd.DataFrame:
        return self.table[self.table["verdict"] != "refused"]

    @property
    def has_pairs(self) -> bool:
        """Whether a model and its baseline both have a mean anywhere; a sweep that has just begun may have no such pair."""
        return bool(self.table[["model_mean", "baseline_mean"]].notna().all(axis=1).any())

    @property
    def untested(self) -> dict[str, str]:
        """Declared pairs, model → baseline, whose model has no finished run."""
        present = set(self.table["model"])
        return {model: baseline for model, baseline in self.baselines.items() if model not in present}

    def pooling_notes(self) -> list[str]:
        """Say what tests mean that pool the pairs of several splits."""
        if self.splits < 2 or self.unit == "split":
            return []
        return [
            f"The pairs of up to {self.splits} splits are pooled as if independent. Pairs of one split share it, "
            "so these tests are about new seeds on these splits, not about new splits; for those, use --unit split."
        ]

    def family_text(self) -> str:
        """Describe the family of Holm's correction."""
        n = len(self.tested)
        if self.family == "all":
            return f"all {n} tests of this table"
        per = "dataset" if self.family == "dataset" else "model"
        return f"the tests of one {per} ({n} tests in all)"

    def outcome(self, correction: str = "none") -> dict[tuple[Any, ...], str]:
        """Return (model, dataset, *variant) → ``better`` or ``worse``, by the plain p, as in the paper, or by Holm's."""
        column = {"none": "p", "holm": "p_holm"}[correction]
        found = {}
        for row in self.tested.to_dict("records"):
            if row[column] < self.alpha:
                key = (row["model"], row["dataset"], *(row[key] for key in self.variants))
                found[key] = "better" if self.measure.sign * row["difference"] > 0 else "worse"
        return found


def pair_name(model: str, baseline: str) -> str:
    """``L-CAT − GAT``."""
    return f"{display_name(model)} − {display_name(baseline)}"


def compare(
    selection: Selection,
    baselines: Mapping[str, str] | None = None,
    *,
    alpha: float = ALPHA,
    margin: float | None = None,
    family: str = "all",
    unit: str = "run",
    overlap: float | None = None,
    common_seeds: bool = False,
    strict: bool = True,
) -> Comparisons:
    """Test each model against its baseline.

    Args:
        baselines: model → baseline, as in the grid's ``compare``; by default the paper's pairs.
        alpha: Level of the tests, of the intervals (1 − α) and of the verdict.
        margin: Smaller differences count as equivalent; by default 0.5 points, and none for metrics without a unit, such as a loss.
        family: The tests that Holm's correction covers: ``all``, or those of one ``dataset`` or one ``model``.
        unit: What is paired: each ``run``, or the mean of each ``split`` over its seeds. Pairs that share a split are not
            independent evidence about other splits, and neither are splits that share nodes; the latter is corrected for.
        overlap: Test nodes / training nodes of a split, for that correction; by default what the runs recorded.
        common_seeds: Pair the seeds that both models have; otherwise a pair with a lost seed is refused.
        strict: Raise if a model or baseline has no run; otherwise its pairs are refused one by one.
    """
    if not 0 < alpha < 1:
        raise ResultsError(f"alpha must be between 0 and 1, got {alpha}")
    if margin is None:
        margin = MARGIN if selection.measure.unit else None
    elif not margin > 0:
        raise ResultsError(f"the margin must be positive, got {margin}")
    if overlap is not None and not 0 <= overlap < math.inf:
        raise ResultsError(f"the overlap, test nodes / training nodes, must be at least 0, got {overlap}")
    for name, value, known in (("family", family, FAMILIES), ("unit", unit, UNITS)):
        if value not in known:
            raise ResultsError(unknown_name(name, value, known))
    pairs = dict(baselines) if baselines else default_baselines(selection.models)
    if strict:
        _check_baselines(pairs, selection.models)
    tests = Pairing(selection, unit, alpha, margin, overlap, common_seeds)
    declared = [model for model in selection.models if model in pairs]
    conditions = selection.conditions()
    rows = [
        tests.row(model, pairs[model], condition, runs)
        for model in declared
        for condition in conditions
        if (runs := selection.cell(model, condition)) is not None
    ]
    columns = ["model", "baseline", "dataset", *selection.variants, *NUMBERS, "p_holm", "verdict", "note"]
    table = pd.DataFrame(rows, columns=columns)
    table = _decide(_adjust(table, family), selection.measure, alpha, margin)
    splits = int(selection.runs.groupby("dataset")["split_seed"].nunique().max())
    return Comparisons(table, pairs, selection.variants, selection.measure, alpha, margin, family, unit, splits)


NUMBERS = (
    "n", "model_mean", "baseline_mean", "difference", "ci_low", "ci_high", "sd", "error", "t", "p", "p_wilcoxon",
    "effect_size", "detectable", "p_equivalent", "constant",
)  # fmt: skip


def _check_baselines(pairs: Mapping[str, str], models: Sequence[str]) -> None:
    if not pairs:
        raise ResultsError(
            f"no baseline is declared: expected `compare: {{model: baseline}}` in the grid; models: {', '.join(models)}"
        )
    for model, baseline in pairs.items():
        for name, role in ((model, "model"), (baseline, f"baseline of {model!r}")):
            if name not in models:
                raise ResultsError(
                    f"the {role}, {name!r}, has no finished run; there are {', '.join(models)}{did_you_mean(name, models)}"
                )


def _adjust(table: pd.DataFrame, family: str) -> pd.DataFrame:
    from statsmodels.stats.multitest import multipletests

    table["p_holm"] = np.nan
    tested = table[table["verdict"] != "refused"]
    groups = [tested] if family == "all" else [group for _, group in tested.groupby(family)]
    for group in groups:
        if len(group):
            table.loc[group.index, "p_holm"] = multipletests(group["p"].to_numpy(float), method="holm")[1]
    return table


def _decide(table: pd.DataFrame, measure: Measure, alpha: float, margin: float | None) -> pd.DataFrame:
    tested = table["verdict"] != "refused"
    decided = tested & (table["p_holm"] < alpha)
    equivalent = tested & (table["p_equivalent"] < alpha)
    table.loc[tested, "verdict"] = np.where(table.loc[tested, "p"] < alpha, "suggestive", "undetermined")
    table.loc[equivalent, "verdict"] = "equivalent"
    table.loc[decided, "verdict"] = np.where(measure.sign * table.loc[decided, "difference"] > 0, "better", "worse")
    small = decided & equivalent & (table["note"] == "")
    table.loc[small, "note"] = f"though within ±{margin:g}" if margin is not None else ""
    return table
