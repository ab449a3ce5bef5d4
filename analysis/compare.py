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
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from lcat_analysis.metrics import Measure
from lcat_analysis.paired import PairedTest, paired_test
from lcat_analysis.repetitions import Repetitions
from lcat_analysis.select import Condition, Selection
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
    strict: bool = True,
) -> Comparisons:
    """Test each model against its baseline.

    Args:
        baselines: model → baseline, as in the grid's ``compare``; by default the paper's pairs.
        alpha: Level of the tests, of the intervals (1 − α) and of the verdict.
        margin: Smaller differences count as equivalent; by default 0.5 points, and none for metrics without a unit, such as a loss.
        family: The tests that Holm's correction covers: ``all``, or those of one ``dataset`` or one ``model``.
        unit: What is paired: each ``run``, or the mean of each ``split`` over its seeds. Pairs that share a split are not
            independent evidence about other splits.
        strict: Raise if a model or baseline has no run; otherwise its pairs are refused one by one.
    """
    if not 0 < alpha < 1:
        raise ResultsError(f"alpha must be between 0 and 1, got {alpha}")
    if margin is None:
        margin = MARGIN if selection.measure.unit else None
    elif not margin > 0:
        raise ResultsError(f"the margin must be positive, got {margin}")
    for name, value, known in (("family", family, FAMILIES), ("unit", unit, UNITS)):
        if value not in known:
            raise ResultsError(unknown_name(name, value, known))
    pairs = dict(baselines) if baselines else default_baselines(selection.models)
    if strict:
        _check_baselines(pairs, selection.models)
    tests = _Pairing(selection, unit, alpha, margin)
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
    "n", "model_mean", "baseline_mean", "difference", "ci_low", "ci_high", "sd", "t", "p", "p_wilcoxon",
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


@dataclass(frozen=True)
class _Pairing:
    """How runs are paired and tested."""

    selection: Selection
    unit: str
    alpha: float
    margin: float | None

    def row(self, model: str, baseline: str, condition: Condition, runs: Repetitions) -> dict[str, Any]:
        """Test one pair under one condition; ``runs`` are those of the model."""
        row = {"model": model, "baseline": baseline, "dataset": condition[0], **self.selection.settings(condition)}
        try:
            if np.isnan(runs.values).all() and not runs.diverged.any():
                raise ResultsError(
                    f"{display_name(model)} did not record {self.selection.measure_of(condition[0]).name}"
                )
            other, remark = self._baseline_runs(baseline, condition)
            row |= {"model_mean": _mean(runs), "baseline_mean": _mean(other)}
            if not runs.can_be_paired(other):
                _refuse_pairing(model, runs.series(), baseline, other.series())
            if len(runs.values) < 2:
                raise ResultsError(f"only {_name_seeds(runs.series().index)}: a paired test needs at least 2 seeds")
            values, other_values = runs.values, other.values
            if self.unit == "split":
                values, other_values = runs.split_means(), other.split_means()
                if len(values) < 2:
                    raise ResultsError("only one split: a paired test of splits needs at least 2")
            test = paired_test(values, other_values, alpha=self.alpha, margin=self.margin)
            return row | vars(test) | {"verdict": "", "note": _describe(test) or remark}
        except ResultsError as error:
            return row | {"n": 0, "verdict": "refused", "note": str(error)}

    def _baseline_runs(self, baseline: str, condition: Condition) -> tuple[Repetitions, str]:
        """Return the runs of the baseline under the same condition, and a remark if the condition differs.

        It may differ in a hyperparameter of which the baseline has only one value (GCN has one head), unless the grid's
        ``match`` forbids it.
        """
        selection = self.selection
        strict = selection.varied.get(baseline, set()) | set(selection.match)
        wanted = selection.settings(condition)
        shared = {key: value for key, value in wanted.items() if key in strict}
        candidates = [
            found
            for found in selection.variants_of(baseline, condition[0])
            if all(found[key] == value for key, value in shared.items())
        ]
        if not candidates:
            setting = ", ".join(f"{key} = {value}" for key, value in shared.items())
            where = f"{condition[0]} with {setting}" if setting else condition[0]
            raise ResultsError(f"{display_name(baseline)} has no finished run on {where}")
        found = candidates[0]
        other = [f"{key} = {found[key]}" for key, value in wanted.items() if found[key] != value]
        remark = f"baseline with {', '.join(other)}" if other else ""
        runs = selection.cell(baseline, (condition[0], *found.values()))
        assert runs is not None  # variants_of lists only cells with runs
        return runs, remark


def _mean(runs: Repetitions) -> float:
    finite = runs.values[np.isfinite(runs.values)]
    return float(finite.mean()) if finite.size else math.nan


def _refuse_pairing(model: str, values: pd.Series, baseline: str, other: pd.Series) -> NoReturn:
    """Say why runs cannot be paired: what each side lacks, NaN included, or what is there twice."""
    finite, other_finite = values[np.isfinite(values)], other[np.isfinite(other)]
    lacks = []
    for name, mine, theirs in ((model, finite, other_finite), (baseline, other_finite, finite)):
        missing = theirs.index.difference(mine.index)
        if len(missing):
            lacks.append(f"{display_name(name)} lacks {_name_seeds(missing)}")
    if lacks:
        raise ResultsError("; ".join(lacks))
    diverged = values.index[~np.isfinite(values)]
    if len(diverged):
        raise ResultsError(f"both models diverged on {_name_seeds(diverged)}")
    raise ResultsError("several runs share a seed, so they cannot be paired")


def _name_seeds(index: pd.Index) -> str:
    texts = []
    for split, seeds in index.to_frame(index=False).groupby("split_seed")["seed"]:
        listed = ", ".join(str(seed) for seed in seeds)
        plural = "s" if len(seeds) > 1 else ""
        texts.append(f"seed{plural} {listed}" + (f" of split {split!s}" if split else ""))
    return " and ".join(texts)


def _describe(test: PairedTest) -> str:
    if test.constant and test.difference:
        return "every difference is the same: p is the exact signed-rank p"
    return "all paired differences are zero" if test.constant else ""


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
